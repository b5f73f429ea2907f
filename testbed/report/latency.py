"""Latency against accepted traffic: the figure that network simulations are compared by."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.backends.backend_svg import FigureCanvasSVG

from testbed.report.palette import MEASURED, MUTED, PAPER
from testbed.report.svg import drawing_style, new_figure

ACCEPTED = "Accepted traffic (flits/host/clock)"
# Axes of the flit level and of the packet level.
CLOCKS = (ACCEPTED, "Mean latency (clocks)")
MICROSECONDS = ("Accepted traffic (share of a host's link)", "Mean latency (µs)")
_SIZE = (560.0, 360.0)  # pixels
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))


@dataclass(frozen=True, slots=True)
class Dot:
    """One load.

    Attributes:
        accepted: in the unit of the axis.
        latency: mean latency, likewise.
        least: lowest mean latency of a seed.
        most: highest mean latency of a seed.
    """

    accepted: float
    latency: float
    least: float
    most: float


def draw_latency(dots: Sequence[Dot], bound: float | None, title: str, labels: tuple[str, str] = CLOCKS) -> bytes:
    """Draw one curve as SVG, loads in the order given, with the bound that no load below saturation exceeds.

    Args:
        dots: of ascending loads, one or more.
        bound: rate at which the fullest channel carries all it can, or None.
        title: over the figure.
        labels: of the axes.

    Returns:
        the file's content; the same dots give the same.
    """
    with drawing_style():
        figure = new_figure(*_SIZE)
        figure.patch.set(visible=True, facecolor=PAPER)
        axes = figure.add_axes((0.13, 0.14, 0.83, 0.76))
        accepted = [dot.accepted for dot in dots]
        latency = [dot.latency for dot in dots]
        spread = [[dot.latency - dot.least for dot in dots], [dot.most - dot.latency for dot in dots]]
        axes.errorbar(accepted, latency, yerr=spread, color=MEASURED, marker="o", markersize=5, capsize=3)
        axes.set_yscale("log")
        axes.set(xlabel=labels[0], ylabel=labels[1])
        right = max(accepted)
        if bound is not None and bound <= 1.5 * right:
            axes.axvline(bound, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.0)
            axes.annotate(
                f"fullest channel full at {bound:.3g}", (bound, 1.0), xycoords=("data", "axes fraction"), rotation=90,
                xytext=(-3, -4), textcoords="offset points", ha="right", va="top", fontsize=8, color=MUTED,
            )  # fmt: skip
            right = max(right, bound)
        axes.set_xlim(0, 1.06 * right)
        axes.grid(axis="both")
        axes.set_title(title, pad=10)
        content = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(content, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
    return content.getvalue()
