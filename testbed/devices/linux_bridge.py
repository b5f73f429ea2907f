"""A shell script of iproute2 commands a switch, one VLAN-filtering bridge; and the lines that all Linux dialects share.

Syntax: ip-link(8), "BRIDGE Type Support", and bridge(8), `bridge vlan add`, `bridge link set`, `bridge fdb`, both of
iproute2 6.1; `-batch` takes the same lines without the word `bridge` in front.
"""

from __future__ import annotations

from testbed.base.errors import Problem, argument
from testbed.devices.dialect import AGEING, Dialect, Writing, header
from testbed.devices.port_names import range_texts
from testbed.devices.read_linux import read_script
from testbed.devices.settings import PortSettings, SwitchSettings

BRIDGE = "br0"
_MAX_NAME_LENGTH = 15
NO_LEARNING = "Ports learn no addresses, so that no registered one moves."


def long_names(writing: Writing) -> list[Problem]:
    """Refusals of all Linux dialects: names that are longer than IFNAMSIZ allows."""
    names = [writing.ports.name_port(port.number) for switch in writing.switches for port in switch.ports]
    longest = max(names, key=len, default="")
    if len(longest) <= _MAX_NAME_LENGTH:
        return []
    sentence = (
        f'"{longest}" has {len(longest)} characters and Linux takes names of up to {_MAX_NAME_LENGTH}; shorten it'
    )
    return [Problem(argument("ports"), sentence)]


def vlan_lines(writing: Writing, port: PortSettings) -> list[str]:
    """Memberships of a port; a PVID stands alone, since a range has none."""
    add = f"vlan add dev {writing.ports.name_port(port.number)} vid"
    others = [vlan for vlan in port.untagged if vlan != port.pvid]
    lines = [f"{add} {text} untagged" for text in range_texts(others)]
    if port.pvid is not None:
        flags = "pvid untagged" if port.pvid in port.untagged else "pvid"
        lines.insert(0, f"{add} {port.pvid} {flags}")
    return lines + [f"{add} {text}" for text in range_texts(port.tagged) if text != str(port.pvid)]


def flag_lines(writing: Writing, port: PortSettings) -> list[str]:
    """No learning, for every address is registered and a learned one would move an entry; floods as planned.

    A static entry of a Linux bridge moves to the port that its address comes from, unless the port does not learn.
    """
    quiet = "" if port.floods else " flood off bcast_flood off mcast_flood off"
    return [f"link set dev {writing.ports.name_port(port.number)} learning off{quiet}"]


def entry_lines(writing: Writing, switch: SwitchSettings, verb: str = "add") -> list[str]:
    """Static entries. `static`, not the default `local`, which would end frames at the bridge itself."""
    names = {port.number: writing.ports.name_port(port.number) for port in switch.ports}
    return [
        f"fdb {verb} {writing.macs[host]} dev {names[port]} master static vlan {vlan}"
        for vlan, host, port in switch.table.rows()
    ]


def pause_lines(writing: Writing, port: PortSettings) -> list[str]:
    """802.3x pauses by ethtool(8), `-A`."""
    if writing.flow_control == "keep":
        return []
    state = writing.flow_control
    return [f"ethtool -A {writing.ports.name_port(port.number)} rx {state} tx {state}"]


def _write(writing: Writing) -> dict[str, str]:
    return {f"{switch.name}.sh": _script(writing, switch) for switch in writing.switches}


def _script(writing: Writing, switch: SwitchSettings) -> str:
    """Without a default VLAN no frame passes before its VLANs are there; ports come up when all is in place."""
    used = [port for port in switch.ports if port.used]
    names = [writing.ports.name_port(port.number) for port in used]
    # Hundredths of a second.
    links = [
        f"link add name {BRIDGE} type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0 mcast_snooping 0 "
        f"ageing_time {AGEING * 100}",
        *(f"link set dev {name} master {BRIDGE}" for name in names),
    ]
    up = [
        *(f"link set dev {writing.ports.name_port(port.number)} down" for port in switch.ports if not port.used),
        *(f"link set dev {name} up" for name in names),
        f"link set dev {BRIDGE} up",
    ]
    settings = [
        *(line for port in used for line in vlan_lines(writing, port)),
        *(line for port in used for line in flag_lines(writing, port)),
        *entry_lines(writing, switch),
    ]
    return "\n".join(
        (
            "#!/bin/sh",
            header(writing, switch) + "set -eu",
            "ip -batch - <<'END'",
            *links,
            "END",
            "bridge -batch - <<'END'",
            *settings,
            "END",
            *(line for port in used for line in pause_lines(writing, port)),
            "ip -batch - <<'END'",
            *up,
            "END",
            "",
        )
    )


LINUX_BRIDGE = Dialect(
    summary="shell script of ip and bridge commands (iproute2)",
    ports="swp{}",
    floods_by_port=True,
    refusals=long_names,
    write=_write,
    apply="as root on the switch: sh s1.sh; ip link delete br0 undoes it",
    notes=(NO_LEARNING, "A bridge br0 must not be there yet."),
    read=read_script,
)
