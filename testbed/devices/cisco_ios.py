"""Commands of Cisco IOS on Catalyst switches.

A port is in one VLAN (`switchport mode access`), or a trunk with one native VLAN and any number of tagged ones: there
is nothing with which a port could be an untagged member of several VLANs. So what fits are plans with one VLAN, trees.
Syntax: Catalyst 2960 and 3750 command references (`switchport …`, `mac address-table static … vlan … interface …`,
`mac address-table aging-time`, `no spanning-tree vlan`, `flowcontrol receive`).
"""

from __future__ import annotations

from testbed.base.errors import Problem
from testbed.devices.dialect import AGEING, Dialect, Writing, header, one_untagged_vlan
from testbed.devices.ios_keywords import port_of
from testbed.devices.port_names import format_ranges
from testbed.devices.read_ios import read_ios
from testbed.devices.settings import PortSettings, SwitchSettings

_LAST_VLAN = 4094


def _refusals(writing: Writing) -> list[Problem]:
    return one_untagged_vlan(
        writing, "an IOS port leaves one VLAN untagged, its access VLAN or the native VLAN of its trunk"
    )


def _write(writing: Writing) -> dict[str, str]:
    return {f"{switch.name}.txt": _commands(writing, switch) for switch in writing.switches}


def _commands(writing: Writing, switch: SwitchSettings) -> str:
    names = [writing.ports.name_port(port.number) for port in switch.ports]
    parked = next(vlan for vlan in range(_LAST_VLAN, 1, -1) if vlan not in switch.vlans)
    lines = [
        "configure terminal",
        *(line for name in names for line in (f"interface {name}", "shutdown", "exit")),
        "vtp mode transparent",
        f"vlan {format_ranges([*(vlan for vlan in switch.vlans if vlan > 1), parked])}",
        "exit",
        f"no spanning-tree vlan 1-{_LAST_VLAN}",
        f"mac address-table aging-time {AGEING}",
    ]
    for port in switch.ports:
        lines += _port(writing, port, parked)
    for vlan, host, number in switch.table.rows():
        name = writing.ports.name_port(number)
        lines.append(f"mac address-table static {format_mac(writing.macs[host])} vlan {vlan} interface {name}")
    return header(writing, switch, "!") + "\n".join([*lines, "end", ""])


def _port(writing: Writing, port: PortSettings, parked: int) -> list[str]:
    """Access port or trunk; the native VLAN of a trunk without one is a VLAN that nothing else is in."""
    lines = [f"interface {writing.ports.name_port(port.number)}", f"description {port.peer}"]
    if not port.used:
        return [*lines, "exit"]
    if port.tagged:
        native = parked if port.pvid is None else port.pvid
        lines += [
            "switchport mode trunk",
            f"switchport trunk native vlan {native}",
            f"switchport trunk allowed vlan {format_ranges([*port.tagged, *port.untagged])}",
        ]
    else:
        lines += ["switchport mode access", f"switchport access vlan {port.pvid}"]
    lines.append("switchport nonegotiate")
    if writing.flow_control != "keep":
        lines.append(f"flowcontrol receive {writing.flow_control}")
    return [*lines, "no shutdown", "exit"]


def format_mac(mac: str) -> str:
    """`0200.0000.0001` for 02:00:00:00:00:01."""
    digits = mac.replace(":", "")
    return f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"


CISCO_IOS = Dialect(
    summary="commands of Cisco IOS (Catalyst); plans with one VLAN only",
    ports="GigabitEthernet1/0/{}",
    floods_by_port=False,
    refusals=_refusals,
    write=_write,
    read=read_ios,
    learns=True,
    port_called=port_of,
    apply="on the switch's console, in privileged mode: paste the file; then copy running-config startup-config",
    notes=(
        "Most Catalysts obey pauses and never send any, so a congested switch drops frames all the same.",
        "Switches that know ISL as well want switchport trunk encapsulation dot1q first.",
    ),
)
