"""Files for systemd-networkd, a folder a switch, and a unit for what it cannot express; written and read back.

Syntax: systemd.netdev(5) [Bridge], systemd.network(5) [Network], [Bridge], [BridgeVLAN] of systemd 252. networkd's own
[BridgeFDB] is not used: it adds entries in the state NUD_PERMANENT (systemd, src/network/networkd-bridge-fdb.c), which
a bridge takes for an address of its own and forwards nothing to. It has no setting for floods of broadcasts either. The
unit does both with bridge(8), and begins anew until networkd has put the ports in place; `fdb replace` can be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge
from testbed.devices.dialect import AGEING, Dialect, Writing, header
from testbed.devices.linux_bridge import BRIDGE, NO_LEARNING, entry_lines, flag_lines, long_names, pause_lines
from testbed.devices.port_names import range_texts
from testbed.devices.read_linux import Draft, carry_out, read_batch
from testbed.devices.settings import PortSettings, SwitchSettings

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
        *((f"20-{writing.ports.name_port(port.number)}.network", _port(writing, port)) for port in switch.ports),
        (_BATCH, "".join(f"{line}\n" for line in batch)),
        ("testbed-bridge.service", _unit([line for port in used for line in pause_lines(writing, port)])),
    ]


def _port(writing: Writing, port: PortSettings) -> str:
    match = f"[Match]\nName={writing.ports.name_port(port.number)}\n\n[Network]\nLinkLocalAddressing=no\n"
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


_TRUE = {"yes": "on", "true": "on", "on": "on", "1": "on", "no": "off", "false": "off", "off": "off", "0": "off"}
_FLAGS = {"Learning": "learning", "UnicastFlood": "flood", "MulticastFlood": "mcast_flood"}
# Settings of a port that change which frames pass in a way that is not modelled.
_NOT_UNDERSTOOD = ("HairPin", "Isolated", "Locked", "ProxyARP", "ProxyARPWiFi", "NeighborSuppression")
# Sections with their keys, in the order of the file; a section may occur more than once.
Sections = list[tuple[str, list[tuple[str, str]]]]


def read_networkd(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the folder of one switch; see Dialect.read."""
    draft = Draft()
    own = {file.removeprefix(f"{name}/"): text for file, text in files.items() if file.startswith(f"{name}/")}
    netdevs = [file for file in own if file.endswith(".netdev")]
    if not netdevs:
        draft.problems.append(Problem(f"{name}/", f"has no .netdev file, so {name} cannot be checked"))
        return draft.finish(name)
    for file in netdevs:
        _netdev(draft, _sections(own[file]), f"{name}/{file}")
    for file in sorted(own):
        if file.endswith(".network"):
            _network(draft, _sections(own[file]), f"{name}/{file}")
    if _BATCH in own:
        read_batch(draft, f"{name}/{_BATCH}", own[_BATCH])
    return draft.finish(name)


def _sections(text: str) -> Sections:
    found: Sections = []
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("[") and words.endswith("]"):
            found.append((words[1:-1], []))
        elif found and "=" in words and not words.startswith(("#", ";")):
            key, _, value = words.partition("=")
            found[-1][1].append((key.strip(), value.strip()))
    return found


def _values(sections: Sections, section: str, key: str) -> list[str]:
    return [value for name, pairs in sections if name == section for word, value in pairs if word == key]


def _read_last_value(sections: Sections, section: str, key: str, default: str) -> str:
    return [default, *_values(sections, section, key)][-1]


def _netdev(draft: Draft, sections: Sections, place: str) -> None:
    """A bridge, in the words of `ip link`; networkd leaves to the kernel what is not said."""
    said = {
        "name": _read_last_value(sections, "NetDev", "Name", ""),
        "type": _read_last_value(sections, "NetDev", "Kind", ""),
        "vlan_filtering": _bit(_read_last_value(sections, "Bridge", "VLANFiltering", "no")),
        "stp_state": _bit(_read_last_value(sections, "Bridge", "STP", "no")),
        "vlan_default_pvid": _read_last_value(sections, "Bridge", "DefaultPVID", "1").replace("none", "0"),
    }
    carry_out(draft, ["ip", "link", "add", *(word for pair in said.items() for word in pair)], place)
    draft.pvid_default = "" if _values(sections, "Bridge", "DefaultPVID") else "networkd-default-pvid"


def _bit(value: str) -> str:
    return "1" if _TRUE.get(value) == "on" else "0"


def _network(draft: Draft, sections: Sections, place: str) -> None:
    device = _read_last_value(sections, "Match", "Name", "")
    if _read_last_value(sections, "Link", "ActivationPolicy", "up") in ("always-down", "down", "manual"):
        draft.up[device] = False
    if _values(sections, "Network", "Bridge") and any(sign in device for sign in "*?[ !"):
        sentence = f'"{device}" stands for several ports, and is not understood; name each in a file of its own'
        draft.unclear.append(Problem(place, sentence))
    for master in _values(sections, "Network", "Bridge"):
        carry_out(draft, ["ip", "link", "set", "dev", device, "master", master], place)
        pvid = _read_last_value(sections, "BridgeVLAN", "PVID", "")
        untagged = _vlans(_values(sections, "BridgeVLAN", "EgressUntagged"))
        # PVID= and EgressUntagged= make a member as well (systemd.network(5)).
        for vlan in _vlans([*_values(sections, "BridgeVLAN", "VLAN"), *untagged, *([pvid] if pvid else [])]):
            flags = ["untagged"] * (vlan in untagged) + ["pvid"] * (vlan == pvid)
            carry_out(draft, ["bridge", "vlan", "add", "dev", device, "vid", vlan, *flags], place)
        for key in _NOT_UNDERSTOOD:
            if _TRUE.get(_read_last_value(sections, "Bridge", key, "no").lower()) == "on":
                sentence = f"{device}: {key}= decides which frames the port carries, and is not understood"
                draft.unclear.append(Problem(place, sentence))
        for key, flag in _FLAGS.items():
            for value in _values(sections, "Bridge", key):
                carry_out(draft, ["bridge", "link", "set", "dev", device, flag, _TRUE.get(value, value)], place)


_VLAN = re.compile(r"[0-9]{1,4}")  # a range of longer numbers would have no end


def _vlans(texts: Iterable[str]) -> list[str]:
    """Each VLAN of texts such as `10-17`; a text that is no number is left for the command to refuse."""
    found: list[str] = []
    for text in texts:
        first, dash, last = text.partition("-")
        if dash and _VLAN.fullmatch(first) and _VLAN.fullmatch(last):
            found += [str(vlan) for vlan in range(int(first), int(last) + 1)]
        else:
            found.append(text)
    return list(dict.fromkeys(found))


NETWORKD = Dialect(
    summary="files for systemd-networkd, with a unit for MAC entries",
    ports="swp{}",
    floods_by_port=True,
    refusals=long_names,
    write=_write,
    apply=(
        "on the switch: copy s1/*.netdev, s1/*.network and s1/*.batch to /etc/systemd/network and s1/*.service to "
        "/etc/systemd/system; systemctl enable --now systemd-networkd testbed-bridge"
    ),
    notes=(
        NO_LEARNING,
        "Static MAC entries are in a batch file that a unit loads: networkd's [BridgeFDB] would give them to the "
        "bridge itself.",
    ),
    read=read_networkd,
)
