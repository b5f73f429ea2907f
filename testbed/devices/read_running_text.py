"""Read what running Linux bridges print for people: `ip -d link show`, `bridge -d vlan show` and `bridge fdb show`.

The texts become what the same commands print as JSON, which read_running.py reads; they may be in one file or several.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from testbed.base.errors import Problem
from testbed.devices.bridge import Bridge
from testbed.devices.read_lines import make_empty_bridge
from testbed.devices.read_running import read_running

_LINK = re.compile(r"\d+: ([^:@\s]+)(?:@\S+)?: <([A-Z0-9_,-]*)>(.*)")
_TABLE = re.compile(r"port\s+vlan[- ]ids?\s*")
_VLAN = re.compile(r"(?:(\S+)\s+)?(\d{1,4})(?:-(\d{1,4}))?((?: PVID| Egress Untagged)*)\s*")
_ENTRY = re.compile(r"((?:[0-9a-f]{2}:){5}[0-9a-f]{2}) dev (\S+)(?: vlan (\d{1,4}))?(.*)")
_SWITCHES = {"on": True, "off": False}


@dataclass(slots=True)
class _Said:
    """What was read, as rows of JSON."""

    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    vlans: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    unclear: list[Problem] = field(default_factory=list)
    detailed: bool = False  # whether `ip link` was asked for details
    table: bool = False  # whether there is a table of VLANs


def read_running_text(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the file or the folder of one switch; see Dialect.read."""
    said = _Said()
    own = [file for file in files if file.startswith(f"{name}/") or file == f"{name}.txt"]
    for file in sorted(own):
        _read_file(said, file, files[file])
    place = min(own, default=f"{name}.txt")
    missing = [
        command
        for command, there in (("ip -d link show", said.detailed), ("bridge -d vlan show", said.table))
        if not there
    ]
    if missing:
        return make_empty_bridge(
            name, Problem(place, f"lacks what {' and '.join(missing)} print{'s' * (len(missing) < 2)}")
        )
    rows = {
        "link.json": [one for one in said.links.values() if "master" in one],
        "vlan.json": [{"ifname": port, "vlans": vlans} for port, vlans in said.vlans.items()],
        "fdb.json": said.entries,
        "bridge.json": [one for one in said.links.values() if "linkinfo" in one],
    }
    bridge, problems = read_running(name, {f"{name}/{file}": json.dumps(there) for file, there in rows.items()})
    told = [Problem(re.sub(r".*\.json", place, one.key), one.sentence) for one in problems]
    unclear = tuple(Problem(place, one.sentence) for one in bridge.reading.unclear)
    return replace(bridge, reading=replace(bridge.reading, unclear=(*said.unclear, *unclear))), told


def _read_file(said: _Said, file: str, text: str) -> None:
    link: dict[str, Any] | None = None
    port = ""
    for number, line in enumerate(text.splitlines(), 1):
        head, entry = _LINK.match(line), _ENTRY.fullmatch(line.strip())
        if head is not None:
            link = said.links.setdefault(head[1], {"ifname": head[1]})
            link |= {
                "flags": head[2].split(","),
                **_find_pairs(head[3].split(), {"master": "master", "state": "operstate"}),
            }
            port = ""
        elif _TABLE.fullmatch(line):
            link, said.table = None, True
        elif entry is not None:
            said.entries.append(_make_entry(entry))
        elif link is not None:
            _read_details(said, link, line.split())
        elif said.table and line.strip():
            port = _read_vlan(said, f"{file} line {number}", line, port)


def _find_pairs(words: list[str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {wanted[key]: value for key, value in itertools.pairwise(words) if key in wanted}


def _read_details(said: _Said, link: dict[str, Any], words: list[str]) -> None:
    """Lines below a link: its address, its settings as a bridge, or as a port of one."""
    if words[:1] == ["link/ether"]:
        link["address"] = words[1]
    elif words[:1] == ["bridge"]:
        said.detailed = True
        about = dict(zip(words[1::2], words[2::2], strict=False))
        numbers = {key: int(value) for key, value in about.items() if value.isdigit()}
        link["linkinfo"] = {"info_kind": "bridge", "info_data": {**about, **numbers}}
    elif words[:1] == ["bridge_slave"]:
        said.detailed = True
        for key, value in itertools.pairwise(words):
            if key == "state":
                link["state"] = value
            elif value in _SWITCHES:
                link[key] = _SWITCHES[value]
            elif key == "backup_port":
                link[key] = value


def _read_vlan(said: _Said, place: str, line: str, port: str) -> str:
    """A line of the table of VLANs, and the port that the next one may be of."""
    words = line.split()
    if line[:1].isspace() and words[0] == "state":
        if words[1:2] != ["forwarding"]:
            sentence = f"{port} is {' '.join(words[1:2])} in a VLAN by itself, which is not understood"
            said.unclear.append(Problem(place, sentence))
        return port
    if not line[:1].isspace():
        port = words[0]
        said.vlans.setdefault(port, [])
        if words[1:] in ([], ["None"]):
            return port
    found = _VLAN.fullmatch(" ".join(words if not line[:1].isspace() else ["-", *words]))
    if found is None:
        said.unclear.append(Problem(place, f'"{line.strip()[:60]}" is no line of a table of VLANs, and not understood'))
        return port
    flags = [flag for flag in ("PVID", "Egress Untagged") if flag in (found[4] or "")]
    vlan = {"vlan": int(found[2]), "flags": flags} | ({"vlanEnd": int(found[3])} if found[3] else {})
    said.vlans[port].append(vlan)
    return port


def _make_entry(found: re.Match[str]) -> dict[str, Any]:
    words = found[4].split()
    state = next((one for one in ("static", "permanent") if one in words), "")
    vlan = {"vlan": int(found[3])} if found[3] else {}
    return {"mac": found[1], "ifname": found[2], "state": state, **vlan}
