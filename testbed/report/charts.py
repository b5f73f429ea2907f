"""Bar charts of measured beside predicted figures, and curves over message size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedFormatter,
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from testbed.report.figures import Scale, bytes_text, scale_for
from testbed.report.palette import INK, MEASURED, PREDICTED
from testbed.report.svg import PIXELS_AN_INCH, drawing_style, new_figure, to_svg

MOST_COLUMNS = 16  # more bars lie down
MOST_BARS = 64  # more become a distribution
_BARS_A_COLUMN = 32
_WIDTH = 1080.0
_MOST_SIZES_LABELLED = 8
_LOGARITHMIC_FROM = 8  # times the middle flow


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: median with least and most, in the unit of the samples; prediction where there is one."""

    name: str
    median: float
    low: float
    high: float
    predicted: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """One figure by message size: bars whose names are byte counts, in rising order."""

    title: str
    unit: str
    logarithmic: bool
    predicted_name: str
    points: tuple[Bar, ...]


def bar_chart(bars: Sequence[Bar], title: str, unit: str, prefix: str) -> str:
    """Return upright bars as SVG, lying ones when many, a distribution when very many."""
    scale = scale_for(unit, max(bar.median for bar in bars))
    with drawing_style():
        if len(bars) <= MOST_COLUMNS:
            figure = _upright(bars, f"{title} ({scale.name})", scale)
        elif len(bars) <= MOST_BARS:
            figure = _lying(bars, f"{title} ({scale.name})", scale)
        else:
            figure = _distribution(bars, f"{title} ({scale.name})", scale)
        return to_svg(figure, prefix, f"{title} of {len(bars)} flows")


