"""Files for systemd-networkd, a folder a switch, and a unit for what networkd cannot say.

Syntax: systemd.netdev(5) [Bridge], systemd.network(5) [Network], [Bridge], [BridgeVLAN] of systemd 252. networkd's own
[BridgeFDB] is not used: it adds entries in the state NUD_PERMANENT (systemd, src/network/networkd-bridge-fdb.c), which
a bridge takes for an address of its own and forwards nothing to. It has no setting for floods of broadcasts either. The
unit does both with bridge(8), and begins anew until networkd has put the ports in place; `fdb replace` can be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.errors import Problem
from testbed.export.bridge import Bridge
from testbed.export.dialect import AGEING, Dialect, Writing
from testbed.export.linux_lines import BRIDGE, NO_LEARNING, entry_lines, flag_lines, header, long_names, pause_lines
from testbed.export.names import range_texts
from testbed.export.read_networkd import read_networkd
from testbed.export.settings import PortSettings, SwitchSettings

_BATCH = "testbed-bridge.batch"


def _write(writing: Writing) -> dict[str, str]:
    return {f"{switch.name}/{name}": text for switch in writing.switches for name, text in _files(writing, switch)}


def _files(writing: Writing, switch: SwitchSettings) -> list[tuple[str, str]]:
    top = header(writing, switch)
    used = [port for port in switch.ports if port.used]
    netdev = (
        f"{top}[NetDev]\nName={BRIDGE}\nKind=bridge\n\n[Bridge]\nVLANFiltering=yes\nDefaultPVID=none\nSTP=no\n"
        f"MulticastSnooping=no\nAgeingTimeSec={AGEING}\n"
    )
    network = f"[Match]\nName={BRIDGE}\n\n[Link]\nRequiredForOnline=no\n\n[Network]\nLinkLocalAddressing=no\n"
    batch = [*(line for port in used for line in flag_lines(writing, port)), *entry_lines(writing, switch, "replace")]
    return [
        (f"10-{BRIDGE}.netdev", netdev),
        (f"10-{BRIDGE}.network", network),
        *((f"20-{writing.ports.of(port.number)}.network", _port(writing, port)) for port in switch.ports),
        (_BATCH, "".join(f"{line}\n" for line in batch)),
        ("testbed-bridge.service", _unit([line for port in used for line in pause_lines(writing, port)])),
    ]


def _port(writing: Writing, port: PortSettings) -> str:
    match = f"[Match]\nName={writing.ports.of(port.number)}\n\n[Network]\nLinkLocalAddressing=no\n"
    if not port.used:
        return match + "\n[Link]\nActivationPolicy=always-down\n"
    floods = "yes" if port.floods else "no"
    bridge = f"Bridge={BRIDGE}\n\n[Bridge]\nLearning=no\nUnicastFlood={floods}\nMulticastFlood={floods}\n"
    vlans = [
        *(f"VLAN={text}\n" for text in range_texts(port.tagged)),
        *(f"VLAN={text}\nEgressUntagged={text}\n" for text in range_texts(port.untagged)),
        *([] if port.pvid is None else [f"PVID={port.pvid}\n"]),
    ]
    return match + bridge + "".join(f"\n[BridgeVLAN]\n{vlan}" for vlan in vlans)


def _unit(pauses: list[str]) -> str:
    commands = [f"/sbin/bridge -batch /etc/systemd/network/{_BATCH}", *(f"/sbin/{line}" for line in pauses)]
    return (
        "[Unit]\nDescription=Static MAC entries and floods of the bridge\nAfter=systemd-networkd.service\n"
        "StartLimitIntervalSec=0\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nRestart=on-failure\nRestartSec=1\n"
        + "".join(f"ExecStart={command}\n" for command in commands)
        + "\n[Install]\nWantedBy=multi-user.target\n"
    )


def _read(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    return read_networkd(name, files, _BATCH)


NETWORKD = Dialect(
    summary="files for systemd-networkd, with a unit for MAC entries",
    ports="swp{}",
    models=(),
    floods_by_port=True,
    refusals=long_names,
    write=_write,
    apply=(
        "on the switch: copy s1/*.netdev, s1/*.network and s1/*.batch to /etc/systemd/network and s1/*.service to "
        "/etc/systemd/system; systemctl enable --now systemd-networkd testbed-bridge"
    ),
    notes=(
        NO_LEARNING,
        "Static MAC entries stand in a batch file that a unit loads: networkd's [BridgeFDB] would give them to the "
        "bridge itself.",
    ),
    read=_read,
)
