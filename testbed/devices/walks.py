"""Frames that do not go where a plan says, followed through what switches have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from testbed.base.model import HostTaggedPlan, LocalPlan, Topology
from testbed.devices.bridge import BROADCAST, NO_TAG, Bridge, Place, Walk, Walker, Wiring
from testbed.devices.port_names import PortNames
from testbed.fabric.routing.paths import path
from testbed.planning import Plan

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class WalkDifference:
    """A frame that does not go where it should."""

    source: str  # host that sends
    destination: str  # host it is for; empty for a broadcast
    at: str  # the switch where it leaves its path; of a broadcast empty
    taken: tuple[str, ...]  # ports between switches that send it, as switch:port, in the order of its path
    received: Mapping[str, int]  # host → copies it gets
    tagged: tuple[str, ...]  # hosts that get it with a tag, which they do not understand
    endless: bool  # whether it circulates for ever
    planned: tuple[str, ...]  # ports between switches that should send it
    planned_hosts: tuple[str, ...]  # hosts that should get it

    def __str__(self) -> str:
        """One sentence: what happens, and what was planned."""
        if not self.destination:
            there = "nobody" if not self.planned_hosts else f"{len(self.planned_hosts)} hosts"
            if self.endless:
                return f"broadcast from {self.source}: circulates for ever (expected: {there}, once each)"
            lost = [host for host in self.planned_hosts if host not in self.received]
            more = [host for host, count in self.received.items() if count > 1 or host not in self.planned_hosts]
            parts = [f"does not reach {_shorten_names(lost)}"] * bool(lost) + [
                f"reaches {_shorten_names(more)} too often"
            ] * bool(more)
            parts += [f"reaches {_shorten_names(self.tagged)} with a tag"] * bool(self.tagged)
            way = "goes by " + _shorten_names(sorted(set(self.taken) ^ set(self.planned))) + " otherwise than planned"
            return f"broadcast from {self.source}: {', '.join(parts) or way} (expected: {there}, once each)"
        return f"{self.source}→{self.destination}: {self._describe_taken()}, expected {self._describe_planned()}"

    def _describe_taken(self) -> str:
        after = f" after {self.taken[-1]}" if self.taken else f" at {self.at}"
        if self.endless:
            return f"circulates for ever, from {self.at} on"
        if self.tagged:
            return f"reaches {_shorten_names(self.tagged)} with a tag{after}"
        if not self.received:
            return f"dropped{after}"
        if self.received == {self.destination: 1}:
            return f"arrives by {' '.join(self.taken) or 'no link'}"
        return f"flooded to {_shorten_names([*self.received])} from {self.at} on"

    def _describe_planned(self) -> str:
        arrives = self.received == {self.destination: 1} and not self.endless
        rest = self.planned if arrives else self.planned[self.common :]
        return " ".join([*rest, self.destination])

    @property
    def common(self) -> int:
        """Number of ports by which it leaves as planned before it does not."""
        pairs = zip(self.taken, self.planned, strict=False)
        return next(
            (n for n, (one, other) in enumerate(pairs) if one != other), min(len(self.taken), len(self.planned))
        )

    def as_object(self) -> dict[str, object]:
        """With whole lists."""
        return {**asdict(self), "sentence": str(self)}


def _shorten_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def wiring_of(topology: Topology, ports: PortNames) -> Wiring:
    """The cables of a fabric by the names of switches, ports and hosts."""
    places = [
        (topology.switch_name(switch), ports.name_port(port))
        for switch, port in zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True)
    ]
    hosts = {
        topology.host_name(host): (topology.switch_name(switch), ports.name_port(port))
        for host, (switch, port) in enumerate(
            zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True)
        )
    }
    return Wiring({place: places[channel ^ 1] for channel, place in enumerate(places)}, hosts)


def walk_differences(
    plan: Plan, bridges: Mapping[str, Bridge], ports: PortNames, macs: Sequence[str], *, broadcasts: bool = True
) -> list[WalkDifference]:
    """Every ordered pair that does not take its path, and every broadcast that does not take its tree.

    Frames are followed on the bridges alone; what they should do is read from the plan's routes and trees.

    `macs` are the MAC addresses of the hosts.
    """
    topology = plan.topology
    wiring = wiring_of(topology, ports)
    walker = Walker(bridges, wiring)
    names = [topology.host_name(host) for host in range(topology.host_count)]
    tagging = frozenset(name for host, name in enumerate(names) if plan.vlans.takes_tags(host))
    place_of = [
        (topology.switch_name(switch), ports.name_port(port))
        for switch, port in zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True)
    ]
    found: list[tuple[int, int, WalkDifference]] = []
    for end, other in enumerate(names):
        for source, name in enumerate(names):
            if end == source:
                continue
            walk = _as_taken(walker.walk(name, macs[end], plan.vlans.host_tag(source, end) or NO_TAG), tagging)
            wanted = tuple(place_of[channel] for channel in path(topology, plan.routes, source, end))
            if walk != Walk({other: 1}, {}, dict.fromkeys(wanted, 1), endless=False) or tuple(walk.sent) != wanted:
                found.append((source, end, _difference(wiring, name, other, walk, wanted, (other,))))
    for source, name, tag in _broadcasts(plan, names) if broadcasts else ():
        flood = _as_taken(walker.walk(name, BROADCAST, tag), tagging)
        wanted_flood = planned_flood(plan, source, place_of, names, tag)
        if flood != wanted_flood:
            hosts = tuple(sorted(wanted_flood.received))
            found.append((source, len(names), _difference(wiring, name, "", flood, tuple(wanted_flood.sent), hosts)))
    return [difference for _, _, difference in sorted(found, key=lambda three: three[:2])]


def _broadcasts(plan: Plan, names: list[str]) -> Iterator[tuple[int, str, int]]:
    """Number and name of each host that broadcasts, with the tag: one in each of its VLANs where it tags."""
    for source, name in enumerate(names):
        if isinstance(plan.vlans, HostTaggedPlan) and plan.vlans.takes_tags(source):
            for vlan in plan.vlans.vlan_ids[plan.vlans.tagged_hosts[:, source]].tolist():
                yield source, name, vlan
        else:
            yield source, name, NO_TAG


def _as_taken(walk: Walk, tagging: frozenset[str]) -> Walk:
    """A walk as its receivers see it: hosts that tag receive what has a tag, and nothing else."""
    if not tagging:
        return walk
    received = {host: count for host, count in walk.received.items() if host not in tagging}
    received |= {host: count for host, count in walk.tagged.items() if host in tagging}
    tagged = {host: count for host, count in walk.tagged.items() if host not in tagging}
    return replace(walk, received=received, tagged=tagged)


def _difference(
    wiring: Wiring, source: str, destination: str, walk: Walk, wanted: tuple[Place, ...], hosts: tuple[str, ...]
) -> WalkDifference:
    taken = tuple(f"{switch}:{port}" for switch, port in walk.sent)
    planned = tuple(f"{switch}:{port}" for switch, port in wanted)
    made = WalkDifference(
        source, destination, "", taken, dict(Counter(walk.received)), tuple(sorted(walk.tagged)), walk.endless,
        planned, hosts,
    )  # fmt: skip
    if not destination:
        return made
    at = wiring.hosts[source][0] if not made.common else wiring.cables[wanted[made.common - 1]][0]
    return replace(made, at=at)


def planned_flood(plan: Plan, source: int, place_of: list[Place], names: list[str], tag: int = NO_TAG) -> Walk:
    """One copy over each link of the tree, away from the sender, and one to each other host.

    `tag` is that of a host that tags.
    """
    topology, vlans = plan.topology, plan.vlans
    if isinstance(vlans, LocalPlan):
        links = vlans.flood_links
    else:
        number = int(vlans.pvid[source]) if tag == NO_TAG else vlans.vlan_ids.tolist().index(tag)
        links = vlans.tagged_links[number]
    start = int(topology.host_switch[source])
    if links is None:  # no broadcast leaves by any port
        return Walk({}, {}, {}, endless=False)
    of_switch: dict[int, list[int]] = {}
    for channel in np.flatnonzero(np.repeat(links, 2)).tolist():
        of_switch.setdefault(int(topology.channel_source[channel]), []).append(channel)
    reached, waiting, sent = {start}, [start], {}
    while waiting:
        for channel in of_switch.get(waiting.pop(), ()):
            target = int(topology.channel_target[channel])
            if target not in reached:
                reached.add(target)
                waiting.append(target)
                sent[place_of[channel]] = 1
    received = {
        names[host]: 1
        for host, switch in enumerate(topology.host_switch.tolist())
        if host != source and switch in reached
    }
    return Walk(received, {}, sent, endless=False)
