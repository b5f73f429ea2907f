"""Switches that the student has configured: what becomes of frames in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Topology
from testbed.dataplane.predict import Wires, fair_goodput, transport
from testbed.fabric.routing.turns import breadth_first_levels
from testbed.fabric.traffic import flows
from testbed.scenario.parameter_models import format_value
from testbed.ui.teaching.flood import Flooding, flood
from testbed.ui.teaching.student_config import Switches
from testbed.ui.teaching.student_folder import Work

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class File:
    """A file of switches, of a fabric that the exercise gives."""

    file: str
    wiring: str  # a scenario of the exercise


def _flood_all_hosts(work: Work, demand: File) -> tuple[Switches, list[Flooding]]:
    switches = work.switches(demand.file, demand.wiring)
    return switches, [flood(switches, host) for host in range(switches.topology.host_count)]


def judge_no_storm(work: Work, demand: File) -> str | None:
    """No broadcast circulates, and no host gets it twice."""
    switches, found = _flood_all_hosts(work, demand)
    topology = switches.topology
    for host, flooding in enumerate(found):
        name = topology.host_name(host)
        if flooding.loop:
            round_it = " ".join(topology.channel_name(channel) for channel in flooding.loop)
            return (
                f"{demand.file}: a broadcast of {name} circulates for ever: {round_it}. Some interface on this way "
                f"must not be a member of the VLAN it is in there, PVID {switches.of_host(host).pvid} where it starts"
            )
        for end, copies in flooding.copies.items():
            if len(copies) > 1:
                ways = " and ".join(_way(topology, host, copy) for copy in copies[:2])
                return (
                    f"{demand.file}: {topology.host_name(end)} gets a broadcast of {name} {len(copies)} times: {ways}"
                )
    return None


def judge_every_pair(work: Work, demand: File) -> str | None:
    """Each host reaches each other one."""
    switches, found = _flood_all_hosts(work, demand)
    topology = switches.topology
    if any(flooding.loop for flooding in found):
        return f"{demand.file}: nothing arrives reliably while a broadcast circulates; break the loop first"
    lost = [
        (host, end)
        for host, flooding in enumerate(found)
        for end in range(topology.host_count)
        if end not in flooding.copies and end != host
    ]
    if not lost:
        return None
    names = ", ".join(f"{topology.host_name(a)}→{topology.host_name(b)}" for a, b in lost[:_SHOWN])
    source, end = lost[0]
    return (
        f"{demand.file}: {len(lost)} of {topology.host_count * (topology.host_count - 1)} pairs "
        f"{'does' if len(lost) == 1 else 'do'} not speak: {names}"
        f"{' …' if len(lost) > _SHOWN else ''}. {_why_lost(switches, found[source], source, end)}"
    )


def _why_lost(switches: Switches, flooding: Flooding, source: int, end: int) -> str:
    port = switches.of_host(end)
    sent_tagged = [name for host, name in flooding.tagged if host == end]
    vlan = switches.of_host(source).pvid
    if not flooding.copies and flooding.refused:
        return flooding.refused[0]
    if sent_tagged:
        return f"{port.name} sends VLAN {vlan} with its tag, which a host does not understand; make it untagged there"
    if not port.up:
        return f"{port.name} is shut down"
    if vlan not in port.members:
        name = switches.topology.host_name(source)
        return f"Frames of {name} are in VLAN {vlan}, its PVID, and {port.name} is no member of VLAN {vlan}"
    if flooding.refused:
        return f"On the way: {flooding.refused[0]}"
    reached = {
        int(switches.topology.channel_target[way[-1]]) for ways in flooding.copies.values() for way in ways if way
    }
    here = int(switches.topology.host_switch[source])
    names = ", ".join(switches.topology.switch_name(switch) for switch in sorted(reached | {here}))
    return f"VLAN {vlan} does not lead from {switches.of_host(source).name} to {port.name}, only to hosts of {names}"


def _way(topology: Topology, source: int, copy: tuple[int, ...]) -> str:
    hops = [topology.channel_name(channel) for channel in copy]
    return " ".join(hops) if hops else f"inside {topology.switch_name(int(topology.host_switch[source]))}"


@dataclass(frozen=True, slots=True)
class Vlans:
    """No more VLANs than so many."""

    file: str
    wiring: str
    most: int
    only: tuple[int, ...] | None = field(default=None, metadata={"wanted": "a list of VLANs"})  # no others than these


def judge_vlans(work: Work, demand: Vlans) -> str | None:
    """Count VLANs that hosts send in, and look whether they are those that are asked for."""
    switches = work.switches(demand.file, demand.wiring)
    found = sorted(switches.vlans)
    if len(found) <= demand.most:
        return _other_vlan(switches, demand.file, demand.only) if demand.only else None
    return f"{demand.file}: hosts send in {len(found)} VLANs ({', '.join(map(str, found))}), more than {demand.most}"


def _other_vlan(switches: Switches, file: str, only: tuple[int, ...]) -> str | None:
    for host in range(switches.topology.host_count):
        port = switches.of_host(host)
        if port.pvid not in only:
            asked = " and ".join(map(str, only))
            return f"{file}: {port.name} has PVID {port.pvid}, and VLAN {asked} is asked for"
    return None


def judge_own_pvids(work: Work, demand: File) -> str | None:
    """Each host has a VLAN of its own."""
    switches = work.switches(demand.file, demand.wiring)
    of_vlan: dict[int, str] = {}
    for host in range(switches.topology.host_count):
        name, pvid = switches.topology.host_name(host), switches.of_host(host).pvid
        if pvid in of_vlan:
            return f"{demand.file}: {of_vlan[pvid]} and {name} have the same PVID, {pvid}"
        of_vlan[pvid] = name
    return None


def _paths(work: Work, demand: File) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Source, destination and channels of each pair.

    Raises:
        InputError: some pair has no single path.
    """
    if judge_no_storm(work, demand) or judge_every_pair(work, demand):
        sentence = "is judged when no broadcast circulates and every pair speaks; only then has each pair a path"
        raise InputError.one("", sentence, demand.file)
    for host, flooding in enumerate(_flood_all_hosts(work, demand)[1]):
        for end, copies in sorted(flooding.copies.items()):
            yield host, end, copies[0]


