"""Follow one frame through rules, without any switch.

The oracle knows OpenFlow (tables, priorities, actions, groups, no output to the in-port) and the wiring; it knows
nothing of VLAN plans or routes. So it can be asked about compiled rules and about the rules a running switch
dumped.

Which member of a bundle a frame takes is up to a hash. The oracle follows the frame over all members at once, and
notes where a switch treats frames of two members differently.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from testbed.base.model import Bundles, Group, Rule, Topology, host_mac
from testbed.fabric.openflow.admission import MASKED, matches
from testbed.fabric.openflow.tables import INGRESS, LEARN, UNTAGGED

BROADCAST = "ff:ff:ff:ff:ff:ff"
Tag = tuple[int, int]  # VLAN, priority
_NO_TAG: Tag = (UNTAGGED, 0)
# Ports one of which a copy leaves by, and the tag it carries.
Copy = tuple[tuple[int, ...], Tag]
_DEEPEST = 64  # resubmissions inside each other, as in Open vSwitch


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one frame."""

    received: dict[int, int]  # host → number of copies it got untagged
    tagged: tuple[int, ...]  # hosts that got a copy still carrying a tag
    # channels that carried a copy, in the order of visiting, one entry a copy; logical ones where links are aggregated
    channels: tuple[int, ...]
    dropped: tuple[int, ...]  # switches where a copy matched no rule or an empty action list
    endless: bool  # True when copies kept circulating and the walk was stopped
    tags: tuple[Tag, ...] = ()  # for each of these the (VLAN, priority) the copy carried there, (UNTAGGED, 0) for none
    # for each of the channels the physical channels one of which carried the copy
    members: tuple[tuple[int, ...], ...] = ()
    # switches that treat what comes by one member of a bundle unlike what comes by another
    uneven: tuple[int, ...] = ()


@dataclass(slots=True)
class Frame:
    """What rules of one switch see of a frame, and change."""

    in_port: int
    tag: Tag
    source_mac: str
    destination_mac: str
    bundle: int = 0

    def fields(self) -> dict[str, object]:
        """What a rule can match."""
        seen: dict[str, object] = {
            "in_port": self.in_port,
            "dl_vlan": self.tag[0],
            "dl_src": self.source_mac,
            "dl_dst": self.destination_mac,
            **_groups(self.source_mac, self.destination_mac),
            "bundle": self.bundle,
        }
        if self.tag != _NO_TAG:
            seen["dl_vlan_pcp"] = self.tag[1]
        return seen

    def change(self, action: str, value: int) -> bool:
        """Carry out an action that changes the frame; False for any other."""
        if action == "push_vlan":
            self.tag = (value, 0)
        elif action == "set_pcp":
            self.tag = (self.tag[0], value) if self.tag != _NO_TAG else self.tag
        elif action == "pop_vlan":
            self.tag = _NO_TAG
        elif action == "set_in_port":
            self.in_port = value
        elif action == "set_bundle":
            self.bundle = value
        else:
            return False
        return True


@lru_cache(maxsize=1024)
def _groups(source_mac: str, destination_mac: str) -> dict[str, str]:
    """Matches with a mask that the addresses of a frame fulfil; see _place()."""
    macs = {"dl_src": source_mac, "dl_dst": destination_mac}
    return {f"{name}/": masked for name, masked in MASKED if matches(macs[name], masked)}


