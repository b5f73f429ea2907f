"""Read `interfaces` as ifupdown2 carries it out: bridges, their ports with patterns, bonds, VLANs of bridge and port.

The rules are those of ifupdown2's bridge.py and ifupdown-addons-interfaces(5): a port has the VLANs and PVID that it
names itself, else those of its bridge, else PVID 1; `bridge-access` stands for both; the PVID alone is untagged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from testbed.base.errors import Problem
from testbed.base.limits import SWITCH_PORTS, scaled_limit
from testbed.devices.bridge import Bridge
from testbed.devices.read_linux import Draft, carry_out, read_batch
from testbed.devices.vlan_set import VlanSet

BATCH = "testbed-bridge.batch"
_YES = ("yes", "on", "1")
# Constructs, and what becomes of them; documented from here.
OF_BRIDGE = {
    **dict.fromkeys(("bridge-ports", "bridge-vlan-aware", "bridge-stp", "bridge-vids", "bridge-pvid"), "read"),
    **dict.fromkeys(
        (
            "bridge-ageing", "bridge-mcsnoop", "bridge-fd", "bridge-waitport", "bridge-maxwait", "bridge-bridgeprio",
            "bridge-hello", "bridge-maxage", "bridge-mcquerier", "bridge-always-up", "bridge-mcqifaddr",
            "bridge-hashel", "bridge-pathcosts", "bridge-portprios", "bridge-igmp-version", "bridge-mcstats",
        ),
        "passed over",
    ),
}  # fmt: skip
OF_PORT = {
    **dict.fromkeys(("bridge-vids", "bridge-pvid", "bridge-access", "bridge-allow-untagged"), "read"),
    **dict.fromkeys(
        ("bridge-learning", "bridge-unicast-flood", "bridge-multicast-flood", "bridge-broadcast-flood"), "read"
    ),
    **dict.fromkeys(
        ("bridge-pathcosts", "bridge-portprios", "bridge-portmcrouter", "bridge-portmcfl"),
        "passed over",
    ),
}
_FLAGS = {
    "bridge-learning": "learning", "bridge-unicast-flood": "flood", "bridge-multicast-flood": "mcast_flood",
    "bridge-broadcast-flood": "bcast_flood",
}  # fmt: skip
_SAME = {"bridge-trunk": "bridge-vids", "bond-ports": "bond-slaves"}  # other names of an attribute
_SEVERAL = ("bridge-ports", "bridge-vids", "bond-slaves")  # those whose lines add up
_BRACKETS = re.compile(r"([A-Za-z0-9_.-]*)\[(\d{1,4})-(\d{1,4})\](.*)")
_DASH = re.compile(r"([A-Za-z0-9_.-]*[A-Za-z])(\d{1,4})-(\d{1,4})(.*)")
# Cumulus Linux 5 keeps these, and ifupdown2 there refuses lists with them.
_RESERVED = VlanSet.span(3725, 3999)


@dataclass(slots=True)
class _Stanza:
    """What was said of one interface."""

    place: str = ""  # file and line where it begins
    said: dict[str, str] = field(default_factory=dict)  # attribute → value
    commands: list[str] = field(default_factory=list)  # what it runs


def read_ifupdown2(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the folder of one switch; see Dialect.read."""
    draft = Draft()
    file = f"{name}/interfaces"
    found: dict[str, _Stanza] = {}
    _read_stanzas(draft, files, name, file, found, {file})
    bridges = {device: one for device, one in found.items() if "bridge-ports" in one.said}
    plugged = {device: one for device, one in bridges.items() if one.said["bridge-ports"] != "none"}
    if not bridges:
        draft.problems.append(Problem(file, f"has no bridge, so {name} cannot be checked"))
        return draft.finish(name)
    for device, one in list((plugged or bridges).items())[1:]:
        sentence = f"{device}: is another bridge of {name}; save each bridge with its ports as a switch of its own"
        draft.unclear.append(Problem(one.place, sentence))
    device, bridge = next(iter((plugged or bridges).items()))
    _read_bridge(draft, device, bridge, found)
    channels = {
        port: bond for bond in draft.ports for port in found.get(bond, _Stanza()).said.get("bond-slaves", "").split()
    }
    path = f"{name}/{BATCH}"
    if path in files:
        read_batch(draft, path, files[path])
    return draft.finish(name, channels)