def judge_shortest(work: Work, demand: File) -> str | None:
    """No pair goes a longer way than it must."""
    topology = work.wiring(demand.wiring)
    longer = []
    for source, end, path in _paths(work, demand):
        least = int(breadth_first_levels(topology, int(topology.host_switch[source]))[topology.host_switch[end]])
        if len(path) > least:
            longer.append((source, end, path, least))
    if not longer:
        return None
    source, end, path, least = longer[0]
    count = "1 pair goes" if len(longer) == 1 else f"{len(longer)} pairs go"
    return (
        f"{demand.file}: {count} a longer way than need be. {topology.host_name(source)}→"
        f"{topology.host_name(end)} takes {_way(topology, source, path)}, and {least} "
        f"{'link is' if least == 1 else 'links are'} enough; the VLAN that decides is the sender's PVID"
    )


@dataclass(frozen=True, slots=True)
class LinksUsed:
    """Paths take so many links of the fabric, no fewer."""

    file: str
    wiring: str
    least: int


def judge_links_used(work: Work, demand: LinksUsed) -> str | None:
    """Count links on paths."""
    topology = work.wiring(demand.wiring)
    used = {channel // 2 for _, _, path in _paths(work, File(demand.file, demand.wiring)) for channel in path}
    if len(used) >= demand.least:
        return None
    idle = [
        topology.channel_name(2 * link).replace("→", "-") for link in range(topology.link_count) if link not in used
    ]
    return f"{demand.file}: paths take {len(used)} links, and {demand.least} can be used. Idle: {', '.join(idle)}"


@dataclass(frozen=True, slots=True)
class Goodput:
    """Each flow of a pattern gets so much of a link when all send at once."""

    file: str
    wiring: str
    pattern: str
    share: float  # of a link's rate that the slowest flow gets at least, headers and gaps not counted


def judge_goodput(work: Work, demand: Goodput) -> str | None:
    """Share links max–min fairly along the paths, and name the link that limits the slowest flow."""
    topology = work.wiring(demand.wiring)
    way = {(source, end): path for source, end, path in _paths(work, File(demand.file, demand.wiring))}
    pairs = flows(demand.pattern, topology, 1)
    wires = Wires(topology, transport("udp", 1470), 1.0, 1.0)
    ways = [(way[a, b], way[b, a]) for a, b in pairs]
    found = fair_goodput(wires, pairs, ways) * wires.transport.cost(tagged=True)
    slowest = int(np.argmin(found))
    if found[slowest] >= demand.share - 0.01:
        return None
    load = np.zeros(2 * topology.link_count, dtype=int)
    for a, b in pairs:
        load[list(way[a, b])] += 1
    fullest = max(way[pairs[slowest]], key=lambda channel: load[channel])
    source, end = (topology.host_name(host) for host in pairs[slowest])
    return (
        f"{demand.file}: {source}→{end} gets {100 * found[slowest]:.0f} % of a link and {100 * demand.share:.0f} % can "
        f"be had: {load[fullest]} flows share {topology.channel_name(fullest)}"
    )


@dataclass(frozen=True, slots=True)
class Survives:
    """Of these VLANs one still joins all hosts, whatever single link dies."""

    file: str
    wiring: str
    vlans: tuple[int, ...] = field(metadata={"wanted": "a list of VLANs"})


def judge_survives(work: Work, demand: Survives) -> str | None:
    """Take each link away, and say of each VLAN why it is not whole then."""
    switches = work.switches(demand.file, demand.wiring)
    topology = switches.topology
    broken = {vlan: _why_broken(switches, vlan, None) for vlan in demand.vlans}
    for link in range(topology.link_count):
        name = topology.channel_name(2 * link).replace("→", "-")
        if all(broken[vlan] or _why_broken(switches, vlan, link) for vlan in demand.vlans):
            why = [
                f"VLAN {vlan}, were it all hosts' PVID, is not whole even while all links live: {broken[vlan]}"
                if broken[vlan]
                else f"VLAN {vlan} needs {name}"
                for vlan in demand.vlans
            ]
            left = "no VLAN is left in which all hosts reach each other"
            return f"{demand.file}: when {name} dies, {left}. {'; '.join(why)}"
    return None


def _why_broken(switches: Switches, vlan: int, dead: int | None) -> str:
    """Why hosts, all sending in one VLAN, do not reach each other without one link; empty where they do."""
    moved = {
        key: replace(
            port,
            pvid=vlan if port.host >= 0 else port.pvid,
            up=port.up and (port.channel < 0 or port.channel // 2 != dead),
        )
        for key, port in switches.ports.items()
    }
    changed = Switches(switches.topology, moved)
    topology = switches.topology
    for host in range(topology.host_count):
        found, name = flood(changed, host), topology.host_name(host)
        if found.loop:
            round_it = " ".join(topology.channel_name(channel) for channel in found.loop)
            return f"a broadcast of {name} circulates: {round_it}"
        for end in range(topology.host_count):
            if end != host and end not in found.copies:
                return f"{name} does not reach {topology.host_name(end)}. {_why_lost(changed, found, host, end)}"
    return ""


@dataclass(frozen=True, slots=True)
class PvidOf:
    """The VLAN in which frames of a host travel, by the student's own file."""

    key: str
    file: str
    wiring: str
    host: str
    other: str  # the host whose PVID is the usual wrong answer


def judge_pvid_of(work: Work, demand: PvidOf) -> str | None:
    """Compare with the PVID, and say whose it is instead."""
    switches = work.switches(demand.file, demand.wiring)
    topology = switches.topology
    pvids = {topology.host_name(host): switches.of_host(host).pvid for host in range(topology.host_count)}
    given = work.answer(demand.key)
    if not isinstance(given, int):
        raise InputError.one(demand.key, f"should be the number of a VLAN, not {format_value(given)}", "answers.yaml")
    if given == pvids[demand.host]:
        return None
    if given == pvids[demand.other]:
        return (
            f"{demand.key}: {given} is the PVID of {demand.other}, in which it gets to {demand.host}. What "
            f"{demand.host} sends, its switch puts in another VLAN"
        )
    return f"{demand.key}: {given} is not the PVID that {demand.file} gives the port of {demand.host}"
