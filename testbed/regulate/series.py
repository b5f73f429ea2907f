"""Rates of pairs of hosts over time, with the changes of paths marked (Koibuchi et al. 2011, Fig. 6)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.backends.backend_svg import FigureCanvasSVG

from testbed.model import Floats
from testbed.report.palette import GRID, MUTED, PAPER, TREES
from testbed.report.svg import drawing_style, new_figure

_SIZE = (900.0, 380.0)
_MOST_CURVES = 8
_LINES = ("-", (0, (4, 2)))
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True, slots=True)
class Mark:
    """A time in which something was changed: s, and what."""

    begin: float
    end: float
    name: str


def draw_series(time: Floats, rates: Mapping[str, Floats], marks: Sequence[Mark]) -> bytes:
    """Draw curves as SVG; of many pairs those whose rate changes most.

    Args:
        time: (T,) laboratory s.
        rates: name of a pair → (T,) bit/s.
        marks: drawn as bands.
    """
    chosen = sorted(sorted(rates, key=lambda name: -float(rates[name].std()))[:_MOST_CURVES])
    with drawing_style():
        figure = new_figure(*_SIZE)
        figure.patch.set(visible=True, facecolor=PAPER)
        axes = figure.add_axes((0.08, 0.14, 0.74, 0.74))
        for mark in marks:
            axes.axvspan(mark.begin, mark.end, color=GRID, alpha=0.6, linewidth=0)
            axes.text(mark.begin, 1.02, mark.name, transform=axes.get_xaxis_transform(), color=MUTED, fontsize=8)
        for number, name in enumerate(chosen):
            style = _LINES[(number // len(TREES)) % len(_LINES)]
            axes.plot(
                time[1:], rates[name][1:] / 1e6, color=TREES[number % len(TREES)], linestyle=style, linewidth=1.2,
                label=name,
            )  # fmt: skip
        axes.set(xlabel="Laboratory time (s)", ylabel="Frames of a pair (Mbit/s)")
        axes.set_xlim(left=0.0)
        axes.set_ylim(bottom=0.0)
        axes.grid(axis="y")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8)
        content = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(content, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
    return content.getvalue()
