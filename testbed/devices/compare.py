"""Settings of switches compared with those of a plan: one by one, and as a unified diff."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.devices.bridge import Bridge, BridgePort, Reading
from testbed.devices.port_names import PortNames, format_ranges
from testbed.devices.settings import PortSettings, SwitchSettings


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not as planned."""

    switch: str  # name of the switch
    port: str  # its name, or empty
    what: str  # the setting
    found: str  # what is there
    planned: str  # what should be

    def __str__(self) -> str:
        """One sentence."""
        place = f"{self.switch} {self.port}".strip()
        return f"{place}: {self.what} is {self.found}, expected {self.planned}"


_UNUSED = "is used by no path"


def planned_bridges(
    settings: Sequence[SwitchSettings], ports: PortNames, macs: Sequence[str], *, learning: bool = False
) -> dict[str, Bridge]:
    """The bridges that a plan asks for.

    `learning`: of switches whose ports learn whatever is said.
    """
    return {
        switch.name: Bridge(
            switch.name,
            vlan_filtering=True,
            stp=False,
            ports={
                ports.name_port(port.number): _planned_port(port, learning=learning)
                for port in switch.ports
                if port.used
            },
            fdb={(vlan, macs[host]): ports.name_port(port) for vlan, host, port in switch.table.rows()},
            reading=Reading(down={ports.name_port(port.number): _UNUSED for port in switch.ports if not port.used}),
        )
        for switch in settings
    }


def _planned_port(port: PortSettings, *, learning: bool) -> BridgePort:
    return BridgePort(
        pvid=port.pvid,
        members=frozenset(port.tagged) | frozenset(port.untagged),
        untagged=frozenset(port.untagged),
        learning=learning,
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
        if port in bridge.channels:
            yield Difference(bridge.name, port, "the port", f"part of {bridge.channels[port]}", "a port of its own")
        elif port in bridge.ports:
            yield from _of_port(bridge.name, port, bridge.ports[port], settings)
        else:
            why = bridge.reading.down.get(port)
            there = "not in the bridge" if why is None else f"not in the bridge, since it {why}"
            yield Difference(bridge.name, port, "the port", there, "in it")
    for port in sorted(bridge.ports.keys() - wanted.ports.keys()):
        if port in bridge.reading.silent and port not in wanted.reading.down:
            continue  # not said to do anything, and led nowhere by the plan
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
        what = f"membership in VLAN{'s' * (len(vlans) > 1)} {format_ranges(vlans)}"
        yield Difference(switch, port, what, one, other)
    for what, one_flag, other_flag in (
        ("ingress filtering", found.filters, planned.filters),
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


def settings_lines(bridge: Bridge) -> list[str]:
    """Everything that decides where frames go, a line each, in one order."""
    lines = [f"vlan-filtering {_on(bridge.vlan_filtering)}", f"spanning-tree {_on(bridge.stp)}"]
    for name, port in sorted(bridge.ports.items(), key=lambda item: natural_key(item[0])):
        lines.append(f"port {name} pvid {_vlan(port.pvid)}")
        lines += [f"port {name} vlan {vlan} {_membership(port, vlan)}" for vlan in sorted(port.members)]
        for what, flag in (
            ("ingress-filtering", port.filters), ("learning", port.learning), ("flood", port.flood),
            ("bcast-flood", port.bcast_flood), ("mcast-flood", port.mcast_flood),
        ):  # fmt: skip
            lines.append(f"port {name} {what} {_on(flag)}")
    lines += [f"entry vlan {vlan} {mac} port {port}" for (vlan, mac), port in sorted(bridge.fdb.items())]
    return lines


def natural_key(text: str) -> tuple[tuple[int, int | str], ...]:
    """A key by which swp2 comes before swp10."""
    parts = re.split(r"(\d+)", text)
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts)


def unified_diff(planned: Mapping[str, Bridge], found: Mapping[str, Bridge]) -> str:
    """What differs between the plan and what was found, as diff -u shows it, a file a switch."""
    lines: list[str] = []
    for name in sorted(planned.keys() | found.keys(), key=natural_key):
        before, after = (settings_lines(of[name]) if name in of else [] for of in (planned, found))
        lines += difflib.unified_diff(before, after, f"planned/{name}", f"found/{name}", lineterm="")
    return "".join(f"{line}\n" for line in lines)
