"""Forwarding that others have computed, from CSV or JSON: next hops by switch and destination, or whole paths."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.base.errors import InputError, Problem, did_you_mean, reading
from testbed.base.files import read_text
from testbed.base.limits import FABRIC_FILE, parse_json
from testbed.base.model import NextHops, Topology
from testbed.fabric.verify.listed_paths import ListedPaths
from testbed.scenario.parameter_models import format_value
from testbed.scenario.routes_tables import Cell, FabricNames, HopTable, PathList

_HOP_KEYS = ("switch", "destination", "next_hop", "vlan", "layer")
_PATH_KEYS = ("path", "layer")
_OPTIONAL = {"vlan", "layer"}
_MOST_PROBLEMS = 20
_JSON_FORMS = (
    '{"next_hops": [{"switch": "s1", "destination": "s4", "next_hop": ["s2", "s3"]}]} or {"paths": [["s1", "s2"]]}'
)


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a file lists: rows of cells, in the order of `keys`."""

    keys: tuple[str, ...]  # _HOP_KEYS or _PATH_KEYS
    rows: Iterator[tuple[str, list[Cell]]]  # place in the file and cells; "" where nothing is said


def read_routes(file: Path, topology: Topology) -> NextHops | ListedPaths:
    """Read forwarding for a fabric.

    Raises:
        InputError: it cannot be read, or is no forwarding of this fabric; every problem found, with its line or key.
    """
    with reading(file):
        text = read_text(file, most=FABRIC_FILE)
        table, problems = _understand(text.removeprefix("\ufeff"), topology)
    if not problems:
        try:
            return table.finish()
        except InputError as error:
            problems = list(error.problems)
    raise InputError([problem.in_file(str(file)) for problem in problems])


def _understand(text: str, topology: Topology) -> tuple[HopTable | PathList, list[Problem]]:
    """Rows of a text, and what is wrong with them; a ValueError says why it is no text of rows at all."""
    if not text.strip():
        raise ValueError("it is empty")
    found = _of_json(parse_json(text)) if text.lstrip()[0] in "{[" else _of_csv(text)
    names = FabricNames(topology)
    table: HopTable | PathList = HopTable(names) if found.keys == _HOP_KEYS else PathList(names)
    problems: list[Problem] = []
    count = 0
    for place, cells in found.rows:
        count += 1
        problems += [Problem(place, sentence) for sentence in table.add(*cells)]
        if len(problems) > _MOST_PROBLEMS:
            problems[_MOST_PROBLEMS:] = [Problem("", f"there is more wrong than these {_MOST_PROBLEMS}")]
            break
    if not count:
        problems = [Problem("", "lists no next hop and no path")]
    return table, problems


def _of_csv(text: str) -> _Rows:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = [name.strip().lower() for name in next(lines)]
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise ValueError("columns are separated by commas, and names in one cell by semicolons")
    keys = _PATH_KEYS if "path" in header else _HOP_KEYS
    problems = _key_problems(header, keys, "column")
    if problems:
        raise ValueError("; ".join(problems))
    order = [header.index(key) if key in header else -1 for key in keys]
    return _Rows(keys, _csv_rows(lines, order, len(header)))


def _csv_rows(lines: Any, order: list[int], width: int) -> Iterator[tuple[str, list[Cell]]]:
    for cells in lines:
        if not cells or (len(cells) == 1 and not cells[0].strip()):
            continue
        if len(cells) != width:
            raise ValueError(f"line {lines.line_num} has {len(cells)} cells, and its columns are {width}")
        yield f"line {lines.line_num}", [cells[index].strip() if index >= 0 else "" for index in order]


def _key_problems(found: list[str], keys: tuple[str, ...], what: str) -> list[str]:
    said = [f'there is no {what} "{name}".{did_you_mean(name, keys)}' for name in found if name not in keys]
    if keys == _PATH_KEYS and "vlan" in found:
        said = ["paths have no VLANs here: those of a link share its memory, so they change nothing; leave vlan out"]
    missing = [key for key in keys if key not in found and key not in _OPTIONAL]
    if missing:
        forms = f"{', '.join(_HOP_KEYS[:3])} (and vlan, layer), or path (and layer)"
        said.append(f"there is no {what} {' and no '.join(missing)}; write {forms}")
    said += [f"the {what} {name} is there twice" for name in dict.fromkeys(found) if found.count(name) > 1]
    return said


def _of_json(value: Any) -> _Rows:
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in ("next_hops", "paths"):
        near = ""
        if isinstance(value, dict):
            near = next((hint for key in value if (hint := did_you_mean(key, ("next_hops", "paths")))), "")
        raise ValueError(f"should have next_hops or paths.{near} Write {_JSON_FORMS}")
    key, entries = next(iter(value.items()))
    if not isinstance(entries, list):
        raise TypeError(f"{key} should be a list, not {format_value(entries)}")
    return _Rows(_HOP_KEYS if key == "next_hops" else _PATH_KEYS, _json_rows(key, entries))


def _json_rows(key: str, entries: list[Any]) -> Iterator[tuple[str, list[Cell]]]:
    keys = _HOP_KEYS if key == "next_hops" else _PATH_KEYS
    for number, given in enumerate(entries):
        entry = {"path": given} if keys == _PATH_KEYS and isinstance(given, list) else given
        if not isinstance(entry, dict):
            raise TypeError(f"{key}.{number} should be an object with {', '.join(keys)}, not {format_value(entry)}")
        wrong = _key_problems(list(entry), keys, "key")
        if wrong:
            raise ValueError(f"{key}.{number}: {'; '.join(wrong)}")
        yield f"{key}.{number}", [_cell(f"{key}.{number}.{name}", entry.get(name, "")) for name in keys]


def _cell(place: str, value: Any) -> Cell:
    if isinstance(value, bool) or value is None:
        raise TypeError(f"{place} should be a name or a list of names, not {format_value(value)}")
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    if isinstance(value, str | int):
        return str(value)
    raise TypeError(f"{place} should be a name or a list of names, not {format_value(value)}")
