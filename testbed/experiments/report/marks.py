"""What a panel can show: lines, bars, steps, places on an axis, words, heat maps. Each is data and a way to draw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch, Rectangle
from matplotlib.path import Path

from testbed.base.model import Floats
from testbed.experiments.report.palette import BOX, GRID, HEAT, INK, MEASURED, MUTED, TREES

Values = Sequence[float] | npt.NDArray[Any]
Dash = str | tuple[float, tuple[float, ...]]
Drawn = list[tuple[Artist, str]]  # with the names that a legend explains

DASHED: Dash = (0, (4, 3))
LABEL_POINTS = 7.5
HATCHED: dict[str, object] = {"facecolor": "#e4e6e8", "edgecolor": "#8b949e", "hatch": "/////", "linewidth": 0.6}
FULL_SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)
_COLOUR_BAR, _BAR_GAP = 14.0, 26.0  # pixels
_WHISKER_KEY = Line2D([], [], color=INK, linestyle="none", marker="|", markersize=7)
# Four colours, three kinds of line, and markers: twelve lines can be told apart.
_DASHES: tuple[Dash, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v")
MAX_LINES = len(TREES) * len(_DASHES)


def full_share(largest: float) -> float:
    """A scale that suits shares up to a size: its upper end."""
    return next((share for share in FULL_SHARES if largest <= share), 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """How far values reach below and above those that are drawn: whiskers, or a band; its name for the legend."""

    low: Values
    high: Values
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Points on a line, or with `dash` "none" only points; NaN is a gap, and a line without points only explains."""

    x: Values  # places
    y: Values  # as many
    name: str = ""  # for the legend; empty for none
    colour: str = MEASURED  # of line and markers
    dash: Dash = "-"  # kind of line
    width: float = 1.5  # in points
    marker: str = ""  # as matplotlib calls it; empty for none
    hollow: bool = False  # whether markers are outlines
    stepped: bool = False  # whether each value holds up to the next place
    reach: Reach | None = None  # of each point
    banded: bool = False  # whether that is a band and no whiskers


def line_style(number: int, *, dashed: bool = True) -> Line:
    """One among several lines, without points: its colour, kind and marker."""
    kind = number // len(TREES) % len(_DASHES)
    marker = _MARKERS[number % len(_MARKERS)] if dashed else _MARKERS[kind]
    return Line((), (), colour=TREES[number % len(TREES)], dash=_DASHES[kind] if dashed else "-", marker=marker)


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Bars from zero."""

    at: Values  # their middles
    values: Values  # their lengths
    name: str = ""  # for the legend
    colour: str = MEASURED  # of all
    thickness: float = 0.62  # in the unit of `at`
    lying: bool = False  # whether they go to the right and not up
    hatched: bool = False  # whether they are figures that must not be used
    reach: Reach | None = None  # of each bar


@dataclass(frozen=True, slots=True, eq=False)
class Stairs:
    """Values (N,) each between two of N + 1 edges."""

    edges: Values
    values: Values
    colour: str = MEASURED
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the horizontal axis, or with `end` a stretch of it."""

    at: float  # place
    end: float | None = None  # where a stretch ends
    name: str = ""  # for the legend
    text: str = ""  # written along it, at the top; over a stretch above the panel
    colour: str = MUTED  # of line or stretch
    dash: Dash = DASHED  # kind of line


@dataclass(frozen=True, slots=True)
class Note:
    """Words at a place; `beside` counts to the right of the panel, with x as a share of its width."""

    x: float
    y: float
    text: str
    colour: str = INK
    align: Literal["left", "center"] = "left"
    beside: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Heat:
    """Rows of coloured cells, the first on top, with the scale of their colours."""

    values: Floats  # (R, C), at least one row and one column; not above `full` counts as `full`
    edges: Floats  # (C + 1,) where each column begins, and where the last one ends
    full: float  # value of the warmest colour
    scale: Sequence[str]  # texts beside the colours, from 0 to `full`
    title: str  # what the colours stand for


def draw_line(axes: Axes, line: Line) -> Drawn:
    """Draw it, its whiskers above and its band below."""
    style: dict[str, Any] = {"color": line.colour, "linestyle": line.dash, "linewidth": line.width, "zorder": 2.5}
    if line.marker:
        style |= {"marker": line.marker, "markersize": 4, "zorder": 3, "clip_on": False}
        style |= {"markerfacecolor": "white", "zorder": 4} if line.hollow else {}
    if not len(line.x):  # it only explains
        return [(Line2D([], [], **style), line.name)]
    drawn = axes.plot(line.x, line.y, drawstyle="steps-post" if line.stepped else "default", **style)
    found: Drawn = [(drawn[0], line.name)]
    if line.reach is not None and line.banded:
        band = axes.fill_between(line.x, line.reach.low, line.reach.high, color=line.colour, alpha=0.3, linewidth=0)
        found.append((band, line.reach.name))
    elif line.reach is not None:
        _whiskers(axes, line.x, line.y, line.reach, line.colour, lying=False)
        found.append((_WHISKER_KEY, line.reach.name))
    return found


