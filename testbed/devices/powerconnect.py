"""Commands for Dell PowerConnect switches, whose ports in general mode have a PVID and untagged VLANs of their own.

The switches of Koibuchi et al. 2011, Table 2. Syntax: Dell's user's guides and published configurations of the 53xx and
62xx series (`vlan database`, `switchport mode general`, `switchport general …`, `bridge address … permanent`, `bridge
aging-time`; `flowcontrol` is of a port on the 5324, of the whole switch on the 62xx). What general mode means, that
ingress filtering is on unless switched off and that static addresses never age is in the guides (55xx: "General
Ports"; 5324: "Defining Static Addresses").

All ports are shut before the spanning tree protocol is switched off and opened when their VLANs are there: in between
they would be in VLAN 1 together, which has loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testbed.base.errors import Problem
from testbed.devices.dialect import AGEING, DEFAULT_VLAN, Dialect, Writing, header
from testbed.devices.port_names import PortNames, format_ranges, ranges
from testbed.devices.read_powerconnect import port_called, read_powerconnect
from testbed.devices.settings import PortSettings, SwitchSettings


@dataclass(frozen=True, slots=True)
class _Series:
    """What differs from one series to another."""

    ports: str  # pattern of port names
    several: Callable[[PortNames, int, int], str]  # names a run of ports in `interface range ethernet`
    pauses_of_port: bool  # whether flow control is set port by port


def _g_range(names: PortNames, first: int, last: int) -> str:
    """`g(1-4)` on the 5324."""
    numbers = [names.name_port(port).removeprefix(names.before).removesuffix(names.after) for port in (first, last)]
    inside = numbers[0] if first == last else "-".join(numbers)
    return f"{names.before}({inside}){names.after}"


def _unit_range(names: PortNames, first: int, last: int) -> str:
    """`1/g1-1/g4` on the 62xx."""
    return names.name_port(first) if first == last else f"{names.name_port(first)}-{names.name_port(last)}"


_5300 = _Series("g{}", _g_range, pauses_of_port=True)
_6200 = _Series("1/g{}", _unit_range, pauses_of_port=False)


def _refusals(writing: Writing) -> list[Problem]:
    """VLAN 1 holds every port untagged when a switch comes out of its box, and cannot be tagged."""
    return [
        Problem(
            f"{switch.name} {writing.ports.name_port(port.number)} (to {port.peer})",
            "is a tagged member of VLAN 1, the default VLAN, which these switches do not tag; set "
            "assignment.first_vlan: 2 or higher",
        )
        for switch in writing.switches
        for port in switch.ports
        if DEFAULT_VLAN in port.tagged
    ]


def _writer(series: _Series) -> Callable[[Writing], dict[str, str]]:
    def write(writing: Writing) -> dict[str, str]:
        return {f"{switch.name}.txt": _commands(series, writing, switch) for switch in writing.switches}

    return write


def _commands(series: _Series, writing: Writing, switch: SwitchSettings) -> str:
    every = ",".join(
        series.several(writing.ports, first, last) for first, last in ranges(port.number for port in switch.ports)
    )
    vlans = [vlan for vlan in switch.vlans if vlan != DEFAULT_VLAN]
    pauses = writing.flow_control
    lines = [
        "configure",
        f"interface range ethernet {every}",
        "shutdown",
        "exit",
        "no spanning-tree",
        f"bridge aging-time {AGEING}",
        *([] if series.pauses_of_port or pauses == "keep" else ["flowcontrol" if pauses == "on" else "no flowcontrol"]),
        *(["vlan database", f"vlan {format_ranges(vlans)}", "exit"] if vlans else []),
    ]
    for port in switch.ports:
        lines += _port(series, writing, port)
    for vlan in switch.vlans:
        entries = [row for row in switch.table.rows() if row[0] == vlan]
        if entries:
            lines.append(f"interface vlan {vlan}")
            lines += [
                f"bridge address {writing.macs[host]} ethernet {writing.ports.name_port(p)} permanent"
                for _, host, p in entries
            ]
            lines.append("exit")
    used = [port.number for port in switch.ports if port.used]
    if used:
        runs = (series.several(writing.ports, first, last) for first, last in ranges(used))
        lines += [f"interface range ethernet {','.join(runs)}", "no shutdown", "exit"]
    return header(writing, switch, "!") + "\n".join([*lines, "exit", ""])


def _port(series: _Series, writing: Writing, port: PortSettings) -> list[str]:
    """General mode; trunks take in tagged frames only; nothing stays in VLAN 1 that is not planned to."""
    lines = [f"interface ethernet {writing.ports.name_port(port.number)}", f"description {_description(writing, port)}"]
    if port.used:
        lines.append("switchport mode general")
        if port.tagged:
            lines.append(f"switchport general allowed vlan add {format_ranges(port.tagged)} tagged")
        if port.untagged:
            lines.append(f"switchport general allowed vlan add {format_ranges(port.untagged)} untagged")
        if port.pvid is None:
            lines.append("switchport general acceptable-frame-type tagged-only")
        else:
            lines.append(f"switchport general pvid {port.pvid}")
        lines.append("no switchport general ingress-filtering disable")
        if DEFAULT_VLAN not in port.untagged:
            lines.append(f"switchport general allowed vlan remove {DEFAULT_VLAN}")
        if series.pauses_of_port and writing.flow_control != "keep":
            lines.append(f"flowcontrol {writing.flow_control}")
    return [*lines, "exit"]


def _description(writing: Writing, port: PortSettings) -> str:
    return f"{port.peer}-{writing.ports.name_port(port.peer_port)}" if port.peer_port else port.peer


_APPLY = "on the switch's console, in privileged mode: paste the file; then copy running-config startup-config"
_SILENT = (
    "What a switch already has is not removed; start from the factory's settings (delete startup-config, reload).",
    "The switch may hold fewer static addresses than its MAC table has room for: see its data sheet.",
)

POWERCONNECT_5300 = Dialect(
    summary="commands of Dell PowerConnect 5324 in general mode",
    ports=_5300.ports,
    models=("PC5324",),
    floods_by_port=False,
    refusals=_refusals,
    write=_writer(_5300),
    read=read_powerconnect,
    learns=True,
    port_called=port_called,
    apply=_APPLY,
    notes=_SILENT,
)
POWERCONNECT_6200 = Dialect(
    summary="commands of Dell PowerConnect 6224 and 6248 in general mode",
    ports=_6200.ports,
    models=("PC6224", "PC6248"),
    floods_by_port=False,
    refusals=_refusals,
    write=_writer(_6200),
    read=read_powerconnect,
    learns=True,
    port_called=port_called,
    apply=_APPLY,
    notes=_SILENT,
)
