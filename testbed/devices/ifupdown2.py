"""Files for ifupdown2, a folder a switch: `interfaces`, and a batch file of bridge(8) commands; written and read back.

Syntax: ifupdown-addons-interfaces(5) of ifupdown2 3.0 (bridge-vlan-aware, bridge-ports, bridge-stp, bridge-ageing,
bridge-mcsnoop, bridge-vids, bridge-pvid, bridge-allow-untagged). Its `bridge-vids` are tagged but for the PVID, so the
batch file makes the others untagged; the ports are in the bridge when the bridge's own post-up commands run.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge
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
from testbed.devices.read_linux import Draft, carry_out, read_batch
from testbed.devices.settings import PortSettings, SwitchSettings

_BATCH = "testbed-bridge.batch"


def _write(writing: Writing) -> dict[str, str]:
    files = {}
    for switch in writing.switches:
        files[f"{switch.name}/interfaces"] = _interfaces(writing, switch)
        files[f"{switch.name}/{_BATCH}"] = "".join(f"{line}\n" for line in _batch(writing, switch))
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
        f"    post-up bridge -batch /etc/network/{_BATCH}",
        *(f"    post-up {line}" for port in used for line in pause_lines(writing, port)),
    ]
    return header(writing, switch) + "".join(_port(writing, port) for port in used) + "\n".join(lines) + "\n"


def _port(writing: Writing, port: PortSettings) -> str:
    name = writing.ports.name_port(port.number)
    pvid = "bridge-allow-untagged no" if port.pvid is None else f"bridge-pvid {port.pvid}"
    vids = " ".join(range_texts([vlan for vlan in (*port.tagged, *port.untagged) if vlan != port.pvid]))
    lines = [f"auto {name}", f"iface {name}", f"    {pvid}", *([f"    bridge-vids {vids}"] if vids else [])]
    return "\n".join(lines) + "\n\n"


_YES = ("yes", "on")


def read_ifupdown2(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the folder of one switch; see Dialect.read."""
    draft = Draft()
    file = f"{name}/interfaces"
    stanzas = _stanzas(draft, files.get(file, ""), file)
    bridges = {device: said for device, said in stanzas.items() if "bridge-ports" in said}
    if not bridges:
        draft.problems.append(Problem(file, f"has no bridge, so {name} cannot be checked"))
        return draft.finish(name)
    for device, said in bridges.items():
        filtering, stp = (str(int(said.get(key) in _YES)) for key in ("bridge-vlan-aware", "bridge-stp"))
        words = ["name", device, "type", "bridge", "vlan_filtering", filtering, "stp_state", stp]
        # ifupdown2 gives a port without bridge-pvid the PVID 1.
        carry_out(draft, ["ip", "link", "add", *words, "vlan_default_pvid", "0"], file)
        _tell_unknown(draft, device, said, _OF_BRIDGE, file)
        ports = said["bridge-ports"].split()
        if ports[:1] and ports[0] in ("glob", "regex"):
            sentence = f'bridge-ports "{said["bridge-ports"]}" is a pattern, and is not understood; name the ports'
            draft.unclear.append(Problem(file, sentence))
        for port in ports:
            carry_out(draft, ["ip", "link", "set", "dev", port, "master", device], file)
            _read_port(draft, port, stanzas.get(port, {}), file)
    path = f"{name}/{_BATCH}"
    if path in files:
        read_batch(draft, path, files[path])
    return draft.finish(name)


_OF_BRIDGE = frozenset({
    "bridge-vlan-aware", "bridge-ports", "bridge-stp", "bridge-ageing", "bridge-mcsnoop", "bridge-fd",
    "bridge-waitport", "bridge-maxwait", "bridge-bridgeprio", "bridge-hello", "bridge-maxage", "bridge-mcquerier",
    "bridge-always-up",
})  # fmt: skip
_OF_PORT = frozenset({
    "bridge-vids", "bridge-pvid", "bridge-allow-untagged", "bridge-access", "bridge-pathcosts", "bridge-portprios",
    "bridge-learning", "bridge-unicast-flood", "bridge-multicast-flood", "bridge-broadcast-flood",
})  # fmt: skip
_FLAGS = {
    "bridge-learning": "learning", "bridge-unicast-flood": "flood", "bridge-multicast-flood": "mcast_flood",
    "bridge-broadcast-flood": "bcast_flood",
}  # fmt: skip


def _tell_unknown(draft: Draft, device: str, said: Mapping[str, str], known: Set[str], file: str) -> None:
    """Settings of a bridge or port that may decide where frames go, and are not read."""
    for key, value in said.items():
        own = key in ("up", "post-up", "pre-up") and value.split()[:1] in (["bridge"], ["ip"], ["brctl"])
        if (key.startswith("bridge-") and key not in known) or (own and not value.endswith(f"/{_BATCH}")):
            sentence = f'{device}: "{key} {value}" may decide which frames pass, and is not understood'
            draft.unclear.append(Problem(file, sentence))


def _read_port(draft: Draft, port: str, said: Mapping[str, str], file: str) -> None:
    add = ["bridge", "vlan", "add", "dev", port, "vid"]
    _tell_unknown(draft, port, said, _OF_PORT, file)
    if said.get("link-down", "no") in _YES:
        draft.up[port] = False
    for key, flag in _FLAGS.items():
        if key in said:
            carry_out(draft, ["bridge", "link", "set", "dev", port, flag, "on" if said[key] in _YES else "off"], file)
    if "bridge-access" in said:
        carry_out(draft, [*add, said["bridge-access"], "pvid", "untagged"], file)
        return
    for vids in said.get("bridge-vids", "").split():
        carry_out(draft, [*add, vids], file)
    if said.get("bridge-allow-untagged", "yes") in _YES:
        carry_out(draft, [*add, said.get("bridge-pvid", "1"), "pvid", "untagged"], file)
        if "bridge-pvid" not in said:
            draft.pvid_default = "ifupdown2-pvid"
            draft.pvid_by_default.add(port)


def _stanzas(draft: Draft, text: str, file: str) -> dict[str, dict[str, str]]:
    """Attributes of each interface; of those that may occur several times only the last."""
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words == ["iface"]:
            draft.problems.append(Problem(f"{file} line {number}", "iface names no interface"))
            current = {}
        elif words[0] == "iface":
            current = found.setdefault(words[1], {})
        elif words[0].startswith(("%", "<%")) or words[0] in ("source", "source-directory", "mapping", "template"):
            sentence = f'"{line.strip()[:60]}" is not understood; save what ifquery -a prints'
            draft.unclear.append(Problem(f"{file} line {number}", sentence))
        elif words[0] in current and words[0].startswith("bridge-"):
            sentence = f'"{words[0]}" stands here twice, which is not understood; say it in one line'
            draft.unclear.append(Problem(f"{file} line {number}", sentence))
        elif words[0] != "auto" and not words[0].startswith("allow-"):
            current[words[0]] = " ".join(words[1:])
    return found


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
