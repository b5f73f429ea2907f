"""A comparison as one figure fit for a paper: SVG, PDF or PNG, 183 mm wide, which is a page's two columns."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.base.errors import InputError
from testbed.base.units import Scale, bytes_text
from testbed.experiments.compare.axis_values import MESSAGE_SIZE
from testbed.experiments.compare.comparison import Comparison
from testbed.experiments.compare.comparison_rows import ComparedRow, detail_text
from testbed.experiments.compare.comparison_table import axis_name, block_scale, blocks, metric_name, relative_text
from testbed.experiments.report.marks import DASHED, MAX_LINES, Bars, Dash, Line, Mark, Note, Reach, line_style
from testbed.experiments.report.palette import INK, MUTED, PREDICTED
from testbed.experiments.report.panels import Axis, Block, Panel, Picture
from testbed.experiments.report.render import FORMATS, write
from testbed.experiments.report.sample_table import BOUND_NAMES, BOUNDS

__all__ = ["FORMATS", "MAX_PANELS", "draw", "picture_of"]

MAX_PANELS = 24
MAX_SIZES = 4  # more message sizes become a line over them
_WIDTH = 692.0  # pixels of 1/96 inch: 183 mm
_MAX_NAME = 28  # letters on a line
_NO_BREAK = "\N{NO-BREAK SPACE}"
_UNUSABLE = "#8b949e"
_LOGARITHMIC_FROM = 30  # times the least
_ESTIMATE_DASH: dict[str, Dash] = {"predicted": "-"}  # a bound is dashed


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows of one load and metric, as bars or, with an x each, as lines."""

    rows: tuple[ComparedRow, ...]
    swept: str | None

    @property
    def scale(self) -> Scale:
        """A unit that suits all of them."""
        return block_scale(self.rows)

    @property
    def quantity(self) -> str:
        """The metric with its unit."""
        return f"{metric_name(self.rows[0].metric)} ({self.scale.name})".removesuffix(" ()")

    @property
    def title(self) -> str:
        """The load, with what tells its figures apart, unbroken."""
        row = self.rows[0]
        detail = row.detail.replace(" ", _NO_BREAK).replace(f",{_NO_BREAK}", ", ")
        return f"{row.load}, {detail}" if self.swept is None and detail else row.load


def draw(comparison: Comparison, form: str, *, title: str = "", x_label: str = "") -> bytes:
    """Draw a comparison.

    Rows become panels, one a load, metric and detail. `x_label` is of a swept parameter, with its unit.

    Raises:
        InputError: more panels or lines than can be told apart.
    """
    return write(picture_of(comparison, title, x_label), form, outlines=True)


def picture_of(comparison: Comparison, title: str = "", x_label: str = "") -> Picture:
    """What `draw` draws."""
    groups = _groups(comparison)
    barred = [group for group in groups if group.swept is None]
    lined = [group for group in groups if group.swept is not None]
    series = [_series(group, comparison) for group in lined]
    names = list(dict.fromkeys(name for found in series for name in found))
    if len(names) > MAX_LINES:
        sentence = f"would have {len(names)} lines, and {MAX_LINES} can be told apart; compare fewer scenarios"
        raise InputError.one("the figure", sentence)
    columns = min(len(barred), 3 if len(barred) in (3, 5, 6, 9) else 4)
    bars = [
        _bar_panel(group, comparison, named=number % columns == 0, width=_WIDTH / columns)
        for number, group in enumerate(barred)
    ]
    curves = [
        _line_panel(group, found, names, x_label, plain=not barred) for group, found in zip(lined, series, strict=True)
    ]
    found = [(bars, columns), (curves, 2)]
    return Picture([Block(panels, beside) for panels, beside in found if panels], title, _WIDTH)


def _groups(comparison: Comparison) -> list[_Group]:
    """Bars before lines."""
    found: list[_Group] = []
    lines: dict[tuple[str, str, str], list[ComparedRow]] = {}
    sizes: dict[tuple[str, str], set[str]] = {}
    for row in comparison.rows:
        sizes.setdefault((row.load, row.metric), set()).add(dict(row.labels).get("bytes", ""))
    for block in blocks(comparison.rows):
        first = block[0]
        if comparison.swept is not None or len(sizes[first.load, first.metric]) > MAX_SIZES:
            lines.setdefault((first.load, first.metric, first.unit), []).extend(block)
        else:
            found.append(_Group(tuple(block), None))
    found += [_Group(tuple(rows), comparison.swept or MESSAGE_SIZE) for rows in lines.values()]
    if len(found) > MAX_PANELS:
        sentence = f"would have {len(found)} panels, and {MAX_PANELS} fit; choose some metrics"
        raise InputError.one("the figure", sentence)
    return found