def curve_charts(curves: Sequence[Curve], prefix: str) -> str:
    """Return small charts over message size as SVG, two beside each other."""
    rows = -(-len(curves) // 2)
    with drawing_style():
        figure = new_figure(_WIDTH if len(curves) > 1 else _WIDTH / 2, 270 * rows)
        grid = figure.subplots(rows, min(len(curves), 2), squeeze=False).reshape(-1)
        for axes, curve in zip(grid, curves, strict=False):
            _curve(axes, curve)
        for axes in grid[len(curves) :]:
            axes.set_visible(False)
        _fit(figure, left=66, right=14, bottom=48, top=34, between=74)
        return to_svg(figure, prefix, f"{len(curves)} figures by message size")


def _upright(bars: Sequence[Bar], label: str, scale: Scale) -> Figure:
    width = min(_WIDTH, 220 + 68 * len(bars))
    figure = new_figure(width, 330)
    axes = figure.add_subplot()
    _bars(bars, scale, axes.bar, axes.errorbar, lying=False)
    axes.set_xticks(range(len(bars)), [bar.name for bar in bars])
    axes.tick_params(axis="x", length=0, labelsize=8)
    axes.set_xlim(-0.6, len(bars) - 0.4)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(label)
    axes.grid(axis="y")
    _legend(axes)
    _fit(figure, left=66, right=10, bottom=30, top=36)
    return figure


def _lying(bars: Sequence[Bar], label: str, scale: Scale) -> Figure:
    columns = 2 if len(bars) > _BARS_A_COLUMN else 1
    rows = -(-len(bars) // columns)
    highest = max(max(bar.high, bar.predicted or 0) for bar in bars) / scale.factor or 1.0
    figure = new_figure(_WIDTH, 84 + 22 * rows)
    grid = figure.subplots(1, columns, squeeze=False, sharex=True).reshape(-1)
    for column, axes in enumerate(grid):
        part = bars[column * rows : (column + 1) * rows]
        _bars(part, scale, axes.barh, axes.errorbar, lying=True)
        axes.set_yticks(range(len(part)), [bar.name for bar in part])
        axes.tick_params(axis="y", length=0, labelsize=8)
        axes.set_ylim(rows - 0.4, -0.6)
        axes.set_xlim(0, highest * 1.04)
        axes.set_xlabel(label)
        axes.grid(axis="x")
    _legend(grid[0])
    _fit(figure, left=72, right=14, bottom=44, top=34, between=80)
    return figure


def _bars(
    bars: Sequence[Bar],
    scale: Scale,
    draw: Callable[..., object],
    whisker: Callable[..., object],
    *,
    lying: bool,
) -> None:
    place = np.arange(len(bars), dtype=float)
    median, low, high = (
        np.array([getattr(bar, name) for bar in bars]) / scale.factor for name in ("median", "low", "high")
    )
    predicted = np.array([math.nan if bar.predicted is None else bar.predicted for bar in bars]) / scale.factor
    both = bool(np.isfinite(predicted).any())
    thickness = 0.38 if both else 0.6
    shift = thickness / 2 if both else 0.0
    draw(place - shift, median, thickness, color=MEASURED, label="measured")
    if both:
        draw(place + shift, predicted, thickness, color=PREDICTED, label="predicted")
    if (high > low).any():
        spread = np.stack([median - low, high - median])
        at = (median, place - shift) if lying else (place - shift, median)
        whisker(
            *at,
            **{"xerr" if lying else "yerr": spread},
            fmt="none",
            ecolor=INK,
            elinewidth=1.1,
            capsize=2.5,
            label="least to most",
        )


def _distribution(bars: Sequence[Bar], label: str, scale: Scale) -> Figure:
    figure = new_figure(_WIDTH, 340)
    measured = sorted(bars, key=lambda bar: -bar.median)
    predicted = sorted((bar.predicted for bar in bars if bar.predicted is not None), reverse=True)
    gaps = [100 * (bar.median / bar.predicted - 1) for bar in bars if bar.predicted]
    grid = figure.subplots(1, 2 if gaps else 1, squeeze=False, width_ratios=[2, 1] if gaps else None).reshape(-1)
    rank = np.arange(1, len(bars) + 1)
    low, median, high = (
        np.array([getattr(bar, name) for bar in measured]) / scale.factor for name in ("low", "median", "high")
    )
    grid[0].plot(rank, median, color=MEASURED, linewidth=1.8, label="measured")
    if predicted:
        grid[0].plot(
            rank[: len(predicted)],
            np.array(predicted) / scale.factor,
            color=PREDICTED,
            linewidth=1.8,
            linestyle=(0, (5, 2)),
            label="predicted",
        )
    if (high > low).any():
        grid[0].fill_between(rank, low, high, color=MEASURED, alpha=0.3, linewidth=0, label="least to most")
    grid[0].set(xlim=(0, len(bars) + 1), xlabel="Flows, each curve in falling order", ylabel=label)
    if low.min() > 0 and high.max() > _LOGARITHMIC_FROM * np.median(median):
        grid[0].set_yscale("log")
        grid[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        grid[0].yaxis.set_minor_formatter(NullFormatter())
    else:
        grid[0].set_ylim(bottom=0)
    grid[0].grid(axis="y")
    _legend(grid[0])
    if gaps:
        grid[1].hist(gaps, bins=min(30, max(10, len(gaps) // 8)), color=MEASURED)
        grid[1].set(xlabel="Measured against predicted (%)", ylabel="Flows")
        grid[1].yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        grid[1].axvline(0, color=PREDICTED, linewidth=1.8, linestyle=(0, (5, 2)))
        grid[1].grid(axis="y")
    _fit(figure, left=66, right=14, bottom=48, top=36, between=74)
    return figure


def _curve(axes: Axes, curve: Curve) -> None:
    sizes = [int(point.name) for point in curve.points]
    scale = scale_for(curve.unit, max(point.median for point in curve.points))
    median, low, high = (
        np.array([getattr(point, name) for point in curve.points]) / scale.factor for name in ("median", "low", "high")
    )
    if (high > low).any():
        axes.errorbar(
            sizes,
            median,
            yerr=np.stack([median - low, high - median]),
            fmt="none",
            ecolor=INK,
            elinewidth=1.1,
            capsize=3,
        )
    axes.plot(sizes, median, color=MEASURED, marker="o", markersize=5, linewidth=1.8, label="measured")
    known = [(int(point.name), point.predicted) for point in curve.points if point.predicted is not None]
    if known:
        x, y = zip(*known, strict=True)
        axes.plot(
            x,
            np.array(y) / scale.factor,
            color=PREDICTED,
            marker="s",
            markersize=5,
            linewidth=1.8,
            linestyle=(0, (5, 2)),
            label=curve.predicted_name,
        )
    axes.set_xscale("symlog", base=2, linthresh=1)
    labelled = sizes[:: -(-len(sizes) // _MOST_SIZES_LABELLED)]
    axes.xaxis.set_major_locator(FixedLocator(labelled))
    axes.xaxis.set_major_formatter(FixedFormatter([bytes_text(size) for size in labelled]))
    axes.xaxis.set_minor_locator(NullLocator())
    if curve.logarithmic and low.min() > 0:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5) if low.min() * 30 > high.max() else (1,)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.set(ylabel=scale.name, xlabel="Message size")
    axes.set_title(curve.title, pad=10)
    axes.grid(axis="y")
    if known:
        axes.legend(loc="best", fontsize=8)


def _legend(axes: Axes) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, borderaxespad=0.3, handlelength=1.6)


def _fit(figure: Figure, *, left: float, right: float, bottom: float, top: float, between: float = 0.0) -> None:
    """Margins and distances in pixels."""
    width, height = figure.get_size_inches() * PIXELS_AN_INCH
    figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height)
    grid = figure.axes[0].get_gridspec()
    assert grid is not None  # every chart is made by subplots
    columns, rows = grid.ncols, grid.nrows
    inside, tall = width - left - right, height - top - bottom
    figure.subplots_adjust(
        wspace=between / ((inside - between * (columns - 1)) / columns) if columns > 1 else 0,
        hspace=90 / ((tall - 90 * (rows - 1)) / rows) if rows > 1 else 0,
    )
    figure.align_ylabels()
