"""Figures as data, and how they are laid out; `render.py` writes them.

A picture is blocks of panels, a panel is marks over two axes. The renderer measures all text and gives it its room,
leaves out tick labels that would touch, and explains each name once, above. The same picture gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from testbed.experiments.report.fabric_drawing import ReportFabric, draw_fabric
from testbed.experiments.report.marks import DRAW, Bars, Drawn, Heat, Line, Mark, Note, Stairs
from testbed.experiments.report.palette import INK, MUTED, PAPER

PAGE_WIDTH = 1080.0  # pixels of 1/96 inch: what the report's page has room for
PIXELS_AN_INCH = 96
TITLE_POINTS, LABEL_POINTS = 9.0, 7.5
_HEAD = 10.0
_EDGE, _BETWEEN = 6.0, 16.0  # pixels
_KEY = 34.0  # of a name in the legend: its sample and the space behind it
_MINUS = "\N{MINUS SIGN}"
_DRAW: dict[type, Callable[..., Drawn]] = {**DRAW, ReportFabric: draw_fabric}


@dataclass(frozen=True, slots=True)
class Axis:
    """A side of a panel."""

    label: str = ""  # what it means, with its unit
    # `sizes` is logarithmic to the base 2, with a place for 0; `counts` likewise, to the base 10
    scale: Literal["linear", "log", "sizes", "counts"] = "linear"
    low: float | None = None  # where it begins; None = by what is drawn
    high: float | None = None  # where it ends; None = by what is drawn
    ticks: Sequence[tuple[float, str]] | None = None  # places with their texts; None = chosen, () = none
    grid: bool = False  # whether a line goes through each
    whole: bool = False  # whether chosen ticks are whole numbers


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Marks over two axes."""

    marks: Sequence[Line | Bars | Stairs | Mark | Note | Heat | ReportFabric]  # drawn one after the other
    x: Axis = field(default_factory=Axis)  # the lower side
    y: Axis = field(default_factory=Axis)  # the left side, upward unless its low is above its high
    title: str = ""  # above, on the left
    aside: str = ""  # above, on the right
    colour: str = INK  # of the title; one that is no text's own makes it bold, and so do words aside
    width: float = 430.0  # pixels between the axes' ends, at most
    height: float = 240.0  # likewise


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Panels in rows; those in a column are equally wide, those in a row equally high."""

    panels: Sequence[Panel]
    columns: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """Blocks below each other, over them a title and the names of all marks that have one."""

    blocks: Sequence[Block]  # from the top
    title: str = ""  # over everything
    width: float = PAGE_WIDTH  # pixels; panels get narrower to fit in, and the picture where they need less


def compose(picture: Picture) -> Figure:
    """Make the figure that is written, in the style that is set."""
    figure = Figure(figsize=(picture.width / PIXELS_AN_INCH, 5), dpi=PIXELS_AN_INCH, facecolor=PAPER)
    renderer: RendererAgg = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    names: dict[tuple[type, str], Artist] = {}
    grids = [_Grid(figure, renderer, block, picture.width, names) for block in picture.blocks]
    legend = [(name, artist) for (_, name), artist in names.items()]
    entry = max((pixels(name, LABEL_POINTS) for name, _ in legend), default=0.0) + _KEY
    title = wrap_text(picture.title, picture.width - 2 * _EDGE, _HEAD)
    width = max(*(grid.width for grid in grids), entry * bool(legend)) + 2 * _EDGE
    if title:
        width = max(width, min(picture.width, pixels(picture.title, _HEAD) + 2 * _EDGE))
        title = wrap_text(picture.title, width - 2 * _EDGE, _HEAD)
    rows = math.ceil(len(legend) / max(1, int((width - 2 * _EDGE) / entry))) if legend else 0
    down = _EDGE
    head = []
    if title:
        head.append((figure.text(0, 0, title, va="top", fontsize=_HEAD, weight="bold", linespacing=1.15), down))
        down += 1.35 * _HEAD * PIXELS_AN_INCH / 72 * len(title.split("\n"))
    if legend:
        texts, artists = zip(*legend, strict=True)
        found = figure.legend(
            artists, texts, loc="upper left", ncols=math.ceil(len(legend) / rows), fontsize=LABEL_POINTS,
            handlelength=1.8, columnspacing=1.4, borderpad=0, borderaxespad=0,
        )  # fmt: skip
        legend_at = down
        down += found.get_window_extent(renderer).height + 9
    height = down + sum(grid.height for grid in grids) + _EDGE
    figure.set_size_inches(width / PIXELS_AN_INCH, height / PIXELS_AN_INCH)
    for text, at in head:
        text.set_position((_EDGE / width, 1 - at / height))
    if legend:
        found.set_bbox_to_anchor((_EDGE / width, 1 - legend_at / height))
    for grid in grids:
        grid.place(figure, width, height, down)
        down += grid.height
    return figure


class _Grid:
    """The axes of a block, drawn and measured.

    Attributes:
        width: pixels of all, with their labels.
        height: likewise.
    """

    def __init__(
        self, figure: Figure, renderer: RendererAgg, block: Block, width: float, names: dict[tuple[type, str], Artist]
    ) -> None:
        panels = block.panels
        self._columns = min(block.columns, len(panels))
        rows = range(0, len(panels), self._columns)
        sizes = figure.get_size_inches() * PIXELS_AN_INCH
        self._axes = []
        for panel in panels:
            axes = figure.add_axes((0, 0, panel.width / sizes[0], panel.height / sizes[1]))
            self._axes.append(axes)
            for mark in panel.marks:
                for artist, name in _DRAW[type(mark)](axes, mark):
                    if name:
                        names.setdefault((type(artist), name), artist)
            _set_axis(axes, panel.x, panel.width, upright=False)
            _set_axis(axes, panel.y, panel.height, upright=True)
            axes.set_ylabel(wrap_text(panel.y.label, panel.height))
        of_column = [range(column, len(panels), self._columns) for column in range(self._columns)]
        wanted = np.array([max(panels[number].width for number in some) for some in of_column])
        side = self._margins(renderer)[:, (0, 2)]
        room = (
            width - 2 * _EDGE - _BETWEEN * (self._columns - 1) - sum(side[some].max(axis=0).sum() for some in of_column)
        )
        self._widths = wanted * min(1.0, room / wanted.sum())
        self._heights = np.array([max(panel.height for panel in panels[row : row + self._columns]) for row in rows])
        for number, (axes, panel) in enumerate(zip(self._axes, panels, strict=True)):
            cell, tall = self._widths[number % self._columns], self._heights[number // self._columns]
            axes.set_position((0, 0, cell / sizes[0], tall / sizes[1]))
            axes.set_xlabel(wrap_text(panel.x.label, cell))
            weight = "bold" if panel.aside or panel.colour not in (INK, MUTED) else "normal"
            whole = cell + side[of_column[number % self._columns], 1].max()
            axes.set_title(
                wrap_text(panel.title, whole - pixels(panel.aside)), color=panel.colour, weight=weight, pad=7
            )
            axes.set_title(panel.aside, loc="right", color=MUTED, fontsize=LABEL_POINTS, pad=7)
            _leave_out_labels(axes)
        margins = self._margins(renderer)
        self._left, self._right = (
            np.array([margins[some, place].max() for some in of_column]) for place in (0, 2)
        )  # fmt: skip
        self._below, self._above = (
            np.array([margins[row : row + self._columns, place].max() for row in rows]) for place in (1, 3)
        )
        self.width = float((self._left + self._widths + self._right).sum()) + _BETWEEN * (self._columns - 1)
        self.height = float((self._below + self._heights + self._above).sum()) + _BETWEEN * (len(rows) - 1) + _EDGE

    def _margins(self, renderer: RendererAgg) -> npt.NDArray[np.float64]:
        """(N, 4) pixels of what each panel has to the left, below, to the right and above."""
        found = np.zeros((len(self._axes), 4))
        for number, axes in enumerate(self._axes):
            inside, whole = axes.get_window_extent(), axes.get_tightbbox(renderer)
            if whole is not None:
                found[number] = (
                    inside.x0 - whole.x0, inside.y0 - whole.y0, whole.x1 - inside.x1, whole.y1 - inside.y1,
                )  # fmt: skip
        return np.asarray(np.maximum(np.ceil(found), 0))

    def place(self, figure: Figure, width: float, height: float, top: float) -> None:
        """Put the axes where they belong in a figure of a size, below a place."""
        for number, axes in enumerate(self._axes):
            row, column = divmod(number, self._columns)
            left = _EDGE + self._left[column] + column * _BETWEEN
            left += (self._left + self._widths + self._right)[:column].sum()
            down = top + self._above[row] + self._heights[row] + row * _BETWEEN
            down += (self._above + self._heights + self._below)[:row].sum()
            size = self._widths[column] / width, self._heights[row] / height
            axes.set_position((left / width, 1 - down / height, *size))


def _set_axis(axes: Axes, axis: Axis, length: float, *, upright: bool) -> None:
    side = axes.yaxis if upright else axes.xaxis
    scale = axes.set_yscale if upright else axes.set_xscale
    limits: Callable[..., Any] = axes.set_ylim if upright else axes.set_xlim
    high = max(axes.dataLim.intervaly if upright else axes.dataLim.intervalx)
    positive = axes.dataLim.minposy if upright else axes.dataLim.minposx
    if axis.scale == "log" and 0 < positive < math.inf:
        scale("log")
        steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if high < 10 * positive else (1, 2, 5) if high < 50 * positive else (1,)
        side.set_major_locator(LogLocator(10, steps))
        side.set_minor_locator(NullLocator())
    elif axis.scale in ("sizes", "counts"):
        scale("symlog", base=2 if axis.scale == "sizes" else 10, linthresh=1)
        side.set_minor_locator(NullLocator())
    else:
        bins = min(8, max(3, int(length / (38 if upright else 60))))
        side.set_major_locator(MaxNLocator(bins, steps=[1, 2, 2.5, 5, 10], integer=axis.whole))
    side.set_major_formatter(FuncFormatter(lambda value, _: tick_text(value)))
    if axis.low is not None:
        limits(axis.low, None)
    if axis.high is not None:
        limits(None, axis.high)
    if axis.ticks is not None:
        places, texts = ([place for place, _ in axis.ticks], [text for _, text in axis.ticks])
        side.set_major_locator(FixedLocator(places))
        side.set_major_formatter(FixedFormatter(texts))
        side.set_minor_locator(NullLocator())
        if upright:
            side.set_tick_params(length=0)
    if axis.grid:
        axes.grid(axis="y" if upright else "x")


def _leave_out_labels(axes: Axes) -> None:
    """Of given tick labels keep those that touch none before them; of evenly spaced ones every second or third."""
    for side, upright in ((axes.xaxis, False), (axes.yaxis, True)):
        formatter = side.get_major_formatter()
        if not isinstance(formatter, FixedFormatter) or not formatter.seq:
            continue
        places = np.asarray(side.get_major_locator()())
        ends = np.stack([0 * places, places] if upright else [places, 0 * places], axis=1)
        at = axes.transData.transform(ends)[:, int(upright)]
        order = np.argsort(at, kind="stable")
        lines = [text.split("\n") for text in formatter.seq]
        reach = np.array(
            [
                1.25 * len(part) * LABEL_POINTS if upright else max(pixels(line, LABEL_POINTS) for line in part) + 3
                for part in lines
            ]
        )
        kept = _select_labels(at[order], reach[order])
        chosen = sorted(order[kept].tolist())
        side.set_major_locator(FixedLocator(places[chosen].tolist()))
        side.set_major_formatter(FixedFormatter([formatter.seq[number] for number in chosen]))


def _select_labels(at: npt.NDArray[np.float64], reach: npt.NDArray[np.float64]) -> list[int]:
    """Which of some labels, from the left, have room: their middles and widths in pixels."""
    gaps = np.diff(at)
    if len(gaps) and gaps.max() - gaps.min() < 0.5:
        step = next(step for step in range(1, len(at) + 1) if step * gaps[0] >= reach.max() or step == len(at))
        return list(range(0, len(at), step))
    kept: list[int] = []
    for number in range(len(at)):
        if not kept or at[number] - at[kept[-1]] >= (reach[number] + reach[kept[-1]]) / 2:
            kept.append(number)
    return kept


def tick_text(value: float) -> str:
    """A number beside an axis: six digits, thousands apart, no exponent where it can be avoided."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"
    return text.replace("-", _MINUS)


def wrap_text(text: str, width: float, size: float = TITLE_POINTS) -> str:
    """Text in lines of a width in pixels, as far as its words allow it."""
    lines, line = [], ""
    for word in text.split(" "):
        longer = f"{line} {word}".strip()
        if line and pixels(longer, size) > width:
            lines.append(line)
            longer = word
        line = longer
    return "\n".join([*lines, line])


@lru_cache(4096)
def pixels(text: str, size: float = TITLE_POINTS) -> float:
    """Width of a text in a size in points."""
    with mpl.rc_context({"text.parse_math": False}):
        points = TextPath((0, 0), text, size=size).get_extents().width if text.strip() else 0.0
    return float(points * PIXELS_AN_INCH / 72)


def rows_of_names(names: Iterable[str]) -> tuple[tuple[float, str], ...]:
    """Ticks for rows one below the other, each a unit high, such as those of a heat map."""
    return tuple((number + 0.5, name) for number, name in enumerate(names))