def _names(comparison: Comparison) -> dict[str, str]:
    """Label of a variant → what it is called in the figure: with the dilation where that is not the same for all."""
    differ = len({variant.dilation for variant in comparison.variants} - {None}) > 1
    return {
        variant.label: f"{variant.label} (dilation {variant.dilation:g})"
        if differ and variant.dilation is not None and "lab.dilation" not in variant.settings
        else variant.label
        for variant in comparison.variants
    }


def _bar_panel(group: _Group, comparison: Comparison, *, named: bool, width: float) -> Panel:
    """Lying bars, a scenario each; the figures of invalid runs hatched in grey, failed ones as a word only."""
    names, factor = _names(comparison), group.scale.factor
    places = {label: float(place) for place, label in enumerate(names)}
    rows = {row.scenario: row for row in group.rows}
    labels = ["\n".join(textwrap.wrap(name, _MAX_NAME)) if named else "" for name in names.values()]
    marks: list[Bars | Line | Mark | Note] = []
    ends = [0.0]
    for label, place in places.items():
        row = rows.get(label)
        if row is not None and row.spread is not None:
            drawn = list(_bar(row, place, factor))
            marks += drawn
            ends += [end for mark in drawn for end in _ends(mark)]
        usable = row is not None and row.is_usable
        words = _word(row, alone=len(places) == 1)
        marks.append(Note(1.03, place, words, INK if usable else MUTED, beside=True))
    reference = rows.get(comparison.baseline)
    if len(places) > 1 and reference is not None and reference.is_usable and reference.spread is not None:
        marks.append(Mark(reference.spread.median / factor, name=f"{comparison.baseline} (×1)"))
    highest = max(ends) / 0.97 or 1.0
    y = Axis(ticks=list(zip(places.values(), labels, strict=True)), low=len(places) - 0.5, high=-0.5)
    tall = max(18.0, 13.0 * max(label.count("\n") + 1 for label in labels) + 3)
    x = Axis(group.quantity, low=0, high=highest, grid=True)
    return Panel(marks, x, y, group.title, width=min(width, 380.0), height=tall * len(places))


def _bar(row: ComparedRow, place: float, factor: float) -> Iterator[Bars | Line]:
    """A bar with its interval, its prediction and whether it has warnings."""
    assert row.spread is not None
    median = row.spread.median / factor
    if not row.is_usable:
        yield Bars([place], [median], "invalid, do not use", lying=True, hatched=True)
    else:
        reach = None if row.spread.interval is None else _interval([row.spread.interval], factor)
        yield Bars([place], [median], "measured, median", lying=True, reach=reach)
    if row.predicted is not None:
        name = BOUND_NAMES.get(BOUNDS.get(row.metric, ""), "predicted")
        dash = _ESTIMATE_DASH.get(name, (0, (1.6, 0.8)))
        yield Line([row.predicted / factor] * 2, [place - 0.37, place + 0.37], name, PREDICTED, dash, 2.0)
    if row.verdict == "warn":
        yield Line([median], [place], "with warnings", INK, "none", marker="o", hollow=True)


def _ends(mark: Bars | Line) -> list[float]:
    """How far to the right it goes."""
    if isinstance(mark, Line):
        return list(mark.x)
    return [*mark.values, *(mark.reach.high if mark.reach is not None else ())]


def _interval(intervals: Sequence[tuple[float, float]], factor: float) -> Reach:
    low, high = zip(*intervals, strict=True)
    return Reach([end / factor for end in low], [end / factor for end in high], "95 % interval")


def _word(row: ComparedRow | None, *, alone: bool) -> str:
    if row is None:
        return "not run"
    if not row.is_usable:
        return {"fail": "failed"}.get(row.verdict, row.verdict)
    return "" if alone else relative_text(row.relative)


