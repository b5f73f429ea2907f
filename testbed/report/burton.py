"""Burton normal form: latency over accepted traffic, several routings in a panel, several panels in a figure.

The form in which network simulations are compared (Duato, Yalamanchili, Ni 2003, section 9.2). Beyond saturation a
curve bends back: less arrives although more is asked for.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG

from testbed.report.latency import ACCEPTED, Dot
from testbed.report.palette import PAPER, TREES
from testbed.report.svg import drawing_style, new_figure

_WIDTH, _HEIGHT = 330.0, 250.0  # pixels of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 14.0, 28.0, 46.0
_MARKERS = ("o", "s", "^", "D", "v")
_LINES = ("-", (0, (5, 2)), (0, (1, 1.5)))
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True, slots=True)
class Series:
    """A routing: its loads, ascending."""

    name: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """A topology under a traffic."""

    title: str
    series: tuple[Series, ...]


def draw_burton(panels: Sequence[Panel], *, columns: int, unit: str) -> bytes:
    """Draw all panels as SVG, the legend in the first.

    Args:
        panels: one or more, row by row.
        columns: panels side by side.
        unit: of the latency.

    Returns:
        the file's content; the same panels give the same.
    """
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    width, height = columns * _WIDTH, rows * _HEIGHT
    with drawing_style():
        figure = new_figure(width, height)
        figure.patch.set(visible=True, facecolor=PAPER)
        for number, panel in enumerate(panels):
            row, column = divmod(number, columns)
            left, bottom = column * _WIDTH + _LEFT, (rows - 1 - row) * _HEIGHT + _BOTTOM
            size = (_WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM)
            axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
            _draw(axes, panel, legend=number == 0)
            axes.set_xlabel(ACCEPTED if row == rows - 1 else "")
            axes.set_ylabel(f"Mean latency ({unit})" if column == 0 else "")
        content = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(content, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
    return content.getvalue()


def _draw(axes: Axes, panel: Panel, *, legend: bool) -> None:
    for number, series in enumerate(panel.series):
        style = _LINES[number // len(TREES) % len(_LINES)]
        axes.plot(
            [dot.accepted for dot in series.dots], [dot.latency for dot in series.dots], linestyle=style,
            linewidth=1.4, color=TREES[number % len(TREES)], marker=_MARKERS[number % len(_MARKERS)], markersize=3.5,
            label=series.name,
        )  # fmt: skip
    axes.set_yscale("log")
    right = max((dot.accepted for series in panel.series for dot in series.dots), default=1.0)
    axes.set_xlim(0, 1.06 * right)
    axes.grid(axis="both")
    axes.set_title(panel.title, pad=6)
    if legend:
        axes.legend(fontsize=7, loc="upper right", handlelength=2.4, labelspacing=0.3)
