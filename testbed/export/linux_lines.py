"""Lines of iproute2's `bridge` that three Linux dialects share.

Syntax: bridge(8) of iproute2 6.1, `bridge vlan add`, `bridge link set`, `bridge fdb`; `-batch` takes the same lines
without the word `bridge` in front.
"""

from __future__ import annotations

from testbed.errors import Problem
from testbed.export.dialect import Writing
from testbed.export.names import range_texts
from testbed.export.settings import PortSettings, SwitchSettings

BRIDGE = "br0"
_LONGEST_NAME = 15
NO_LEARNING = "Ports learn no addresses, so that no registered one moves."


def long_names(writing: Writing) -> list[Problem]:
    """Refusals of all Linux dialects: names that are longer than IFNAMSIZ allows."""
    names = [writing.ports.of(port.number) for switch in writing.switches for port in switch.ports]
    longest = max(names, key=len, default="")
    if len(longest) <= _LONGEST_NAME:
        return []
    sentence = (
        f'"{longest}" has {len(longest)} letters and Linux takes names of up to {_LONGEST_NAME}; use a shorter pattern'
    )
    return [Problem("--ports", sentence)]


def vlan_lines(writing: Writing, port: PortSettings) -> list[str]:
    """Memberships of a port; a PVID stands alone, since a range has none."""
    add = f"vlan add dev {writing.ports.of(port.number)} vid"
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
    return [f"link set dev {writing.ports.of(port.number)} learning off{quiet}"]


def entry_lines(writing: Writing, switch: SwitchSettings, verb: str = "add") -> list[str]:
    """Static entries. `static`, not the default `local`, which would end frames at the bridge itself."""
    names = {port.number: writing.ports.of(port.number) for port in switch.ports}
    return [
        f"fdb {verb} {writing.macs[host]} dev {names[port]} master static vlan {vlan}"
        for vlan, host, port in switch.table.rows()
    ]


def pause_lines(writing: Writing, port: PortSettings) -> list[str]:
    """802.3x pauses by ethtool(8), `-A`."""
    if writing.flow_control == "keep":
        return []
    state = writing.flow_control
    return [f"ethtool -A {writing.ports.of(port.number)} rx {state} tx {state}"]


def header(writing: Writing, switch: SwitchSettings, sign: str = "#") -> str:
    """First lines of a file: whose it is, and where each port leads."""
    lines = [f"{sign} {switch.name} of {writing.title}"]
    for port in switch.ports:
        end = f"{port.peer} {writing.ports.of(port.peer_port)}" if port.peer_port else port.peer
        lines.append(f"{sign} {writing.ports.of(port.number)}: {end}{'' if port.used else ', no path uses it'}")
    return "\n".join(lines) + "\n"
