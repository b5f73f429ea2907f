"""Read files of systemd-networkd back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.errors import Problem
from testbed.export.bridge import Bridge
from testbed.export.read_linux import Draft, carry_out, read_batch

_TRUE = {"yes": "on", "true": "on", "on": "on", "1": "on", "no": "off", "false": "off", "off": "off", "0": "off"}
_FLAGS = {"Learning": "learning", "UnicastFlood": "flood", "MulticastFlood": "mcast_flood"}
# Sections with their keys, in the order of the file; a section may stand more than once.
Sections = list[tuple[str, list[tuple[str, str]]]]


def read_networkd(name: str, files: Mapping[str, str], batch: str) -> tuple[Bridge, list[Problem]]:
    """Read the folder of one switch; see Dialect.read.

    Args:
        name: of the switch.
        files: name → text of the files of the export.
        batch: name of the file for `bridge -batch`.
    """
    draft = Draft()
    own = {file.removeprefix(f"{name}/"): text for file, text in files.items() if file.startswith(f"{name}/")}
    netdevs = [file for file in own if file.endswith(".netdev")]
    if not netdevs:
        draft.problems.append(Problem(f"{name}/", f"has no .netdev file, so nothing is known of {name}"))
        return draft.finish(name)
    for file in netdevs:
        _netdev(draft, _sections(own[file]), f"{name}/{file}")
    for file in sorted(own):
        if file.endswith(".network"):
            _network(draft, _sections(own[file]), f"{name}/{file}")
    if batch in own:
        read_batch(draft, f"{name}/{batch}", own[batch])
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


def _last(sections: Sections, section: str, key: str, default: str) -> str:
    return [default, *_values(sections, section, key)][-1]


def _netdev(draft: Draft, sections: Sections, place: str) -> None:
    """A bridge, in the words of `ip link`; networkd leaves to the kernel what is not said."""
    said = {
        "name": _last(sections, "NetDev", "Name", ""),
        "type": _last(sections, "NetDev", "Kind", ""),
        "vlan_filtering": _bit(_last(sections, "Bridge", "VLANFiltering", "no")),
        "stp_state": _bit(_last(sections, "Bridge", "STP", "no")),
        "vlan_default_pvid": _last(sections, "Bridge", "DefaultPVID", "1").replace("none", "0"),
    }
    carry_out(draft, ["ip", "link", "add", *(word for pair in said.items() for word in pair)], place)


def _bit(value: str) -> str:
    return "1" if _TRUE.get(value) == "on" else "0"


def _network(draft: Draft, sections: Sections, place: str) -> None:
    device = _last(sections, "Match", "Name", "")
    for master in _values(sections, "Network", "Bridge"):
        carry_out(draft, ["ip", "link", "set", "dev", device, "master", master], place)
        pvid = _last(sections, "BridgeVLAN", "PVID", "")
        untagged = _vlans(_values(sections, "BridgeVLAN", "EgressUntagged"))
        # PVID= and EgressUntagged= make a member as well (systemd.network(5)).
        for vlan in _vlans([*_values(sections, "BridgeVLAN", "VLAN"), *untagged, *([pvid] if pvid else [])]):
            flags = ["untagged"] * (vlan in untagged) + ["pvid"] * (vlan == pvid)
            carry_out(draft, ["bridge", "vlan", "add", "dev", device, "vid", vlan, *flags], place)
        for key, flag in _FLAGS.items():
            for value in _values(sections, "Bridge", key):
                carry_out(draft, ["bridge", "link", "set", "dev", device, flag, _TRUE.get(value, value)], place)


def _vlans(texts: Iterable[str]) -> list[str]:
    """Each VLAN of texts such as `10-17`; a text that is no number is left for the command to refuse."""
    found: list[str] = []
    for text in texts:
        first, dash, last = text.partition("-")
        if dash and first.isdigit() and last.isdigit():
            found += [str(vlan) for vlan in range(int(first), int(last) + 1)]
        else:
            found.append(text)
    return list(dict.fromkeys(found))
