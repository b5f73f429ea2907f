"""Follow one frame through rules, without any switch.

The oracle knows OpenFlow (tables, priorities, actions, no output to the in-port) and the wiring; it knows
nothing of VLAN plans or routes. So it can be asked about compiled rules and about the rules a running switch
dumped.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from testbed.model import Rule, Topology, host_mac
from testbed.pipeline.tables import UNTAGGED

BROADCAST = "ff:ff:ff:ff:ff:ff"
Tag = tuple[int, int]  # VLAN, priority
_NO_TAG: Tag = (UNTAGGED, 0)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one frame.

    Attributes:
        received: host → number of copies it got untagged.
        tagged: hosts that got a copy still carrying a tag.
        channels: channels that carried a copy, in the order of visiting, one entry a copy.
        tags: for each of these the (VLAN, priority) the copy carried there, (UNTAGGED, 0) for none.
        dropped: switches where a copy matched no rule or an empty action list.
        endless: True when copies kept circulating and the walk was stopped.
    """

    received: dict[int, int]
    tagged: tuple[int, ...]
    channels: tuple[int, ...]
    dropped: tuple[int, ...]
    endless: bool
    tags: tuple[Tag, ...] = ()


class Oracle:
    """Rules of a whole fabric, indexed for look-up.

    Args:
        topology: the wiring between ports.
        rules: of all switches, in any order.
    """

    def __init__(self, topology: Topology, rules: Iterable[Rule]) -> None:
        self._topology = topology
        # (switch, table) → [(priority, fields, {values: rule})], highest priority first
        grouped: dict[tuple[int, int], dict[tuple[int, tuple[str, ...]], dict[tuple[object, ...], Rule]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for rule in rules:
            fields = tuple(name for name, _ in rule.match)
            grouped[rule.switch, rule.table][rule.priority, fields][tuple(v for _, v in rule.match)] = rule
        self._tables = {
            key: sorted(((prio, fields, index) for (prio, fields), index in groups.items()), key=lambda g: -g[0])
            for key, groups in grouped.items()
        }
        self._host_at = {
            (int(s), int(p)): host
            for host, (s, p) in enumerate(zip(topology.host_switch, topology.host_port, strict=True))
        }
        self._channel_at = {
            (int(s), int(p)): channel
            for channel, (s, p) in enumerate(zip(topology.channel_source, topology.out_port, strict=True))
        }

    def send(self, source: int, destination_mac: str, vlan: int = UNTAGGED) -> Delivery:
        """Let host `source` send one frame and follow every copy.

        Args:
            source: host number.
            destination_mac: unicast address of a host, or BROADCAST.
            vlan: identifier of a tag the host itself puts on the frame; normally none.
        """
        topology = self._topology
        received: dict[int, int] = defaultdict(int)
        tagged: list[int] = []
        channels: list[int] = []
        dropped: list[int] = []
        tags: list[Tag] = []
        endless = False
        waiting = deque([(int(topology.host_switch[source]), int(topology.host_port[source]), (vlan, 0))])
        budget = 4 * (len(topology.channel_source) + 1)
        while waiting:
            switch, in_port, tag = waiting.popleft()
            copies = self._forward(switch, in_port, tag, destination_mac)
            if not copies:
                dropped.append(switch)
            for port, new_tag in copies:
                if (switch, port) in self._host_at:
                    host = self._host_at[switch, port]
                    received[host] += 1
                    if new_tag != _NO_TAG:
                        tagged.append(host)
                elif (switch, port) in self._channel_at:
                    channel = self._channel_at[switch, port]
                    channels.append(channel)
                    tags.append(new_tag)
                    entry = int(topology.out_port[channel ^ 1])
                    waiting.append((int(topology.channel_target[channel]), entry, new_tag))
                else:
                    dropped.append(switch)  # a port that leads nowhere
            if len(channels) > budget:
                endless = True
                break
        return Delivery(dict(received), tuple(tagged), tuple(channels), tuple(dropped), endless, tuple(tags))

    def unicast(self, source: int, destination: int) -> Delivery:
        """Let host `source` send one frame to host `destination`."""
        return self.send(source, host_mac(destination))

    def broadcast(self, source: int) -> Delivery:
        """Let host `source` send one broadcast."""
        return self.send(source, BROADCAST)

    def _lookup(self, switch: int, table: int, frame: dict[str, object]) -> Rule | None:
        for _, fields, index in self._tables.get((switch, table), ()):
            rule = index.get(tuple(frame.get(name) for name in fields))
            if rule is not None:
                return rule
        return None

    def _forward(self, switch: int, in_port: int, tag: Tag, destination_mac: str) -> list[tuple[int, Tag]]:
        """Outgoing (port, tag) of one frame at one switch."""
        copies: list[tuple[int, Tag]] = []
        table: int | None = 0
        while table is not None:
            frame: dict[str, object] = {"in_port": in_port, "dl_vlan": tag[0], "dl_dst": destination_mac}
            if tag != _NO_TAG:
                frame["dl_vlan_pcp"] = tag[1]
            rule = self._lookup(switch, table, frame)
            table = None
            for action, value in rule.actions if rule else ():
                if action == "push_vlan":
                    tag = (value, 0)
                elif action == "set_pcp":
                    tag = (tag[0], value) if tag != _NO_TAG else tag
                elif action == "pop_vlan":
                    tag = _NO_TAG
                elif action == "goto_table":
                    table = value
                elif value != in_port:
                    copies.append((value, tag))
        return copies