def _read_bridge(draft: Draft, device: str, bridge: _Stanza, found: Mapping[str, _Stanza]) -> None:
    said, place = bridge.said, bridge.place
    filtering, stp = (str(int(said.get(key) in _YES)) for key in ("bridge-vlan-aware", "bridge-stp"))
    words = ["name", device, "type", "bridge", "vlan_filtering", filtering, "stp_state", stp]
    # ifupdown2 gives each port its PVID itself.
    carry_out(draft, ["ip", "link", "add", *words, "vlan_default_pvid", "0"], place)
    _tell_unknown(draft, device, bridge, OF_BRIDGE)
    ports = dict.fromkeys(_ports_of(draft, said["bridge-ports"], place, found))
    cumulus = any(port.startswith("swp") for port in ports)
    for port in ports:
        stanza = found.get(port, _Stanza(place))
        if "." in port and port.rpartition(".")[2].isdigit():
            sentence = f"{port} is a VLAN of another interface as a port of the bridge, which is not understood"
            draft.unclear.append(Problem(place, sentence))
        carry_out(draft, ["ip", "link", "set", "dev", port, "master", device], place)
        _read_port(draft, port, stanza, said, cumulus=cumulus)


def _read_port(draft: Draft, port: str, stanza: _Stanza, bridge: Mapping[str, str], *, cumulus: bool) -> None:
    said, place = stanza.said, stanza.place
    _tell_unknown(draft, port, stanza, OF_PORT)
    if said.get("link-down", "no") in _YES:
        draft.up[port] = False
    for key, flag in _FLAGS.items():
        if key in said:
            carry_out(draft, ["bridge", "link", "set", "dev", port, flag, "on" if said[key] in _YES else "off"], place)
    access = said.get("bridge-access", "")
    vids = access or said.get("bridge-vids") or bridge.get("bridge-vids", "")
    pvid: str | None = access or said.get("bridge-pvid") or bridge.get("bridge-pvid", "")
    if not access and said.get("bridge-allow-untagged", "yes") not in _YES:
        pvid = None
    elif not pvid:
        pvid = "1"
        draft.pvid_default = "ifupdown2-pvid"
    by_default = pvid is not None and not access and "bridge-pvid" not in said and "bridge-pvid" not in bridge
    add = ["bridge", "vlan", "add", "dev", port, "vid"]
    for vid in () if vids == "none" else re.split(r"[\s,]+", vids.strip()):
        if vid:
            carry_out(draft, [*add, vid], place)
    if pvid is not None:
        carry_out(draft, [*add, pvid, "pvid", "untagged"], place)
    if by_default:
        draft.pvid_by_default.add(port)
    if cumulus and port in draft.ports and VlanSet.from_ids(draft.ports[port].members) & _RESERVED:
        sentence = (
            f"{port} has VLANs of 3725 to 3999, which Cumulus Linux keeps for itself: ifupdown2 refuses the whole list "
            "there; take them out, or, on Debian, where they are VLANs like others, name ports otherwise than swpN"
        )
        draft.unclear.append(Problem(place, sentence))


def _tell_unknown(draft: Draft, device: str, stanza: _Stanza, known: Mapping[str, str]) -> None:
    """Settings of a bridge or port that may decide where frames go, and are not read."""
    for key, value in stanza.said.items():
        if key.startswith("bridge-") and key not in known:
            sentence = f'{device}: "{key} {value}" may decide which frames pass, and is not understood'
            draft.unclear.append(Problem(stanza.place, sentence))
    for command in stanza.commands:
        words = command.split()
        if words[:1] and words[0].rpartition("/")[2] in ("bridge", "ip", "brctl") and not command.endswith(BATCH):
            sentence = f'{device}: the command "{command}" may decide which frames pass, and is not understood'
            draft.unclear.append(Problem(stanza.place, sentence))


def _ports_of(draft: Draft, text: str, place: str, found: Mapping[str, _Stanza]) -> Iterator[str]:
    """Ports of a list in which `glob` and `regex` stand before a pattern."""
    pattern = ""
    for word in text.split():
        if word in ("glob", "regex") and not pattern:
            pattern = word
        elif pattern == "glob":
            pattern = ""
            names = list(_expand(word))
            if names:
                yield from names
            else:
                sentence = f'bridge-ports: "glob {word}" is no range such as swp1-8 or swp[1-8]; name the ports'
                draft.unclear.append(Problem(place, sentence))
        elif pattern == "regex":
            pattern = ""
            sentence = (
                f'bridge-ports: "regex {word}" takes the interfaces of the machine that it matches, which no file '
                "tells; name the ports"
            )
            draft.unclear.append(Problem(place, sentence))
            yield from _match(word, found)
        elif word != "none":
            yield word


