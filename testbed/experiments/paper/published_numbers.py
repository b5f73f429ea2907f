"""The published numbers, read from `papers/*.yaml`, with everything that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.files import read_text
from testbed.base.limits import YAML
from testbed.base.resources import find_part
from testbed.experiments.paper.runner_arguments import Call, merge_blocks, read_call
from testbed.scenario.parameter_models import fill, format_value, unknown_key
from testbed.scenario.read_blocks import read_blocks

FOLDER = find_part("papers")
UNITS = (
    "VLANs", "switches", "links", "hops", "W", "%", "×", "Mbit/s", "Mbyte/s", "µs", "s", "flits/host/cycle", "GFlops",
    "TFlops", "Mop/s",
)  # fmt: skip
Relation = Literal["equal", "above", "below", "within"]
ToleranceOf = Literal["number", "gain"]
# Where neither is ahead of the other.
NEUTRAL = {"×": 1.0, "%": 0.0}
_FILE_KEYS = ("paper", "short", "items")


@dataclass(frozen=True, slots=True)
class Row:
    """A published number."""

    item: str  # name of the table or figure it is in
    name: str  # of the row, unique in the item
    published: float  # the number
    unit: str  # of it and of ours
    # what the paper says of it: the number itself, or only that it is above or below a number; `within`: ours is the
    # most that there can be
    relation: Relation = "equal"
    tolerance: float = 0.0  # relative difference up to which ours counts as the same
    tolerance_of: ToleranceOf = "number"  # what it is a part of: the number, or of a ratio (×) what it is beyond 1
    group: str = ""  # rows whose order among each other the paper also tells; empty for none
    call: Call | None = None  # how ours is obtained; None where it is not
    why: str = ""  # reason why ours differs, found by experiment; empty where it should not
    impossible: str = ""  # why there can be no number of ours; empty where there can be one
    caveat: str = ""  # what a number that agrees does not show; empty for nothing

    @property
    def tolerated_difference(self) -> float:
        """Difference up to which ours counts as the same."""
        of = self.published - (NEUTRAL.get(self.unit, 0.0) if self.tolerance_of == "gain" else 0.0)
        return self.tolerance * abs(of)


@dataclass(frozen=True, slots=True)
class Item:
    """A table or figure of a paper."""

    name: str  # as `--only` takes it
    title: str  # what it is
    paper: str  # which it is in
    note: str  # what holds for all its rows
    rows: tuple[Row, ...]  # its numbers, in order


@dataclass(frozen=True, slots=True)
class _ItemSpec:
    name: str
    title: str
    unit: str
    rows: tuple[Mapping[str, Any], ...] = field(metadata={"wanted": "a list of rows", "entry": "a block of keys"})
    tolerance: float = 0.0
    tolerance_of: ToleranceOf | None = None
    note: str = ""
    how: Mapping[str, Any] | None = field(default=None, metadata={"wanted": "a block such as {run: plan}"})
    columns: tuple[Mapping[str, Any], ...] = field(
        default=(), metadata={"wanted": "a list of columns", "entry": "a block of keys"}
    )


@dataclass(frozen=True, slots=True)
class _ColumnSpec:
    column: str
    how: Mapping[str, Any] | None = field(default=None, metadata={"wanted": "a block such as {pattern: uniform}"})
    unit: str = ""
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class _RowSpec:
    row: str
    value: float | None = None
    values: tuple[float | None, ...] = field(default=(), metadata={"wanted": "a list of numbers, one a column"})
    how: Mapping[str, Any] | None = field(default=None, metadata={"wanted": "a block such as {run: plan}"})
    unit: str = ""
    tolerance: float | None = None
    tolerance_of: ToleranceOf | None = None
    relation: Relation = "equal"
    group: str = ""
    why: str = ""
    whys: tuple[str, ...] = field(default=(), metadata={"wanted": "a list of reasons, one a column"})
    impossible: str = ""
    caveat: str = ""


def read_published_numbers(folder: Path = FOLDER) -> tuple[Item, ...]:
    """Read the published numbers from all tables of a folder.

    Raises:
        InputError: everything that is wrong with any of them.
    """
    files = sorted(folder.glob("*.yaml"))
    if not files:
        raise InputError.one(str(folder), "holds no table; papers/*.yaml are those of the project")
    items: list[Item] = []
    problems: list[Problem] = []
    for file in files:
        try:
            items += _read_file(file, problems)
        except InputError as error:
            problems += error.problems
    problems += _find_duplicates("item", "", [item.name for item in items])
    if problems:
        raise InputError(problems)
    return tuple(items)


def choose_items(items: Sequence[Item], names: Sequence[str]) -> tuple[Item, ...]:
    """The items of these names; of none, all. A name ending in - or being a paper's beginning, such as k11, takes all.

    Raises:
        InputError: unknown names; all of them.
    """
    if not names:
        return tuple(items)
    papers = {item.name.partition("-")[0] for item in items}
    known = [item.name for item in items]
    problems = [
        Problem(
            argument("only"),
            f'there is no item "{name}".{did_you_mean(name, [*known, *papers])} Known: {", ".join(known)}',
        )
        for name in names
        if name not in known and name not in papers
    ]
    if problems:
        raise InputError(problems)
    return tuple(item for item in items if item.name in names or item.name.partition("-")[0] in names)


def _read_file(file: Path, problems: list[Problem]) -> list[Item]:
    try:
        text = read_text(file, most=YAML)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(str(file), f"cannot be read: {reason}") from error
    raw, _ = read_blocks(text, str(file), ())
    found: list[Problem] = [Problem(key, unknown_key(key, _FILE_KEYS)) for key in raw if key not in _FILE_KEYS]
    found += [
        Problem(key, f"should be text, not {format_value(raw.get(key))}")
        for key in ("paper", "short")
        if not isinstance(raw.get(key), str)
    ]
    blocks = raw.get("items")
    items = []
    if not isinstance(blocks, list) or not blocks:
        found.append(Problem("items", f"should be a list of tables and figures, not {format_value(blocks)}"))
    else:
        for number, block in enumerate(blocks):
            item = _item(block, f"items.{number}", str(raw.get("paper")), str(raw.get("short")), found)
            if item is not None:
                items.append(item)
    problems += [problem.in_file(str(file)) for problem in found]
    return items


def _item(block: object, place: str, paper: str, short: str, problems: list[Problem]) -> Item | None:
    spec: _ItemSpec | None = fill(_ItemSpec, block, place, problems)
    if spec is None:
        return None
    place = f"{place} ({spec.name})"
    if not spec.name.startswith(f"{short}-"):
        problems.append(Problem(f"{place}.name", f'should begin with "{short}-", not be "{spec.name}"'))
    columns = [
        column
        for number, entry in enumerate(spec.columns)
        if (column := fill(_ColumnSpec, entry, f"{place}.columns.{number}", problems)) is not None
    ]
    rows: list[Row] = []
    for number, entry in enumerate(spec.rows):
        where = f"{place}.rows.{number}"
        row: _RowSpec | None = fill(_RowSpec, entry, where, problems)
        if row is not None and len(columns) == len(spec.columns):
            rows += _rows(spec, columns, row, where, problems)
    problems += _find_duplicates("row", place, [row.name for row in rows])
    return Item(spec.name, spec.title, paper, spec.note, tuple(rows))


def _rows(
    item: _ItemSpec, columns: Sequence[_ColumnSpec], row: _RowSpec, place: str, problems: list[Problem]
) -> Iterable[Row]:
    """The row, or one for each column it has a number in."""
    if (row.value is None) == (not row.values) or bool(row.values) != bool(columns):
        wanted = f"values, one for each of {len(columns)} columns" if columns else "value, the published number"
        problems.append(Problem(place, f"should have {wanted}"))
        return
    for name, given in (("values", row.values), ("whys", row.whys)):
        if given and len(given) != len(columns):
            problems.append(Problem(f"{place}.{name}", f"should be {len(columns)}, one a column, not {len(given)}"))
            return
    cells = columns or [_ColumnSpec("")]
    for number, column in enumerate(cells):
        value = row.values[number] if row.values else row.value
        if value is None:
            continue
        unit = row.unit or column.unit or item.unit
        if unit not in UNITS:
            meant = did_you_mean(unit, UNITS)
            problems.append(Problem(f"{place}.unit", f'there is no unit "{unit}".{meant} Known: {", ".join(UNITS)}'))
        tolerances = (row.tolerance, column.tolerance, item.tolerance)
        tolerance = next(one for one in tolerances if one is not None)
        if not 0 <= tolerance < 1:
            problems.append(Problem(f"{place}.tolerance", f"should be from 0 to below 1, not {tolerance:g}"))
        call = None
        if row.impossible:
            if row.how is not None:
                problems.append(Problem(f"{place}.how", "says how to obtain what is impossible; remove one of them"))
        else:
            call = read_call(merge_blocks(item.how, column.how, row.how), f"{place}.how", problems)
        made = Row(
            item=item.name,
            name=f"{row.row}, {column.column}" if column.column else row.row,
            published=value,
            unit=unit,
            relation=row.relation,
            tolerance=tolerance,
            tolerance_of=row.tolerance_of or item.tolerance_of or "number",
            group=column.column or row.group,
            call=call,
            why=(row.whys[number] if row.whys else row.why).strip(),
            impossible=row.impossible.strip(),
            caveat=row.caveat.strip(),
        )
        if call is not None and (row.tolerance_of or item.tolerance_of) is None and _takes_nothing_for_a_gain(made):
            sentence = (
                f"takes a ratio of 1, where neither is ahead, for {value:g}; say tolerance_of: gain, or, where the "
                "paper says that neither is ahead, tolerance_of: number"
            )
            problems.append(Problem(f"{place}.tolerance", sentence))
        yield made


def _takes_nothing_for_a_gain(row: Row) -> bool:
    return row.unit == "×" and row.relation == "equal" and abs(row.published - 1.0) <= row.tolerated_difference


def _find_duplicates(what: str, place: str, names: Sequence[str]) -> list[Problem]:
    repeated = dict.fromkeys(name for name in names if names.count(name) > 1)
    return [
        Problem(place or "papers", f'two {what}s are called "{name}"; each needs a name of its own')
        for name in repeated
    ]
