"""Files of an export, or of running bridges, compared with a plan: setting by setting, and by walking every pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.errors import InputError, Problem
from testbed.export.bridge import BROADCAST, Bridge, BridgePort, Place, Walk, Walker, Wiring
from testbed.export.export import DIALECTS, SCHEMA_VERSION, dialect_called, host_macs
from testbed.export.port_names import PortNames, listed, port_names
from testbed.export.read_linux import read_running
from testbed.export.settings import Floods, PortSettings, SwitchSettings, settings_of
from testbed.model import LocalPlan, Topology
from testbed.plan import Plan
from testbed.routing.paths import path


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as planned."""

    switch: str  # name of the switch; of a walk, the host that sends
    port: str  # its name, or empty
    what: str  # the setting
    found: str  # what is there
    planned: str  # what should be

    def __str__(self) -> str:
        """One sentence."""
        place = f"{self.switch} {self.port}".strip()
        return f"{place}: {self.what} is {self.found}, expected {self.planned}"


def wiring_of(topology: Topology, ports: PortNames) -> Wiring:
    """The cables of a fabric by the names of switches, ports and hosts."""
    places = [
        (topology.switch_name(switch), ports.of(port))
        for switch, port in zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True)
    ]
    hosts = {
        topology.host_name(host): (topology.switch_name(switch), ports.of(port))
        for host, (switch, port) in enumerate(
            zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True)
        )
    }
    return Wiring({place: places[channel ^ 1] for channel, place in enumerate(places)}, hosts)


def planned_bridges(settings: Sequence[SwitchSettings], ports: PortNames, macs: Sequence[str]) -> dict[str, Bridge]:
    """The bridges that a plan asks for."""
    return {
        switch.name: Bridge(
            switch.name,
            vlan_filtering=True,
            stp=False,
            ports={ports.of(port.number): _planned_port(port) for port in switch.ports if port.used},
            fdb={(vlan, macs[host]): ports.of(port) for vlan, host, port in switch.table.rows()},
        )
        for switch in settings
    }


def _planned_port(port: PortSettings) -> BridgePort:
    return BridgePort(
        pvid=port.pvid,
        members=frozenset(port.tagged) | frozenset(port.untagged),
        untagged=frozenset(port.untagged),
        learning=False,
        flood=port.floods,
        bcast_flood=port.floods,
        mcast_flood=port.floods,
    )


def setting_differences(found: Mapping[str, Bridge], planned: Mapping[str, Bridge]) -> list[Difference]:
    """Every setting that is not as planned, switch by switch."""
    differences: list[Difference] = []
    for name, wanted in planned.items():
        bridge = found.get(name)
        if bridge is None:
            differences.append(Difference(name, "", "the switch", "not there", "there"))
        else:
            differences += _of_bridge(bridge, wanted)
    for name in sorted(found.keys() - planned.keys()):
        differences.append(Difference(name, "", "the switch", "there", "not there"))
    return differences


def _of_bridge(bridge: Bridge, wanted: Bridge) -> Iterator[Difference]:
    for what, one, other in (
        ("VLAN filtering", bridge.vlan_filtering, wanted.vlan_filtering),
        ("the spanning tree protocol", bridge.stp, wanted.stp),
    ):
        if one != other:
            yield Difference(bridge.name, "", what, _on(one), _on(other))
    for port, settings in wanted.ports.items():
        if port in bridge.ports:
            yield from _of_port(bridge.name, port, bridge.ports[port], settings)
        else:
            yield Difference(bridge.name, port, "the port", "not in the bridge", "in it")
    for port in sorted(bridge.ports.keys() - wanted.ports.keys()):
        yield Difference(bridge.name, port, "the port", "in the bridge", "outside it, since no path uses it")
    for vlan, mac in sorted(bridge.fdb.keys() | wanted.fdb.keys()):
        there, planned = (table.get((vlan, mac), "not there") for table in (bridge.fdb, wanted.fdb))
        if there != planned:
            yield Difference(bridge.name, "", f"the entry of {mac} in VLAN {vlan}", there, planned)


def _of_port(switch: str, port: str, found: BridgePort, planned: BridgePort) -> Iterator[Difference]:
    if found.pvid != planned.pvid:
        yield Difference(switch, port, "the PVID", _vlan(found.pvid), _vlan(planned.pvid))
    by_change: dict[tuple[str, str], list[int]] = {}
    for vlan in sorted(found.members | planned.members):
        change = _membership(found, vlan), _membership(planned, vlan)
        if change[0] != change[1]:
            by_change.setdefault(change, []).append(vlan)
    for (one, other), vlans in by_change.items():
        what = f"membership in VLAN{'s' * (len(vlans) > 1)} {listed(vlans)}"
        yield Difference(switch, port, what, one, other)
    for what, one_flag, other_flag in (
        ("learning", found.learning, planned.learning),
        ("flooding of unknown addresses", found.flood, planned.flood),
        ("flooding of broadcasts", found.bcast_flood, planned.bcast_flood),
        ("flooding of multicasts", found.mcast_flood, planned.mcast_flood),
    ):
        if one_flag != other_flag:
            yield Difference(switch, port, what, _on(one_flag), _on(other_flag))


def _on(value: bool) -> str:
    return "on" if value else "off"


def _vlan(vlan: int | None) -> str:
    return "none" if vlan is None else str(vlan)


def _membership(port: BridgePort, vlan: int) -> str:
    if vlan not in port.members:
        return "none"
    return "untagged" if vlan in port.untagged else "tagged"