def _series(group: _Group, comparison: Comparison) -> dict[str, list[tuple[float, ComparedRow]]]:
    """Lines of a panel, in rising order of x: one a scenario, and a detail that is not on the axis."""
    found: dict[str, list[tuple[float, ComparedRow]]] = {}
    scenarios = _names(comparison)
    for row in group.rows:
        size = dict(row.labels).get("bytes", "")
        x = float(size) if comparison.swept is None and size.isdecimal() else row.x
        rest = tuple(label for label in row.labels if comparison.swept is not None or label[0] != "bytes")
        detail = detail_text(rest)
        parts = [*([scenarios[row.scenario]] if len(scenarios) > 1 else []), *([detail] if detail else [])]
        if x is not None:
            found.setdefault(", ".join(parts) or "measured", []).append((x, row))
    return {name: sorted(rows, key=lambda pair: pair[0]) for name, rows in found.items()}


def _line_panel(
    group: _Group,
    series: Mapping[str, Sequence[tuple[float, ComparedRow]]],
    names: Sequence[str],
    x_label: str,
    *,
    plain: bool,
) -> Panel:
    """A line a scenario over a swept parameter, predictions dashed, warnings hollow, unusable points grey crosses."""
    factor, swept = group.scale.factor, group.swept or MESSAGE_SIZE
    marks: list[Line] = []
    expected: list[Line] = []
    for name, pairs in series.items():
        style = line_style(names.index(name), dashed=False)
        marks += _curve(name, pairs, factor, style)
        known = [(x, row.predicted / factor) for x, row in pairs if row.predicted is not None]
        if known:
            colour = PREDICTED if len(names) == 1 else style.colour
            at, values = zip(*known, strict=True)
            expected.append(Line(at, values, colour=colour, dash=DASHED, width=1.1))
    if expected:
        colour = PREDICTED if len(names) == 1 else INK
        marks += [*expected, Line([], [], "predicted" if plain else "predicted (lines)", colour, DASHED, 1.1)]
    places = sorted({x for pairs in series.values() for x, _ in pairs})
    shown = [value for mark in marks for value in (*mark.y, *(mark.reach.high if mark.reach else ()))]
    shown = [value for value in shown if not math.isnan(value)]
    wide = len(places) > 3 and places[0] > 0 and places[-1] >= _LOGARITHMIC_FROM * places[0]
    sizes = swept == MESSAGE_SIZE
    ticks = [(x, bytes_text(int(x)) if sizes else f"{x:g}") for x in places]
    label = axis_name(swept)
    x = Axis(x_label or label[:1].upper() + label[1:], "sizes" if sizes or wide else "linear", ticks=ticks)
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    logarithmic = low > 0 and high > _LOGARITHMIC_FROM * low
    y = Axis(group.quantity, low=0, high=1.06 * high or 1, grid=True)
    y = Axis(group.quantity, "log", grid=True) if logarithmic else y
    return Panel(marks, x, y, group.title, width=420, height=190)


def _curve(name: str, pairs: Sequence[tuple[float, ComparedRow]], factor: float, style: Line) -> Iterator[Line]:
    """A line with its intervals; it has a gap where there is no usable figure, so that it does not seem to pass."""
    median = {x: row.spread.median / factor for x, row in pairs if row.spread is not None}
    usable = {x: median[x] for x, row in pairs if row.is_usable and x in median}
    yield replace(style, x=[x for x, _ in pairs], y=[usable.get(x, math.nan) for x, _ in pairs], name=name)
    spans = [(x, row.spread.interval) for x, row in pairs if row.is_usable and row.spread and row.spread.interval]
    if spans:
        at, reach = [x for x, _ in spans], _interval([span for _, span in spans], factor)
        yield Line(at, [usable[x] for x in at], dash="none", colour=style.colour, reach=reach)
    warned = [x for x, row in pairs if row.verdict == "warn" and x in usable]
    if warned:
        yield replace(style, x=warned, y=[usable[x] for x in warned], dash="none", hollow=True)
        yield Line([], [], "with warnings", INK, "none", marker="o", hollow=True)
    void = [x for x in median if x not in usable]
    if void:
        yield Line(void, [median[x] for x in void], "invalid, do not use", _UNUSABLE, "none", marker="x")
