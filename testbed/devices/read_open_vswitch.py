"""Read what `ovsdb-client --format=json dump` prints of Open vSwitch: the VLANs of its ports (ovs-vswitchd.conf.db(5)).

That decides where frames go as long as a bridge forwards as a switch does (NORMAL). One whose rules come from elsewhere
is a problem, since its ports' VLANs then say nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from testbed.base.errors import Problem
from testbed.base.limits import parse_json
from testbed.devices.bridge import Bridge, BridgePort, Entry, Reading
from testbed.devices.read_lines import make_empty_bridge
from testbed.devices.vlan_set import ALL_VLANS, VLAN_0, VlanSet

COMMANDS = ("ovsdb-client --format=json dump", "ovs-appctl fdb/show BRIDGE")
_ALL = ALL_VLANS | {VLAN_0}
# What the spanning tree protocols say in Port.status and Port.rstp_status of a port that carries no frames.
_BLOCKED = {"disabled", "blocking", "listening", "learning", "discarding"}
_ENTRY = re.compile(r"\s*(\d+|LOCAL)\s+(\d+)\s+([0-9a-f:]{17})\s+static\s*")

_Row = dict[str, Any]


def read_open_vswitch(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read NAME.json or NAME/ovsdb.json, and static entries from NAME/fdb.txt; see Dialect.read."""
    file = next((path for path in (f"{name}/ovsdb.json", f"{name}.json") if path in files), None)
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}/ovsdb.json", f"is not there, so {name} cannot be checked"))
    problems: list[Problem] = []
    tables = _tables(files[file], file, problems)
    if problems:
        return make_empty_bridge(name, problems[0])
    bridges = {row["name"]: row for row in tables["Bridge"].values()}
    if len(bridges) != 1 and name not in bridges:
        names = ", ".join(sorted(bridges)) or "none"
        return make_empty_bridge(
            name, Problem(file, f"should have one bridge, or one that is called {name}, and has {names}")
        )
    bridge = bridges[name] if name in bridges else next(iter(bridges.values()))
    if bridge["controller"] or bridge["fail_mode"] == ["secure"]:
        sentence = f"{bridge['name']} takes its rules from a controller, so the VLANs of its ports do not decide"
        problems.append(Problem(file, sentence))
    if bridge["flood_vlans"]:
        problems.append(Problem(file, f"{bridge['name']} has flood_vlans, in which nothing is learned; not read"))
    read = _Ports(file, tables, runs_stp=bool(bridge["stp_enable"] or bridge["rstp_enable"]))
    for number in bridge["ports"]:
        if tables["Port"][number]["name"] != bridge["name"]:  # that is the machine's own
            read.add(tables["Port"][number])
    if bridge["mirrors"]:
        sentence = f"{bridge['name']} mirrors frames: what the port still carries that they go to is not understood"
        read.unclear.append(Problem(file, sentence))
    fdb = _entries(files.get(f"{name}/fdb.txt", ""), read.numbers)
    shows = any(_state(tables["Port"][number]) for number in bridge["ports"])
    reading = Reading(down=read.down, unclear=tuple(read.unclear), shows_states=shows)
    return Bridge(name, True, read.runs_stp, read.ports, fdb, read.channels, reading=reading), problems + read.problems


class _Ports:
    """Ports of the bridge, one after the other."""

    def __init__(self, file: str, tables: Mapping[str, Mapping[str, _Row]], *, runs_stp: bool) -> None:
        self.runs_stp = runs_stp
        self.ports: dict[str, BridgePort] = {}
        self.channels: dict[str, str] = {}
        self.numbers: dict[int, str] = {}
        self.down: dict[str, str] = {}
        self.unclear: list[Problem] = []
        self.problems: list[Problem] = []
        self._file, self._tables = file, tables

    def add(self, port: _Row) -> None:
        """Read one."""
        name = port["name"]
        interfaces = [self._tables["Interface"][one] for one in port["interfaces"]]
        self.numbers |= {int(of): name for one in interfaces for of in one["ofport"]}
        up = [one for one in interfaces if one["admin_state"] != ["down"] and one["link_state"] != ["down"]]
        if len(interfaces) > 1:
            self.channels |= {one["name"]: name for one in up}
            self.down |= {one["name"]: "is down" for one in interfaces if one not in up}
        if any(one["type"] == "patch" for one in interfaces):
            sentence = f"{name} leads to another bridge of this switch; that is not read"
            self.problems.append(Problem(self._file, sentence))
        if port["protected"] is True:
            sentence = f"{name} is protected: which frames it carries then is not understood"
            self.unclear.append(Problem(self._file, sentence))
        state = _state(port) if self.runs_stp else ""
        settings = _port(port, self._file, self.problems)
        if not up:
            self.down[name] = "is down"
        elif state in _BLOCKED:
            self.down[name] = f"is {state}, by its status in the database"
        elif settings is not None:
            self.ports[name] = settings