def walk_differences(
    plan: Plan, bridges: Mapping[str, Bridge], ports: PortNames, macs: Sequence[str], *, broadcasts: bool = True
) -> list[Difference]:
    """Every ordered pair that does not take its path, and every broadcast that does not take its tree.

    Frames are followed on the bridges alone; what they should do is read from the plan's routes and trees.

    `macs` are the MAC addresses of the hosts.
    """
    topology = plan.topology
    wiring = wiring_of(topology, ports)
    walker = Walker(bridges, wiring)
    names = [topology.host_name(host) for host in range(topology.host_count)]
    place_of = [
        (topology.switch_name(switch), ports.of(port))
        for switch, port in zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True)
    ]
    found: list[tuple[int, int, Difference]] = []
    for end, other in enumerate(names):
        for source, name in enumerate(names):
            if end == source:
                continue
            walk = walker.walk(name, macs[end])
            wanted = tuple(place_of[channel] for channel in path(topology, plan.routes, source, end))
            if walk != Walk({other: 1}, {}, dict.fromkeys(wanted, 1), endless=False) or tuple(walk.sent) != wanted:
                what = f"the path of a frame to {other}"
                found.append((source, end, Difference(name, "", what, _walk_text(walk), _path_text(wanted, other))))
    for source, name in enumerate(names if broadcasts else []):
        flood, wanted_flood = walker.walk(name, BROADCAST), _planned_flood(plan, source, place_of, names)
        if flood != wanted_flood:
            difference = Difference(name, "", "the path of a broadcast", _walk_text(flood), _walk_text(wanted_flood))
            found.append((source, len(names), difference))
    return [difference for _, _, difference in sorted(found, key=lambda three: three[:2])]


def _planned_flood(plan: Plan, source: int, place_of: list[Place], names: list[str]) -> Walk:
    """One copy over each link of the tree, away from the sender, and one to each other host."""
    topology, vlans = plan.topology, plan.vlans
    links = vlans.flood_links if isinstance(vlans, LocalPlan) else vlans.tagged_links[vlans.pvid[source]]
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


def _path_text(places: Sequence[Place], end: str) -> str:
    return " ".join([*(f"{switch}:{port}" for switch, port in places), end])


def _walk_text(walk: Walk) -> str:
    """A walk as text."""
    if walk.endless:
        return "a loop, in which it circulates forever"
    sent = [f"{switch}:{port}" + (f" ×{count}" if count > 1 else "") for (switch, port), count in walk.sent.items()]
    ends = Counter(walk.received)
    hosts = [name + (f" ×{count}" if count > 1 else "") for name, count in sorted(ends.items())]
    hosts += [f"{name} with a tag" for name in sorted(walk.tagged)]
    if len(sent) > 8:
        sent = [*sent[:8], f"and {len(sent) - 8} ports more,"]
    if len(hosts) > 8:
        hosts = [*hosts[:8], f"and {len(hosts) - 8} hosts more"]
    return " ".join([*sent, *(hosts or ["dropped"])])


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was found."""

    unread: tuple[Problem, ...]  # lines that no switch could apply
    settings: tuple[Difference, ...]  # settings that are not as planned
    walks: tuple[Difference, ...]  # frames that do not go where they should
    pairs: int  # ordered pairs of hosts that were walked
    broadcasts: bool  # whether the broadcast of each host was walked; not where they go to all members of a VLAN
    other_plan: str | None  # digest of the plan the files were written from, where that is another one

    @property
    def same(self) -> bool:
        """Whether the files configure what the plan says."""
        return not (self.unread or self.settings or self.walks)


def compare_files(
    plan: Plan, manifest: Mapping[str, Any], files: Mapping[str, str], *, running: bool = False
) -> Comparison:
    """Read the files of every switch, compare settings with the plan, and walk every pair and every broadcast.

    `manifest` is that of the export. With `running` the files are what bridges show, see read_running().

    Raises:
        InputError: the manifest is not one of ours, or nothing reads its dialect back.
    """
    if manifest.get("schema_version") != SCHEMA_VERSION:
        sentence = f"has schema version {manifest.get('schema_version')}; this program reads {SCHEMA_VERSION}"
        raise InputError.one("export.json", sentence)
    name = str(manifest.get("dialect"))
    read = dialect_called(name).read
    if read is not None and running:
        read = read_running
    if read is None:
        known = ", ".join(key for key, other in DIALECTS.items() if other.read is not None)
        raise InputError.one("export.json", f"is in the dialect {name}, which cannot be checked; these can: {known}")
    ports = port_names(str(manifest.get("ports")))
    macs, wrong = host_macs(plan, manifest.get("macs"))
    if wrong:
        raise InputError([Problem("export.json", problem.sentence) for problem in wrong])
    floods: Floods = "members" if manifest.get("floods") == "members" else "plan"
    planned = planned_bridges(settings_of(plan, floods), ports, macs)
    bridges = {}
    unread: list[Problem] = []
    for switch in planned:
        bridges[switch], problems = read(switch, files)
        unread += problems
    hosts = plan.topology.host_count
    digest = manifest.get("digest")
    return Comparison(
        unread=tuple(unread),
        settings=tuple(setting_differences(bridges, planned)),
        walks=tuple(walk_differences(plan, bridges, ports, macs, broadcasts=floods == "plan")),
        pairs=hosts * (hosts - 1),
        broadcasts=floods == "plan",
        other_plan=str(digest) if digest != plan.digest else None,
    )
