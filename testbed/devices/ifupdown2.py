"""Files for ifupdown2, a folder a switch: `interfaces`, and a batch file of bridge(8) commands.

Syntax: ifupdown-addons-interfaces(5) of ifupdown2 3.0 (bridge-vlan-aware, bridge-ports, bridge-stp, bridge-ageing,
bridge-mcsnoop, bridge-vids, bridge-pvid, bridge-allow-untagged). Its `bridge-vids` are tagged but for the PVID, so the
batch file makes the others untagged; the ports are in the bridge when the bridge's own post-up commands run.
"""

from __future__ import annotations

from testbed.devices.dialect import AGEING, Dialect, Writing, header
from testbed.devices.linux_bridge import (
    BRIDGE,
    NO_LEARNING,
    entry_lines,
    flag_lines,
    long_names,
    pause_lines,
    vlan_lines,
)
from testbed.devices.port_names import range_texts
from testbed.devices.read_ifupdown2 import BATCH, read_ifupdown2
from testbed.devices.settings import PortSettings, SwitchSettings


def _write(writing: Writing) -> dict[str, str]:
    files = {}
    for switch in writing.switches:
        files[f"{switch.name}/interfaces"] = _interfaces(writing, switch)
        files[f"{switch.name}/{BATCH}"] = "".join(f"{line}\n" for line in _batch(writing, switch))
    return files


def _batch(writing: Writing, switch: SwitchSettings) -> list[str]:
    used = [port for port in switch.ports if port.used]
    return [
        *(line for port in used for line in vlan_lines(writing, port) if line.endswith(" untagged")),
        *(line for port in used for line in flag_lines(writing, port)),
        *entry_lines(writing, switch, "replace"),
    ]


def _interfaces(writing: Writing, switch: SwitchSettings) -> str:
    used = [port for port in switch.ports if port.used]
    names = " ".join(writing.ports.name_port(port.number) for port in used)
    lines = [
        f"auto {BRIDGE}",
        f"iface {BRIDGE}",
        "    bridge-vlan-aware yes",
        f"    bridge-ports {names}",
        "    bridge-stp off",
        "    bridge-mcsnoop no",
        f"    bridge-ageing {AGEING}",
        f"    post-up bridge -batch /etc/network/{BATCH}",
        *(f"    post-up {line}" for port in used for line in pause_lines(writing, port)),
    ]
    return header(writing, switch) + "".join(_port(writing, port) for port in used) + "\n".join(lines) + "\n"


def _port(writing: Writing, port: PortSettings) -> str:
    name = writing.ports.name_port(port.number)
    pvid = "bridge-allow-untagged no" if port.pvid is None else f"bridge-pvid {port.pvid}"
    vids = " ".join(range_texts([vlan for vlan in (*port.tagged, *port.untagged) if vlan != port.pvid]))
    lines = [f"auto {name}", f"iface {name}", f"    {pvid}", *([f"    bridge-vids {vids}"] if vids else [])]
    return "\n".join(lines) + "\n\n"


IFUPDOWN2 = Dialect(
    summary="files for ifupdown2 (Debian, Cumulus Linux)",
    ports="swp{}",
    floods_by_port=True,
    refusals=long_names,
    write=_write,
    apply="on the switch: add s1/interfaces to /etc/network/interfaces, copy s1/*.batch to /etc/network; ifreload -a",
    notes=(
        NO_LEARNING,
        "Cumulus Linux keeps VLANs 3725 to 3999 for itself (3600 to 3999 before 4.4), Debian none.",
        "bridge-vids alone would tag all VLANs but the PVID; a batch file that post-up runs makes them untagged.",
    ),
    read=read_ifupdown2,
)
