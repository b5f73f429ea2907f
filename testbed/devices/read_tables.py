"""Read SONiC's JSON and the two CSV tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.base.errors import Problem
from testbed.base.limits import parse_json
from testbed.base.units import count_noun
from testbed.base.untrusted_text import unescape_cell
from testbed.devices.bridge import Bridge, BridgePort, Entry, Reading
from testbed.devices.read_lines import LineError, mac_of, make_empty_bridge, vlans_of


def read_sonic(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read config_db.json and the entries for swssconfig of one switch; see Dialect.read."""
    file = next((path for path in (f"{name}/config_db.json", f"{name}.json") if path in files), None)
    if file is None:
        return make_empty_bridge(name, Problem(f"{name}/config_db.json", f"is not there, so {name} cannot be checked"))
    said, problem = _json(files, file, dict)
    if problem is not None:
        return make_empty_bridge(name, problem)
    if "PORT" not in said or "VLAN_MEMBER" not in said:
        missing = "PORT" if "PORT" not in said else "VLAN_MEMBER"
        return make_empty_bridge(
            name, Problem(file, f"has no table {missing}, so it is no config_db.json of a SONiC switch")
        )
    problems: list[Problem] = []
    channels = _sonic_channels(said, file, problems)
    down: dict[str, str] = {}
    ports = {port: has for port, has in _sonic_ports(said, file, problems, down).items() if port not in channels}
    unsaid = {port: ("sonic-admin-status",) for port, why in down.items() if why.endswith("by default")}
    reading = Reading(
        down=down,
        unclear=(*_sonic_lists(said, file, ports), *_sonic_unclear(said, file, ports, channels)),
        defaults=unsaid,
    )
    fdb: dict[Entry, str] = {}
    entries = f"{name}/fdb.json"
    if entries in files:
        rows, problem = _json(files, entries, list)
        problems += [problem] if problem is not None else []
        _sonic_entries(rows or [], entries, fdb, problems)
    return Bridge(name, True, "STP" in said, ports, fdb, channels, reading=reading), problems


def _is_up(row: Any) -> bool:
    """Whether a port of SONiC is up; it is down until it is said to be up."""
    return isinstance(row, dict) and row.get("admin_status") == "up"


def _sonic_lists(said: Mapping[str, Any], file: str, ports: Mapping[str, BridgePort]) -> Iterator[Problem]:
    """Access lists on ports of the bridge, which are not understood."""
    tables, rules = (said.get(table, {}) for table in ("ACL_TABLE", "ACL_RULE"))
    for name, row in tables.items() if isinstance(tables, dict) else ():
        bound = row.get("ports", []) if isinstance(row, dict) else []
        bound = bound.split(",") if isinstance(bound, str) else bound
        ruled = isinstance(rules, dict) and any(key.startswith(f"{name}|") for key in rules)
        for port in sorted({port for port in bound if port in ports} if ruled and isinstance(bound, list) else ()):
            yield Problem(f"{file}: ACL_TABLE.{name}", f"{port} has an access list, which is not understood")


def _sonic_unclear(
    said: Mapping[str, Any], file: str, ports: Mapping[str, BridgePort], channels: Mapping[str, str]
) -> Iterator[Problem]:
    """Ports of the bridge that are routed, too, and port channels that wait for more ports."""
    for table in ("INTERFACE", "PORTCHANNEL_INTERFACE"):
        rows = said.get(table, {})
        for port in sorted({key.partition("|")[0] for key in rows} & ports.keys() if isinstance(rows, dict) else ()):
            yield Problem(f"{file}: {table}.{port}", f"{port} is routed and in a VLAN, which SONiC refuses")
    for channel in ports.keys() & {*channels.values()}:
        least = str(said["PORTCHANNEL"][channel].get("min_links", "0"))
        up = sum(1 for other in channels.values() if other == channel)
        if not least.isdecimal() or up < int(least[:4]):
            sentence = (
                f"min_links is {least}, and {count_noun(up, 'port')} of {channel} {'is' if up == 1 else 'are'} up"
            )
            yield Problem(f"{file}: PORTCHANNEL.{channel}", f"{sentence}, so it may be down; not understood")


def _sonic_channels(said: Mapping[str, Any], file: str, problems: list[Problem]) -> dict[str, str]:
    """Port → the port channel it is part of; of ports that are up."""
    found = {}
    rows, ports, channels = (said.get(table, {}) for table in ("PORTCHANNEL_MEMBER", "PORT", "PORTCHANNEL"))
    for key in rows if isinstance(rows, dict) else ():
        channel, _, port = key.partition("|")
        if channel not in channels or port not in ports:
            problems.append(
                Problem(f"{file}: PORTCHANNEL_MEMBER.{key}", "names a port or port channel that is not there")
            )
        elif _is_up(ports[port]):
            found[port] = channel
    return found


def _json(files: Mapping[str, str], file: str, kind: type) -> tuple[Any, Problem | None]:
    try:
        value = parse_json(files[file])
    except json.JSONDecodeError as error:
        return None, Problem(f"{file} line {error.lineno}", f"is not JSON: {error.msg}; the file may be cut off")
    except ValueError as error:
        return None, Problem(file, f"is not JSON of a switch: {error}")
    if not isinstance(value, kind):
        return None, Problem(file, f"should hold {'an object' if kind is dict else 'a list'}")
    return value, None


