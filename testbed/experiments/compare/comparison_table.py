"""A comparison as text for people, as CSV and as an object for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from testbed.base.units import Scale, bytes_text, gap_text, scale_for
from testbed.base.untrusted_text import csv_text, escape_line
from testbed.experiments.compare.axis_values import MESSAGE_SIZE, SWITCHES_ON_PATH
from testbed.experiments.compare.comparison import Comparison, Remark
from testbed.experiments.compare.comparison_rows import ComparedRow
from testbed.experiments.report.sample_table import BOUNDS, METRICS

COLUMNS = (
    "load", "metric", "detail", "unit", "scenario", "swept", "x", "dilation", "verdict", "usable", "repeats", "over",
    "median", "ci95_low", "ci95_high", "ci95_method", "minimum", "maximum", "predicted", "bound", "gap", "baseline",
    "relative", "left_out",
)  # fmt: skip
_AXES = {
    SWITCHES_ON_PATH: "switches on the path",
    MESSAGE_SIZE: "message size",
    "injection_rate": "injection rate",
}


def metric_name(metric: str) -> str:
    """A metric in words; one that the report does not know, by its own name."""
    if metric in METRICS:
        return METRICS[metric]
    first, *rest = metric.split("_")
    return " ".join(["MPI" if first == "mpi" else first.capitalize(), *rest])


def axis_name(swept: str) -> str:
    """What an axis stands for, in words; a key of the scenario by its last part."""
    words = [part for part in swept.split(".") if not part.isdecimal()]
    return _AXES.get(swept, words[-1].replace("_", " "))


def relative_text(relative: float | None) -> str:
    """A relative figure with three digits; empty without one."""
    return "" if relative is None else f"×{relative:#.3g}".rstrip(".")


def blocks(rows: Iterable[ComparedRow]) -> list[list[ComparedRow]]:
    """Rows of one load, metric and detail together, in their order."""
    found: dict[tuple[str, str, str, str], list[ComparedRow]] = {}
    for row in rows:
        found.setdefault((row.load, row.metric, row.detail, row.unit), []).append(row)
    return list(found.values())


def block_scale(rows: Iterable[ComparedRow]) -> Scale:
    """A unit that suits all figures of a block."""
    rows = list(rows)
    return scale_for(rows[0].unit, max((row.spread.median for row in rows if row.spread is not None), default=0.0))


def table_text(comparison: Comparison) -> str:
    """Return one table a load and metric, then what must be known about the runs; lines end in a newline."""
    labs = {variant.label for variant in comparison.variants if variant.dilation is not None}
    dilated = len({row.dilation for row in comparison.rows if row.scenario in labs}) > 1
    several = len(comparison.variants) > 1
    head = ["scenario", *([axis_name(comparison.swept)] if comparison.swept else []), "verdict", "repeats", "median"]
    head += [
        "95 % interval",
        "predicted",
        "gap",
        *(["relative"] if several else []),
        *(["dilation"] if dilated else []),
    ]
    parts = []
    for block in blocks(comparison.rows):
        scale = block_scale(block)
        title = f"{block[0].load}: {metric_name(block[0].metric)}"
        title += f", {block[0].detail}" if block[0].detail else ""
        title += f" ({scale.name})" if scale.name else ""
        cells = [
            list(map(escape_line, _cells(row, scale, comparison.swept, several=several, dilated=dilated)))
            for row in block
        ]
        parts.append((title, cells))
    widths = [
        max(map(len, column)) for column in zip(head, *(line for _, lines in parts for line in lines), strict=True)
    ]
    left = {0, head.index("verdict")}
    text = [_line(head, widths, left)]
    for title, lines in parts:
        text += ["", title, *(_line(line, widths, left) for line in lines)]
    if several:
        text += ["", f"relative to {comparison.baseline}; figures in brackets must not be used"]
    text += [f"note: {note}" for note in comparison.notes]
    text += remark_lines("left out", comparison.left_out) + remark_lines("with warnings", comparison.warned)
    return "\n".join(map(escape_line, text)) + "\n"


def remark_lines(what: str, remarks: Sequence[Remark]) -> list[str]:
    """One line a load of a run: where, verdict, reasons."""
    return [
        f"{what}: {remark.scenario}, {remark.load}: {remark.verdict}: "
        f"{'; '.join(remark.reasons) or 'no reason given'} ({remark.folder})"
        for remark in remarks
    ]


def _line(cells: Sequence[str], widths: Sequence[int], left: set[int]) -> str:
    padded = (
        cell.ljust(width) if number in left else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return ("  " + "  ".join(padded)).rstrip()


def _cells(row: ComparedRow, scale: Scale, swept: str | None, *, several: bool, dilated: bool) -> list[str]:
    count = median = interval = ""
    if row.spread is not None:
        count = f"{row.spread.count} {row.over if row.spread.count > 1 else row.over.removesuffix('s')}"
        median = scale.text(row.spread.median)
        if row.spread.interval is not None:
            interval = " to ".join(map(scale.text, row.spread.interval))
        if not row.is_usable:
            median, interval = f"({median})", f"({interval})" if interval else ""
    verdict = row.verdict + (f", {row.left_out} left out" if row.left_out else "")
    predicted = "" if row.predicted is None else f"{BOUNDS.get(row.metric, '')} {scale.text(row.predicted)}".lstrip()
    place = [] if swept is None else ["" if row.x is None else _x_text(row.x, swept)]
    cells = [row.scenario, *place, verdict, count, median, interval, predicted, gap_text(row.gap)]
    return [*cells, *([relative_text(row.relative)] if several else []), *([f"{row.dilation:g}"] if dilated else [])]


def _x_text(x: float, swept: str) -> str:
    return bytes_text(int(x)) if swept == MESSAGE_SIZE else f"{x:g}"


def as_objects(comparison: Comparison) -> list[dict[str, object]]:
    """Rows as flat objects with the keys of COLUMNS, figures in the units of the samples; None where there is none."""
    found = []
    for row in comparison.rows:
        spread, interval = row.spread, row.spread.interval if row.spread else None
        values: dict[str, object] = {
            "load": row.load, "metric": row.metric, "detail": row.detail, "unit": row.unit, "scenario": row.scenario,
            "swept": comparison.swept, "x": row.x, "dilation": row.dilation, "verdict": row.verdict,
            "usable": row.is_usable, "repeats": spread.count if spread else 0, "over": row.over,
            "median": spread.median if spread else None,
            "ci95_low": interval[0] if interval else None, "ci95_high": interval[1] if interval else None,
            "ci95_method": spread.method if spread else "none",
            "minimum": spread.minimum if spread else None, "maximum": spread.maximum if spread else None,
            "predicted": row.predicted, "bound": BOUNDS.get(row.metric) if row.predicted is not None else None,
            "gap": row.gap, "baseline": comparison.baseline, "relative": row.relative, "left_out": row.left_out,
        }  # fmt: skip
        found.append({column: values[column] for column in COLUMNS})
    return found


def as_object(comparison: Comparison) -> dict[str, object]:
    """The whole comparison as an object."""
    return {
        "baseline": comparison.baseline,
        "swept": comparison.swept,
        "scenarios": [variant.label for variant in comparison.variants],
        "rows": as_objects(comparison),
        "left_out": [dataclasses.asdict(remark) for remark in comparison.left_out],
        "warned": [dataclasses.asdict(remark) for remark in comparison.warned],
        "notes": list(comparison.notes),
    }


def as_csv(comparison: Comparison) -> str:
    """Rows as CSV with a header line; an empty cell where there is no figure."""
    return csv_text(COLUMNS, ([row[column] for column in COLUMNS] for row in as_objects(comparison)))