def _state(port: _Row) -> str:
    """What the spanning tree protocols make of a port, empty where they do not say."""
    for column, key in (("status", "stp_state"), ("rstp_status", "rstp_port_state")):
        said = port[column]
        pairs = said[1] if isinstance(said, list) and len(said) == 2 and said[0] == "map" else []
        state = str(dict(pairs).get(key, "")).lower()
        if state:
            return state
    return ""


def _port(port: _Row, file: str, problems: list[Problem]) -> BridgePort | None:
    """A port by its VLAN mode; without one its tag makes it an access port."""
    mode = next(iter(port["vlan_mode"]), "access" if port["tag"] else "trunk")
    tag = next(iter(port["tag"]), 0) or VLAN_0
    trunks = VlanSet.from_ids(vlan or VLAN_0 for vlan in port["trunks"]) or _ALL
    if mode == "access":
        own = VlanSet.from_ids({tag})
        return BridgePort(tag, own, own)
    if mode == "trunk":
        untagged = trunks & {VLAN_0}
        return BridgePort(VLAN_0 if untagged else None, trunks, untagged)
    if mode in ("native-untagged", "native-tagged"):
        members = trunks | {tag}
        return BridgePort(tag, members, frozenset({tag} if mode == "native-untagged" else ()))
    problems.append(Problem(file, f'{port["name"]} has the VLAN mode "{mode}", which is not read'))
    return None


def _entries(text: str, numbers: Mapping[int, str]) -> dict[Entry, str]:
    """Static entries of what `ovs-appctl fdb/show` prints; others come and go."""
    found = {}
    for line in text.splitlines():
        match = _ENTRY.fullmatch(line)
        if match and match[1] != "LOCAL" and int(match[1]) in numbers:
            found[int(match[2]) or VLAN_0, match[3]] = numbers[int(match[1])]
    return found


# Columns that older versions do not have.
_OPTIONAL: _Row = {
    "mirrors": ["set", []],
    "link_state": ["set", []],
    "protected": False,
    "status": ["map", []],
    "rstp_status": ["map", []],
}
_WANTED = {
    "Bridge": ("name", "ports", "controller", "fail_mode", "flood_vlans", "mirrors", "stp_enable", "rstp_enable"),
    "Port": ("name", "tag", "trunks", "vlan_mode", "interfaces", "protected", "status", "rstp_status"),
    "Interface": ("name", "type", "ofport", "admin_state", "link_state"),
}


def _tables(text: str, file: str, problems: list[Problem]) -> dict[str, dict[str, _Row]]:
    """Table → row by its number → column; sets and maps as lists."""
    found: dict[str, dict[str, _Row]] = {}
    number = 0
    try:
        for line in text.splitlines():
            number += 1
            said = parse_json(line)
            name = str(said["caption"]).removesuffix(" table")
            rows = [_OPTIONAL | dict(zip(said["headings"], row, strict=True)) for row in said["data"]]
            if name in _WANTED:
                found[name] = {row["_uuid"][1]: {key: _plain(row[key], key) for key in _WANTED[name]} for row in rows}
        missing = _WANTED.keys() - found.keys()
        if missing:
            problems.append(Problem(file, f"lacks the table {min(missing)}; the file may be cut off"))
        elif any(one not in found["Port"] for row in found["Bridge"].values() for one in row["ports"]):
            problems.append(Problem(file, "names a port that it does not have; the file may be cut off"))
        elif any(one not in found["Interface"] for row in found["Port"].values() for one in row["interfaces"]):
            problems.append(Problem(file, "names an interface that it does not have; the file may be cut off"))
    except json.JSONDecodeError as error:
        problems.append(Problem(f"{file} line {number}", f"is not JSON: {error.msg}; the file may be cut off"))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
        problems.append(Problem(file, f"is not what {COMMANDS[0]} prints"))
    return found


_SETS = {
    "ports", "controller", "fail_mode", "flood_vlans", "mirrors", "tag", "trunks", "vlan_mode", "interfaces", "ofport",
    "admin_state", "link_state",
}  # fmt: skip


def _plain(value: Any, column: str) -> Any:
    """A value of OVSDB's JSON (RFC 7047, 5.1): a set as a list, a reference as its number."""
    if column not in _SETS:
        return value
    entries = value[1] if isinstance(value, list) and value[0] == "set" else [value]
    return [one[1] if isinstance(one, list) and one[0] == "uuid" else one for one in entries]