def _sonic_ports(
    said: Mapping[str, Any], file: str, problems: list[Problem], down: dict[str, str]
) -> dict[str, BridgePort]:
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for table in ("PORT", "PORTCHANNEL", "VLAN", "VLAN_MEMBER"):
        rows = said.get(table, {})
        if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
            problems.append(Problem(file, f"{table} is no table of keys and settings"))
            return {}
        tables[table] = rows
    there = {**tables["PORT"], **tables["PORTCHANNEL"]}
    tagged: dict[str, set[int]] = {port: set() for port in there}
    untagged: dict[str, set[int]] = {port: set() for port in there}
    for key, row in tables["VLAN_MEMBER"].items():
        vlan, _, port = key.partition("|")
        place = f"{file}: VLAN_MEMBER.{key}"
        try:
            (number,) = vlans_of(vlan.removeprefix("Vlan"))
        except (LineError, ValueError):
            problems.append(Problem(place, f'"{vlan}" is not a VLAN such as Vlan10'))
            continue
        mode = row.get("tagging_mode")
        if port not in tagged:
            problems.append(Problem(place, f"names {port}, which is not in the table PORT"))
        elif vlan not in tables["VLAN"]:
            problems.append(Problem(place, f"names {vlan}, which is not in the table VLAN"))
        elif mode not in ("tagged", "untagged"):
            problems.append(Problem(place, f"tagging_mode is {mode!r} and should be tagged or untagged"))
        else:
            (tagged if mode == "tagged" else untagged)[port].add(number)
    return _sonic_settings(there, tagged, untagged, file, problems, down)


def _sonic_settings(
    there: Mapping[str, Mapping[str, Any]], tagged: Mapping[str, set[int]], untagged: Mapping[str, set[int]], file: str,
    problems: list[Problem], down: dict[str, str],
) -> dict[str, BridgePort]:  # fmt: skip
    """Ports that carry frames; of others `down` gets the reason."""
    ports = {}
    for port, row in there.items():
        if len(untagged[port]) > 1:
            problems.append(Problem(f"{file}: {port}", "is an untagged member of several VLANs, which SONiC refuses"))
        members = frozenset(tagged[port] | untagged[port])
        if not _is_up(row):
            down[port] = "is down" if "admin_status" in row else "is down by default"
        elif members:
            ports[port] = BridgePort(max(untagged[port], default=None), members, frozenset(untagged[port]))
        else:
            down[port] = "is in no VLAN"
    return ports


def _sonic_entries(rows: list[Any], file: str, fdb: dict[Entry, str], problems: list[Problem]) -> None:
    for row in rows:
        for key, value in row.items() if isinstance(row, dict) else ():
            if not key.startswith("FDB_TABLE:"):
                continue
            _, vlan, *mac = key.split(":", 2)
            try:
                (number,) = vlans_of(vlan.removeprefix("Vlan"))
                entry = (number, mac_of("".join(mac)))
                if value["type"] != "static":
                    raise LineError("is not static, so the switch forgets it")
                fdb[entry] = str(value["port"])
            except LineError as error:
                problems.append(Problem(f"{file}: {key}", str(error)))
            except (TypeError, KeyError, ValueError):
                problems.append(Problem(f"{file}: {key}", "should have a port and the type static"))


def read_csv(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the rows of one switch in ports.csv and mac-entries.csv; see Dialect.read."""
    problems: list[Problem] = []
    rows = _rows(files, "ports.csv", ("switch", "port", "pvid", "tagged", "untagged", "floods", "stp"), problems)
    entries = _rows(files, "mac-entries.csv", ("switch", "vlan", "mac", "port"), problems)
    ports: dict[str, BridgePort] = {}
    fdb: dict[Entry, str] = {}
    stp = False
    down: dict[str, str] = {}
    for number, row in rows:
        if row["switch"] != name:
            continue
        stp = stp or row["stp"] != "off"
        try:
            tagged, untagged = (vlans_of(row[key]) if row[key] else frozenset() for key in ("tagged", "untagged"))
            pvid = min(vlans_of(row["pvid"])) if row["pvid"] else None
        except LineError as error:
            problems.append(Problem(f"ports.csv line {number}", str(error)))
            continue
        floods = row["floods"] == "yes"
        if not (tagged or untagged):
            down[row["port"]] = "is in no VLAN"
        else:
            ports[row["port"]] = BridgePort(
                pvid, tagged | untagged, frozenset(untagged), learning=False, flood=floods, bcast_flood=floods,
                mcast_flood=floods,
            )  # fmt: skip
    for number, row in entries:
        if row["switch"] != name:
            continue
        try:
            fdb[min(vlans_of(row["vlan"])), mac_of(row["mac"])] = row["port"]
        except LineError as error:
            problems.append(Problem(f"mac-entries.csv line {number}", str(error)))
    return Bridge(name, True, stp, ports, fdb, reading=Reading(down=down)), problems


def _rows(
    files: Mapping[str, str], file: str, columns: tuple[str, ...], problems: list[Problem]
) -> list[tuple[int, dict[str, str]]]:
    """Number and cells of each line."""
    if file not in files:
        problems.append(Problem(file, "is not there, so no switch can be checked"))
        return []
    reader = csv.DictReader(files[file].splitlines())
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        problems.append(Problem(f"{file} line 1", f"lacks the columns {', '.join(missing)}"))
        return []
    found = []
    for row in reader:
        if any(row[column] is None for column in columns):
            problems.append(Problem(f"{file} line {reader.line_num}", "has too few cells; the file may be cut off"))
        else:
            found.append((reader.line_num, {column: unescape_cell(row[column].strip()) for column in columns}))
    return found
