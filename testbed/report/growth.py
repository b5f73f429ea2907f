"""Counters that grow, drawn over time on a logarithmic scale."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.ticker import FuncFormatter

from testbed.report.palette import PAPER, TREES
from testbed.report.svg import PIXELS_AN_INCH, drawing_style, new_figure

FORMATS = ("svg", "png")
_WIDTH, _HEIGHT = 640.0, 320.0
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_MARKERS = ("o", "s", "^", "D")


def draw_growth(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, quantity: str, form: str
) -> bytes:
    """Draw counters over time.

    Args:
        curves: name → seconds and counts; up to four.
        title: above the drawing.
        quantity: what is counted.
        form: `svg` or `png`.

    Returns:
        the file's content.
    """
    with drawing_style():
        figure = new_figure(_WIDTH, _HEIGHT)
        figure.patch.set_visible(True)
        figure.patch.set_facecolor(PAPER)
        axes = figure.add_axes((0.12, 0.16, 0.85, 0.72))
        for (name, (seconds, counts)), colour, marker in zip(curves.items(), TREES, _MARKERS, strict=False):
            # Above the axes, where the first counts stand.
            axes.plot(seconds, counts, color=colour, marker=marker, markersize=4, label=name, clip_on=False, zorder=3)
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.set_xlabel("Time (s)")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
        axes.set_ylabel(quantity)
        axes.set_title(title)
        axes.grid(axis="y")
        axes.legend(loc="center right", frameon=True, framealpha=1.0, facecolor=PAPER, edgecolor="none")
        content = io.BytesIO()
        if form == "svg":
            FigureCanvasSVG(figure).print_svg(content, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
        else:
            figure.set_dpi(2 * PIXELS_AN_INCH)
            FigureCanvasAgg(figure).print_png(content)  # type: ignore[no-untyped-call]
    return content.getvalue()