def _place(rule: Rule) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Fields and values that a rule matches; a field with a mask has a name of its own, since frames have no masks."""
    names = tuple(f"{name}/" if "/" in str(value) else name for name, value in rule.match)
    return names, tuple(value for _, value in rule.match)


class Oracle:
    """Rules of a whole fabric, indexed for look-up. Rules and groups are of all switches, in any order."""

    # Whether a frame is followed by every member of a bundle, or by the first alone.
    every_member = True

    def __init__(
        self, topology: Topology, rules: Iterable[Rule], bundles: Bundles | None = None, groups: Iterable[Group] = ()
    ) -> None:
        self._topology = topology
        self._sender = ""  # address that the frame under way comes from
        self._wiring = topology if bundles is None else bundles.wiring
        self._logical = range(len(topology.channel_source)) if bundles is None else bundles.of_channel.tolist()
        self._groups = {(group.switch, group.number): group.ports for group in groups}
        # (switch, table) → [(priority, fields, {values: rule})], highest priority first
        grouped: dict[tuple[int, int], dict[tuple[int, tuple[str, ...]], dict[tuple[object, ...], Rule]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for rule in rules:
            fields, values = _place(rule)
            grouped[rule.switch, rule.table][rule.priority, fields][values] = rule
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
            for channel, (s, p) in enumerate(zip(self._wiring.channel_source, self._wiring.out_port, strict=True))
        }

    def send(self, source: int, destination_mac: str, vlan: int = UNTAGGED, source_mac: str | None = None) -> Delivery:
        """Let host `source` send one frame and follow every copy.

        `destination_mac` is a host's, or BROADCAST; `vlan` the identifier of a tag that the host itself puts on the
        frame; `source_mac` another address than its own.
        """
        self._sender = source_mac or host_mac(source)
        topology = self._topology
        received: dict[int, int] = defaultdict(int)
        tagged: list[int] = []
        channels: list[int] = []
        members: list[tuple[int, ...]] = []
        dropped: list[int] = []
        uneven: list[int] = []
        tags: list[Tag] = []
        endless = False
        waiting: deque[tuple[int, tuple[int, ...], Tag]] = deque()
        waiting.append((int(topology.host_switch[source]), (int(topology.host_port[source]),), (vlan, 0)))
        budget = 4 * (len(topology.channel_source) + 1)
        while waiting:
            switch, in_ports, tag = waiting.popleft()
            copies = self._forward(switch, in_ports[0], tag, destination_mac)
            for other in in_ports[1:] if self.every_member else ():
                found = self._forward(switch, other, tag, destination_mac)
                if found != copies:
                    uneven.append(switch)
                    copies += [copy for copy in found if copy not in copies]
            if not copies:
                dropped.append(switch)
            for ports, new_tag in copies:
                hosts, taken = self._ends(switch, ports)
                for host in hosts:
                    received[host] += 1
                    if new_tag != _NO_TAG:
                        tagged.append(host)
                for channel, physical in taken.items():
                    channels.append(channel)
                    members.append(tuple(physical))
                    tags.append(new_tag)
                    entries = tuple(int(self._wiring.out_port[c ^ 1]) for c in physical)
                    waiting.append((int(topology.channel_target[channel]), entries, new_tag))
                if not hosts and not taken:
                    dropped.append(switch)  # a port that leads nowhere
            if len(channels) > budget:
                endless = True
                break
        return Delivery(
            dict(received), tuple(tagged), tuple(channels), tuple(dropped), endless, tuple(tags), tuple(members),
            tuple(uneven),
        )  # fmt: skip

    def _ends(self, switch: int, ports: tuple[int, ...]) -> tuple[list[int], dict[int, list[int]]]:
        """Hosts, and logical channels with their physical ones, to which ports of a switch lead."""
        taken: dict[int, list[int]] = {}
        for port in ports:
            physical = self._channel_at.get((switch, port))
            if physical is not None:
                taken.setdefault(self._logical[physical], []).append(physical)
        return [self._host_at[switch, port] for port in ports if (switch, port) in self._host_at], taken

    def unicast(self, source: int, destination: int) -> Delivery:
        """Let host `source` send one frame to host `destination`."""
        return self.send(source, host_mac(destination))

    def broadcast(self, source: int) -> Delivery:
        """Let host `source` send one broadcast."""
        return self.send(source, BROADCAST)

    def at_switch(self, switch: int, in_port: int, tag: Tag, source_mac: str, destination_mac: str) -> list[Copy]:
        """What one switch makes of one frame that comes by a port."""
        self._sender = source_mac
        return self._forward(switch, in_port, tag, destination_mac)

    def _lookup(self, switch: int, table: int, frame: dict[str, object]) -> Rule | None:
        for _, fields, index in self._tables.get((switch, table), ()):
            rule = index.get(tuple(frame.get(name) for name in fields))
            if rule is not None:
                return rule
        return None

    def add(self, rule: Rule) -> None:
        """Put a rule in, or in the place of the one with the same match and priority."""
        fields, values = _place(rule)
        table = self._tables.setdefault((rule.switch, rule.table), [])
        for priority, names, index in table:
            if (priority, names) == (rule.priority, fields):
                index[values] = rule
                return
        table.append((rule.priority, fields, {values: rule}))
        table.sort(key=lambda group: -group[0])

    def _learn(self, switch: int, action: str, frame: Frame) -> None:
        """A walk teaches the switches nothing; see LearningOracle."""

    def _forward(self, switch: int, in_port: int, tag: Tag, destination_mac: str) -> list[Copy]:
        """What one frame becomes at one switch."""
        copies: list[Copy] = []
        self._apply(switch, INGRESS.number, Frame(in_port, tag, self._sender, destination_mac), copies, 0)
        return copies

    def _apply(self, switch: int, table: int, frame: Frame, copies: list[Copy], depth: int) -> None:
        """Carry out the rule of one table, and of those it goes on to; what it changes stays changed."""
        rule = self._lookup(switch, table, frame.fields())
        following: int | None = None
        for action, value in rule.actions if rule else ():
            if frame.change(action, value):
                continue
            if action in LEARN:
                self._learn(switch, action, frame)
                continue
            if action == "goto_table":
                following = value
            elif action == "resubmit":
                if depth < _DEEPEST:
                    self._apply(switch, value, frame, copies, depth + 1)
            elif action == "group":
                # The hash may choose the port of arrival; whoever looks at the copies then sees the frame go back.
                if (switch, value) in self._groups:
                    copies.append((self._groups[switch, value], frame.tag))
            elif value != frame.in_port:
                copies.append(((value,), frame.tag))
        if following is not None:
            self._apply(switch, following, frame, copies, depth)


def matched_rules(
    topology: Topology,
    rules: Iterable[Rule],
    source: int,
    destination: int,
    bundles: Bundles | None = None,
    groups: Iterable[Group] = (),
    tag: int | None = None,
) -> list[list[Rule]]:
    """Let host `source` send one frame to host `destination` and note what it matches.

    Of a bundle it takes the first member. `tag` is the VLAN that the host itself tags the frame with, if it does.

    Returns:
        for each switch the frame comes to, one after the other, the rule of each table that it matched.
    """
    tracing = _TracingOracle(topology, rules, bundles, groups)
    tracing.send(source, host_mac(destination), UNTAGGED if tag is None else tag)
    visits: list[list[Rule]] = []
    for rule in tracing.matched:
        if rule.table == INGRESS.number:
            visits.append([])
        visits[-1].append(rule)
    return visits


class _TracingOracle(Oracle):
    """An oracle that notes the rules it finds."""

    every_member = False

    def __init__(
        self, topology: Topology, rules: Iterable[Rule], bundles: Bundles | None, groups: Iterable[Group]
    ) -> None:
        super().__init__(topology, rules, bundles, groups)
        self.matched: list[Rule] = []

    def _lookup(self, switch: int, table: int, frame: dict[str, object]) -> Rule | None:
        rule = super()._lookup(switch, table, frame)
        if rule is not None:
            self.matched.append(rule)
        return rule
