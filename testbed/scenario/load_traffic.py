"""Who sends to whom in a load, as pairs or as a file of its own; both become a pattern."""

from __future__ import annotations

import csv
import io
from typing import Any

from testbed.base.errors import Problem
from testbed.base.limits import FABRIC_FILE
from testbed.base.untrusted_text import unescape_cell
from testbed.fabric.traffic import pairs_pattern
from testbed.scenario.named_files import ScenarioFolder
from testbed.scenario.parameter_models import format_value

KEYS = ("pairs", "matrix")
_COLUMNS = ["source", "destination"]
_AMOUNT = "bytes"
_MAX_PROBLEMS = 10

SCHEMA: dict[str, object] = {
    "pairs": {
        "description": "in place of pattern: hosts that send, each with the host it sends to",
        "type": "array",
        "items": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
        "minItems": 1,
    },
    "matrix": {
        "description": "in place of pattern: a CSV file with the columns source, destination and perhaps bytes, seen "
        "from the scenario; every pair with an amount has a flow. With kind iperf3 and protocol udp amounts may "
        "differ: flows are in their ratio, and together fill the fullest link",
        "type": "string",
    },
}


def with_pattern(values: dict[str, Any], place: str, beside: ScenarioFolder, problems: list[Problem]) -> dict[str, Any]:
    """The keys of a load with its pairs, or those of its matrix, as its pattern.

    Every problem found is added; `place` is the load's, `beside` where files are looked for.
    """
    given = [key for key in ("pattern", *KEYS) if key in values]
    if given in ([], ["pattern"]):
        return values
    rest = {key: value for key, value in values.items() if key not in KEYS}
    if len(given) > 1:
        problems.append(Problem(f"{place}.{given[1]}", f"stands beside {given[0]}, which says the same; remove one"))
        return rest
    key, before = given[0], len(problems)
    amounts: list[int] = []
    if key == "pairs":
        pairs = _parse_pairs(values[key], f"{place}.pairs", problems)
    else:
        pairs, amounts = _in_file(values[key], f"{place}.matrix", beside, problems)
    return rest if len(problems) > before else {**rest, "pattern": pairs_pattern(pairs, amounts)}


def _parse_pairs(value: object, place: str, problems: list[Problem]) -> list[tuple[str, str]]:
    if not isinstance(value, list) or not value:
        problems.append(Problem(place, f"should be a list such as [[h1, h5], [h2, h6]], not {format_value(value)}"))
        return []
    found = []
    for number, pair in enumerate(value):
        if isinstance(pair, list) and len(pair) == len(_COLUMNS) and all(_is_name(name) for name in pair):
            found.append((pair[0], pair[1]))
        else:
            problems.append(
                Problem(f"{place}.{number}", f"should be two hosts such as [h1, h5], not {format_value(pair)}")
            )
    return found


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not set(value) & set(">,: *")


def _in_file(
    value: object, place: str, beside: ScenarioFolder, problems: list[Problem]
) -> tuple[list[tuple[str, str]], list[int]]:
    """Pairs of a matrix, and what each sends; no amounts where the file has none."""
    if not isinstance(value, str):
        problems.append(Problem(place, f"should be a file such as traffic.csv, not {format_value(value)}"))
        return [], []
    try:
        text = beside.read(value, place, FABRIC_FILE)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        problems.append(Problem(f"{place}: {value}", f"cannot be read: {reason}"))
        return [], []
    wrong: list[Problem] = []
    found = _rows(text, f"{place}: {value}", wrong)
    problems += wrong[:_MAX_PROBLEMS]
    return found


def _rows(text: str, place: str, problems: list[Problem]) -> tuple[list[tuple[str, str]], list[int]]:
    """The pairs of a matrix with an amount, or of one without amounts."""
    try:
        header, *rows = list(csv.reader(io.StringIO(text))) or [[]]
    except csv.Error as error:
        problems.append(Problem(place, f"is not CSV: {error}"))
        return [], []
    if header not in (_COLUMNS, [*_COLUMNS, _AMOUNT]):
        wanted = ",".join([*_COLUMNS, _AMOUNT])
        problems.append(Problem(place, f'should begin with the line "{wanted}", not "{",".join(header)}"'))
        return [], []
    found: list[tuple[str, str]] = []
    amounts: list[int] = []
    for line, cells in enumerate(rows, 2):
        row = list(map(unescape_cell, cells))
        at = f"{place}: line {line}"
        if len(row) != len(header) or not all(_is_name(name) for name in row[:2]):
            problems.append(
                Problem(at, f'should be two hosts{" and bytes" * (len(header) > 2)}, not "{",".join(row)}"')
            )
            continue
        if len(header) > len(_COLUMNS):
            if not row[2].isdecimal():
                problems.append(Problem(at, f'should have whole bytes, not "{row[2]}"'))
                continue
            if row[2].strip("0") == "":
                continue
            amounts.append(int(row[2]))
        found.append((row[0], row[1]))
    if not found and not problems:
        problems.append(Problem(place, "has no pair with an amount, so nothing would be sent"))
    return found, amounts