def draw_bars(axes: Axes, bars: Bars) -> Drawn:
    """Draw them with their whiskers."""
    fill: dict[str, Any] = HATCHED if bars.hatched else {"color": bars.colour}
    (axes.barh if bars.lying else axes.bar)(bars.at, bars.values, bars.thickness, **fill)
    found: Drawn = [(Patch(**fill), bars.name)]
    if bars.reach is not None:
        _whiskers(axes, bars.at, bars.values, bars.reach, INK, lying=bars.lying)
        found.append((_WHISKER_KEY, bars.reach.name))
    return found


def _whiskers(axes: Axes, at: Values, middle: Values, ends: Reach, colour: str, *, lying: bool) -> None:
    centre = np.asarray(middle, dtype=float)
    reach = np.stack([centre - np.asarray(ends.low), np.asarray(ends.high) - centre])
    x, y = (centre, at) if lying else (at, centre)
    across, upward = (reach, None) if lying else (None, reach)
    axes.errorbar(x, y, xerr=across, yerr=upward, fmt="none", ecolor=colour, elinewidth=0.9, capsize=2.0, zorder=4)


def draw_stairs(axes: Axes, stairs: Stairs) -> Drawn:
    """Draw the outline, or all below it."""
    width = 0.0 if stairs.filled else 0.6
    axes.stairs(np.asarray(stairs.values), np.asarray(stairs.edges), fill=stairs.filled, color=stairs.colour,
                linewidth=width)  # fmt: skip
    return []


def draw_mark(axes: Axes, mark: Mark) -> Drawn:
    """Draw a line from bottom to top, or a stretch, and its words."""
    upright = axes.get_xaxis_transform()
    if mark.end is not None:
        stretch = axes.axvspan(mark.at, mark.end, color=GRID, alpha=0.6, linewidth=0)
        axes.text(mark.at, 1.02, mark.text, transform=upright, color=mark.colour, fontsize=LABEL_POINTS)
        return [(stretch, mark.name)]
    line = axes.axvline(mark.at, color=mark.colour, linestyle=mark.dash, linewidth=1.0, zorder=1.5)
    if mark.text:
        axes.annotate(
            mark.text, (mark.at, 1.0), xycoords=("data", "axes fraction"), rotation=90, xytext=(-3, -4),
            textcoords="offset points", ha="right", va="top", fontsize=LABEL_POINTS, color=mark.colour,
        )  # fmt: skip
    return [(line, mark.name)]


def draw_note(axes: Axes, note: Note) -> Drawn:
    """Write the words."""
    place = axes.get_yaxis_transform() if note.beside else axes.transData
    upward = "bottom" if note.align == "center" else "center"
    axes.text(
        note.x, note.y, note.text, transform=place, ha=note.align, va=upward, fontsize=LABEL_POINTS, color=note.colour
    )
    return []


def draw_heat(axes: Axes, heat: Heat) -> Drawn:
    """Draw one outline a colour, with neighbours of a row and colour as one rectangle; zeros stay the background's."""
    level = np.minimum((heat.values / (heat.full or 1.0) * len(HEAT)).astype(int), len(HEAT) - 1)
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
    axes.set_facecolor(BOX)
    axes.set(xlim=(heat.edges[0], heat.edges[-1]), ylim=(len(heat.values), 0))
    for side in axes.spines.values():
        side.set_visible(False)
    draw_colours(axes, heat.title, heat.scale)
    return []


def draw_colours(axes: Axes, title: str, scale: Sequence[str], height: float = 1.0) -> None:
    """Draw the scale of colours to the right of a panel.

    `scale` are texts beside it, from the lower end to the upper; `height` is a share of the panel's.
    """
    width = axes.get_window_extent().width * 96 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    bar = axes.inset_axes((1 + _BAR_GAP / width, (1 - height) / 2, _COLOUR_BAR / width, height))
    for level, colour in enumerate(HEAT):
        bar.add_patch(Rectangle((0, level / len(HEAT)), 1, 1 / len(HEAT), facecolor=colour, linewidth=0))
    bar.set(xlim=(0, 1), ylim=(0, 1))
    bar.set_xticks([])
    bar.set_yticks(np.linspace(0, 1, len(scale)), list(scale))
    bar.yaxis.tick_right()
    bar.tick_params(axis="y", length=0, labelsize=LABEL_POINTS)
    bar.set_title(title, pad=8)
    for side in bar.spines.values():
        side.set_visible(False)


DRAW: dict[type, Callable[..., Drawn]] = {
    Line: draw_line,
    Bars: draw_bars,
    Stairs: draw_stairs,
    Mark: draw_mark,
    Note: draw_note,
    Heat: draw_heat,
}
