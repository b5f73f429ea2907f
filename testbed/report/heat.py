"""Heat maps: rows of coloured cells over time or over columns, as SVG without a picture in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from testbed.model import Floats
from testbed.report.palette import BOX, HEAT, INK
from testbed.report.svg import drawing_style, new_figure, to_svg

_WIDTH = 1080.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 92.0, 118.0, 26.0, 50.0
_BAR_WIDTH, _BAR_GAP = 14.0, 26.0
_SMALLEST_LABELLED = 8.0  # pixels; of lower rows only some have their names


@dataclass(frozen=True, slots=True)
class HeatMap:
    """What to draw.

    Attributes:
        values: (R, C), at least one row and one column; not above `full` counts as `full`.
        edges: (C + 1,) where each column begins, and where the last one ends.
        rows: name of each row, from the top.
        full: value of the warmest colour.
        scale: five texts beside the colour bar, from 0 to `full`.
        bar: what the colours stand for.
        below: what the horizontal axis stands for.
        columns: name of each column; empty for an axis with numbers.
        marks: places on the horizontal axis that get a line.
        beside: what the rows stand for.
    """

    values: Floats
    edges: Floats
    rows: Sequence[str]
    full: float
    scale: Sequence[str]
    bar: str
    below: str
    columns: Sequence[str] = ()
    marks: Sequence[float] = ()
    beside: str = ""


def draw_heat(heat: HeatMap, prefix: str, label: str, *, row_height: float, width: float = _WIDTH) -> str:
    """Return a heat map as SVG.

    Args:
        heat: what to draw.
        prefix: of the ids.
        label: what a reader who does not see it is told.
        row_height: pixels.
        width: pixels of the whole.
    """
    count = len(heat.rows)
    height = max(count * row_height, 120.0) + _TOP + _BOTTOM
    with drawing_style():
        figure = new_figure(width, height)
        inside = (_LEFT / width, _BOTTOM / height, 1 - (_LEFT + _RIGHT) / width, 1 - (_TOP + _BOTTOM) / height)
        axes = figure.add_axes(inside)
        _cells(axes, heat)
        axes.set(xlim=(heat.edges[0], heat.edges[-1]), ylim=(count, 0), xlabel=heat.below, ylabel=heat.beside)
        axes.set_facecolor(BOX)
        _names(axes, heat, (height - _TOP - _BOTTOM) / count, width - _LEFT - _RIGHT)
        for mark in heat.marks:
            axes.axvline(mark, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        bar = figure.add_axes((1 - (_RIGHT - _BAR_GAP) / width, inside[1], _BAR_WIDTH / width, inside[3]))
        _bar(bar, heat)
        return to_svg(figure, prefix, label)


def _cells(axes: Axes, heat: HeatMap) -> None:
    """One outline a colour, with neighbours of a row and colour as one rectangle; zeros stay the background's."""
    level = np.minimum((heat.values / heat.full * len(HEAT)).astype(int), len(HEAT) - 1)
    level[heat.values <= 0] = -1
    outlines: dict[int, list[tuple[float, float]]] = {}
    for row, levels in enumerate(level):
        starts = np.flatnonzero(np.diff(levels, prepend=-2))
        for start, end in zip(starts, [*starts[1:], len(levels)], strict=True):
            if levels[start] >= 0:
                left, right = float(heat.edges[start]), float(heat.edges[end])
                outlines.setdefault(int(levels[start]), []).extend(
                    [(left, row), (right, row), (right, row + 1), (left, row + 1), (left, row)]
                )
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    for colour, corners in sorted(outlines.items()):
        path = Path(np.array(corners), codes * (len(corners) // len(codes)))
        axes.add_patch(PathPatch(path, facecolor=HEAT[colour], linewidth=0, antialiased=False))


def _names(axes: Axes, heat: HeatMap, row_height: float, width: float) -> None:
    every = max(1, int(np.ceil(_SMALLEST_LABELLED / row_height)))
    axes.set_yticks(np.arange(0, len(heat.rows), every) + 0.5, list(heat.rows[::every]))
    axes.tick_params(axis="y", length=0, labelsize=min(8.0, max(5.5, row_height * every * 0.62)))
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    if heat.columns:
        longest = 6.5 * max(map(len, heat.columns))  # pixels
        step = max(1, int(np.ceil(longest / (width / len(heat.columns)))))
        middles = (heat.edges[:-1] + heat.edges[1:]) / 2
        axes.set_xticks(middles[::step], list(heat.columns[::step]))
        axes.tick_params(axis="x", length=0, labelsize=8)


def _bar(axes: Axes, heat: HeatMap) -> None:
    for level, colour in enumerate(HEAT):
        axes.add_patch(Rectangle((0, level / len(HEAT)), 1, 1 / len(HEAT), facecolor=colour, linewidth=0))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks([])
    axes.set_yticks(np.linspace(0, 1, len(heat.scale)), list(heat.scale))
    axes.yaxis.tick_right()
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.set_title(heat.bar, fontsize=9, pad=8)
    for side in axes.spines.values():
        side.set_visible(False)
