"""A panel of lines: one load and metric over a swept parameter, a line a scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from testbed.compare.axis import MESSAGE_SIZE
from testbed.compare.rows import Row
from testbed.report.figures import Scale, bytes_text
from testbed.report.palette import GRID, PREDICTED, TREES

_MARKERS = ("o", "s", "^")
MOST_LINES = len(TREES) * len(_MARKERS)
LABEL_SIZE = 7.5
_LEAST_APART = 1 / 9  # of the axis, between two labels
_LOGARITHMIC_FROM = 30  # times the least
_ABOVE = 1.06
PREDICTED_LINE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.1}
RESERVE_POINT: dict[str, Any] = {"linestyle": "none", "markersize": 4, "markerfacecolor": "white", "zorder": 4}
UNUSABLE_POINT: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 5, "color": "#8b949e"}


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name and its rows, in rising order of x."""

    name: str
    rows: tuple[tuple[float, Row], ...]


def style(number: int) -> dict[str, Any]:
    """Colour and marker of a line; both are needed to tell twelve apart."""
    return {"color": TREES[number % len(TREES)], "marker": _MARKERS[number // len(TREES) % len(_MARKERS)]}


def draw_lines(axes: Axes, series: Sequence[Series], numbers: Mapping[str, int], swept: str, scale: Scale) -> None:
    """Draw lines with their intervals, predictions dashed, reserves hollow, unusable points as grey crosses on no line.

    Args:
        axes: to draw on.
        series: the lines.
        numbers: name of a line → its number among all of the figure, for its style.
        swept: what x is.
        scale: unit of the figures.
    """
    shown: list[float] = []
    for line in series:
        look = style(numbers[line.name])
        good = [(x, row) for x, row in line.rows if row.usable and row.spread is not None]
        medians = [row.spread.median / scale.factor for _, row in good if row.spread is not None]
        # A line has a gap where there is no usable figure, so that it does not seem to pass there.
        known = dict(zip((x for x, _ in good), medians, strict=True))
        places = [x for x, _ in line.rows]
        axes.plot(places, [known.get(x, math.nan) for x in places], markersize=4, linewidth=1.5, **look)
        shown += medians
        reserved = [(x, median) for (x, row), median in zip(good, medians, strict=True) if row.verdict == "warn"]
        if reserved:
            axes.plot(*zip(*reserved, strict=True), **{**look, **RESERVE_POINT})
        for x, row in line.rows:
            if row.spread is None:
                continue
            median = row.spread.median / scale.factor
            if not row.usable:
                axes.plot(x, median, **UNUSABLE_POINT)
                shown.append(median)
            elif row.spread.interval is not None:
                low, high = (end / scale.factor for end in row.spread.interval)
                reach = [[median - low], [high - median]]
                shown.append(high)
                axes.errorbar(x, median, yerr=reach, fmt="none", ecolor=look["color"], elinewidth=0.9, capsize=2)
        predicted = [(x, row.predicted / scale.factor) for x, row in line.rows if row.predicted is not None]
        if predicted:
            colour = PREDICTED if len(series) == 1 else look["color"]
            axes.plot(*zip(*predicted, strict=True), color=colour, zorder=1.5, **PREDICTED_LINE)
            shown += [y for _, y in predicted]
    _axes(axes, sorted({x for line in series for x, _ in line.rows}), shown, swept)


def _axes(axes: Axes, places: Sequence[float], shown: Sequence[float], swept: str) -> None:
    wide = len(places) > 3 and places[0] > 0 and places[-1] >= _LOGARITHMIC_FROM * places[0]
    if swept == MESSAGE_SIZE or wide:
        axes.set_xscale("symlog", base=2, linthresh=1)
    labelled = _apart(places, logarithmic=swept == MESSAGE_SIZE or wide)
    axes.xaxis.set_major_locator(FixedLocator(labelled))
    names = [bytes_text(int(x)) if swept == MESSAGE_SIZE else f"{x:g}" for x in labelled]
    axes.xaxis.set_major_formatter(FixedFormatter(names))
    axes.xaxis.set_minor_locator(NullLocator())
    least, most = min(shown, default=0.0), max(shown, default=0.0)
    if least > 0 and most > _LOGARITHMIC_FROM * least:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5) if math.log10(most / least) < 2 else (1,)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, most * _ABOVE or 1)
    axes.tick_params(labelsize=LABEL_SIZE)
    axes.grid(axis="y", color=GRID)


def _apart(places: Sequence[float], *, logarithmic: bool) -> list[float]:
    """Places far enough from each other for their labels."""

    def along(x: float) -> float:
        return 1 + math.log2(x) if logarithmic and x > 1 else x

    length = along(places[-1]) - along(places[0])
    kept: list[float] = []
    for x in places:
        if not kept or along(x) - along(kept[-1]) >= _LEAST_APART * length:
            kept.append(x)
    return kept
