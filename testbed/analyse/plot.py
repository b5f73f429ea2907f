"""Channel loads and path lengths of several plans as curves."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from testbed.analyse.figures import Analysis
from testbed.report.palette import PAPER, TREES
from testbed.report.svg import PIXELS_AN_INCH, drawing_style, new_figure

FORMATS = ("svg", "png")
# Of four colours and three kinds of line, twelve pairs differ.
_LINES = ("-", (0, (5, 2)), (0, (1.5, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v")
MOST_CURVES = len(TREES) * len(_LINES)
_PANEL = (430.0, 300.0)  # pixels
_MARGINS = {"left": 70.0, "right": 20.0, "bottom": 54.0, "top": 34.0}
_BETWEEN = 84.0
_LEGEND_ROW = 20.0
_LEGEND_COLUMNS = 4
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(analyses: Sequence[Analysis], form: str) -> bytes:
    """Draw a panel of sorted channel loads for each pattern, and one of path lengths; a colour a scenario.

    Args:
        analyses: of the same patterns; up to MOST_CURVES.
        form: `svg` or `png`.

    Returns:
        the file's content.
    """
    patterns = [load.pattern for load in analyses[0].loads]
    with drawing_style():
        figure, panels = _panels(len(patterns) + 1, -(-len(analyses) // _LEGEND_COLUMNS))
        for axes, pattern in zip(panels, patterns, strict=False):
            _loads(axes, analyses, pattern)
        _hops(panels[len(patterns)], analyses)
        handles, labels = panels[len(patterns)].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper left", ncols=_LEGEND_COLUMNS, handlelength=3.6, fontsize=9)
        content = io.BytesIO()
        if form == "svg":
            FigureCanvasSVG(figure).print_svg(content, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
        else:
            figure.set_dpi(2 * PIXELS_AN_INCH)
            FigureCanvasAgg(figure).print_png(content)  # type: ignore[no-untyped-call]
    return content.getvalue()


def _panels(count: int, legend_rows: int) -> tuple[Figure, list[Axes]]:
    columns = min(count, 2 if count in (2, 4) else 3)
    rows = -(-count // columns)
    legend = _LEGEND_ROW * legend_rows + 12
    left, right, bottom, top = (_MARGINS[side] for side in ("left", "right", "bottom", "top"))
    width = left + right + columns * _PANEL[0] + (columns - 1) * _BETWEEN
    height = legend + bottom + top + rows * _PANEL[1] + (rows - 1) * _BETWEEN
    figure = new_figure(width, height)
    figure.patch.set(visible=True, facecolor=PAPER)
    grid = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    figure.subplots_adjust(
        left / width,
        bottom / height,
        1 - right / width,
        1 - (top + legend) / height,
        wspace=_BETWEEN / _PANEL[0],
        hspace=_BETWEEN / _PANEL[1],
    )
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, list(grid[:count])


def _style(number: int, count: int) -> dict[str, Any]:
    """Colours and dashes change, and lines get thinner, so that curves on top of each other are both seen."""
    width = 1.5 + min(0.5, 2.0 / count) * (count - 1 - number)
    return {"color": TREES[number % len(TREES)], "linestyle": _LINES[number % len(_LINES)], "linewidth": width}


def _loads(axes: Axes, analyses: Sequence[Analysis], pattern: str) -> None:
    for number, analysis in enumerate(analyses):
        load = next(load for load in analysis.loads if load.pattern == pattern)
        falling = np.sort(load.demand)[::-1]
        if len(falling):
            share = 100 * np.arange(len(falling) + 1) / len(falling)
            axes.step(
                share, np.append(falling, falling[-1]), where="post", clip_on=False, **_style(number, len(analyses))
            )
    axes.set(xlim=(0, 100), xlabel="Channels, fullest first (% of all)", ylabel="Channel load (× injection rate)")
    axes.set_ylim(bottom=0)
    axes.set_title(f"Channel load: {pattern}", pad=10)
    axes.grid(axis="y")


def _hops(axes: Axes, analyses: Sequence[Analysis]) -> None:
    for number, analysis in enumerate(analyses):
        pairs = np.array(analysis.hops.distribution) / max(analysis.hops.pairs, 1)
        name = f"{analysis.plan.scenario.name} (mean {analysis.hops.mean:.3g} hops)"
        axes.plot(
            range(len(pairs)),
            100 * pairs,
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=5,
            clip_on=False,
            label=name,
            **_style(number, len(analyses)),
        )
    axes.set(xlabel="Hops between switches", ylabel="Pairs of hosts (%)")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    axes.set_title("Length of paths", pad=10)
    axes.grid(axis="y")
