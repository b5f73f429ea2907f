"""A panel of bars: one load and metric, a bar a scenario, its prediction and its relation to the baseline beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from testbed.compare.rows import Row
from testbed.compare.table import relative_text
from testbed.report.figures import Scale
from testbed.report.palette import GRID, INK, MEASURED, MUTED, PREDICTED
from testbed.report.table import BOUNDS

THICKNESS = 0.62
LABEL_SIZE = 7.5
UNUSABLE: dict[str, Any] = {"facecolor": "#e4e6e8", "edgecolor": "#8b949e", "hatch": "/////", "linewidth": 0.6}
REFERENCE: dict[str, Any] = {"color": MUTED, "linewidth": 0.9, "linestyle": (0, (4, 3))}
RESERVE = "!"
_WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 0.9, "capsize": 2.0, "zorder": 4}
_LESS_THAN_ALL = 0.97  # of the axis that the longest bar takes


def expected_name(metric: str) -> str:
    """What a prediction of a metric is called."""
    return {"≥": "lower bound", "≤": "upper bound"}.get(BOUNDS.get(metric, ""), "predicted")


def expected_style(name: str) -> dict[str, Any]:
    """Line of a prediction: whole, or dashed for a bound."""
    dashes = "-" if name == "predicted" else (0, (1.6, 0.8))
    return {"color": PREDICTED, "linewidth": 2.0, "linestyle": dashes, "solid_capstyle": "butt"}


def draw_bars(axes: Axes, rows: Sequence[Row], places: Mapping[str, int], baseline: str | None, scale: Scale) -> None:
    """Draw lying bars; the figures of invalid runs hatched in grey, failed ones as a word only.

    Args:
        axes: to draw on; words stand to the right of it.
        rows: one a scenario at most.
        places: scenario → line, counted from the top.
        baseline: the scenario all relative figures refer to, or None where there are several.
        scale: unit of the axis.
    """
    by_scenario = {row.scenario: row for row in rows}
    longest = 0.0
    for scenario, place in places.items():
        row = by_scenario.get(scenario)
        if row is not None:
            longest = max(longest, _bar(axes, row, place, scale))
        colour = INK if row is not None and row.usable else MUTED
        axes.text(
            1.03,
            place,
            _word(row, alone=len(places) == 1),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=LABEL_SIZE,
            color=colour,
        )
    reference = by_scenario.get(baseline or "")
    if len(places) > 1 and reference is not None and reference.usable and reference.spread is not None:
        axes.axvline(reference.spread.median / scale.factor, zorder=0.5, **REFERENCE)
    axes.set_xlim(0, longest / _LESS_THAN_ALL or 1.0)
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.tick_params(axis="x", labelsize=LABEL_SIZE)
    axes.tick_params(axis="y", length=0, labelsize=LABEL_SIZE + 0.5)
    axes.grid(axis="x", color=GRID)


def _bar(axes: Axes, row: Row, place: int, scale: Scale) -> float:
    """Draw one and return where it ends."""
    if row.spread is None:
        return 0.0
    median = row.spread.median / scale.factor
    ends = [median]
    if row.usable:
        axes.barh(place, median, THICKNESS, color=MEASURED)
    else:
        axes.barh(place, median, THICKNESS, **UNUSABLE)
    if row.predicted is not None:
        predicted = row.predicted / scale.factor
        half = THICKNESS / 2 + 0.06
        axes.plot([predicted] * 2, [place - half, place + half], zorder=3, **expected_style(expected_name(row.metric)))
        ends.append(predicted)
    if row.usable and row.spread.interval is not None:
        low, high = (end / scale.factor for end in row.spread.interval)
        axes.errorbar(median, place, xerr=[[median - low], [high - median]], **_WHISKER)
        ends.append(high)
    return max(ends)


def _word(row: Row | None, *, alone: bool) -> str:
    if row is None:
        return "not run"
    if not row.usable:
        return {"fail": "failed"}.get(row.verdict, row.verdict)
    relative = "" if alone else relative_text(row.relative)
    return f"{relative} {RESERVE if row.verdict == 'warn' else ''}".strip()
