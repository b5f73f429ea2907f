"""A shell script of iproute2 commands a switch: one VLAN-filtering bridge.

Syntax: ip-link(8), "BRIDGE Type Support", and bridge(8), both of iproute2 6.1.
"""

from __future__ import annotations

from testbed.export.dialect import AGEING, Dialect, Writing
from testbed.export.linux_lines import (
    BRIDGE,
    NO_LEARNING,
    entry_lines,
    flag_lines,
    header,
    long_names,
    pause_lines,
    vlan_lines,
)
from testbed.export.read_linux import read_script
from testbed.export.settings import SwitchSettings


def _write(writing: Writing) -> dict[str, str]:
    return {f"{switch.name}.sh": _script(writing, switch) for switch in writing.switches}


def _script(writing: Writing, switch: SwitchSettings) -> str:
    """Without a default VLAN no frame passes before its VLANs are there; ports come up when all is in place."""
    used = [port for port in switch.ports if port.used]
    names = [writing.ports.of(port.number) for port in used]
    # Hundredths of a second.
    links = [
        f"link add name {BRIDGE} type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0 mcast_snooping 0 "
        f"ageing_time {AGEING * 100}",
        *(f"link set dev {name} master {BRIDGE}" for name in names),
    ]
    up = [
        *(f"link set dev {writing.ports.of(port.number)} down" for port in switch.ports if not port.used),
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
    models=(),
    floods_by_port=True,
    refusals=long_names,
    write=_write,
    apply="as root on the switch: sh s1.sh; ip link delete br0 undoes it",
    notes=(NO_LEARNING, "A bridge br0 must not be there yet."),
    read=read_script,
)