def _match(expression: str, found: Mapping[str, _Stanza]) -> Iterator[str]:
    """Interfaces with a section of their own that an expression matches, of those that are simple enough to try."""
    plain = re.fullmatch(r"\(?([A-Za-z0-9_-]*)(\.\*|\[0-9\][*+]|\\d[*+])\)?\$?", expression)
    if plain is not None:
        yield from (name for name in found if re.fullmatch(rf"{plain[1]}{plain[2]}", name) and name != "lo")


def _expand(word: str) -> list[str]:
    """Names of `swp1-8`, `swp[1-8]`, `swp[1-2]s[0-3]`; none of what is no such range."""
    parts = _BRACKETS.fullmatch(word) or _DASH.fullmatch(word)
    if parts is None:
        return []
    before, first, last, after = parts.groups()
    numbers = range(int(first), int(last) + 1)
    if len(numbers) > scaled_limit(SWITCH_PORTS):
        return []
    endings = _expand(f"x{after}") if "[" in after else [f"x{after}"]
    return [f"{before}{number}{ending[1:]}" for number in numbers for ending in endings]


def _read_stanzas(
    draft: Draft, files: Mapping[str, str], name: str, file: str, found: dict[str, _Stanza], seen: set[str]
) -> None:
    """Attributes of each interface, of a file and those that it names by `source`."""
    current, templates = _Stanza(), False
    text = files.get(file, "").replace("\\\n", " ")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        place = f"{file} line {number}"
        if not words or words[0].startswith("#"):
            continue
        if words == ["iface"]:
            draft.problems.append(Problem(place, "iface names no interface"))
            current = _Stanza()
        elif words[0] == "iface":
            current = found.setdefault(words[1], _Stanza(place))
        elif words[0] in ("source", "source-directory"):
            _read_source(draft, files, name, words, place, found, seen)
        elif words[0].startswith(("%", "<%")) or "${" in line or words[0] in ("mapping", "template"):
            if not templates:
                sentence = f'"{line.strip()[:60]}" is of a template and is not understood; save what ifquery -a prints'
                draft.unclear.append(Problem(place, sentence))
            templates, current = True, _Stanza()
        elif words[0] == "vlan":
            current = _Stanza()  # a VLAN of the bridge as an interface of its own, which is no port
        elif words[0] in ("up", "post-up", "pre-up", "down", "post-down", "pre-down"):
            if "down" not in words[0]:
                current.commands.append(" ".join(words[1:]))
        elif words[0] != "auto" and not words[0].startswith("allow-"):
            _set(draft, current, words, place)


def _set(draft: Draft, stanza: _Stanza, words: list[str], place: str) -> None:
    key, value = _SAME.get(words[0], words[0]), " ".join(words[1:])
    before = stanza.said.get(key)
    if before is not None and key in _SEVERAL:
        value = f"{before} {value}"
    elif before not in (None, value) and key.startswith("bridge-"):
        sentence = f'"{key}" stands here twice with different values, which is not understood; say it in one line'
        draft.unclear.append(Problem(place, sentence))
    stanza.said[key] = value


def _read_source(
    draft: Draft, files: Mapping[str, str], name: str, words: list[str], place: str, found: dict[str, _Stanza],
    seen: set[str],
) -> None:  # fmt: skip
    """Files of the saved folder that a line takes in; what is not saved is told."""
    path = " ".join(words[1:]).removeprefix("/etc/network/")
    pattern = f"{name}/{path}/*" if words[0] == "source-directory" else f"{name}/{path}"
    there = [file for file in files if fnmatchcase(file, pattern)]
    if not there:
        sentence = (
            f'"{" ".join(words)[:60]}": no such file is saved beside it; save it, or take the line out if there is none'
        )
        draft.unclear.append(Problem(place, sentence))
    for file in sorted(set(there) - seen):
        seen.add(file)
        _read_stanzas(draft, files, name, file, found, seen)
