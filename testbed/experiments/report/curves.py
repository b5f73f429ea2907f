"""Curves of simulations and counters: latency over accepted traffic, and growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.model import Floats, Longs
from testbed.experiments.report.marks import Line, Mark, Reach, line_style
from testbed.experiments.report.panels import Axis, Block, Panel, Picture
from testbed.experiments.report.render import write

# Axes of the flit level and of the packet level.
CYCLES = ("Accepted traffic (flits/host/cycle)", "Mean latency (cycles)")
MICROSECONDS = ("Accepted traffic (share of a host's link)", "Mean latency (µs)")


@dataclass(frozen=True, slots=True)
class Dot:
    """One load."""

    accepted: float  # in the unit of the axis
    latency: float  # mean latency, likewise
    min: float  # lowest mean latency of a seed
    max: float  # highest mean latency of a seed


def draw_latency(dots: Sequence[Dot], bound: float | None, title: str, labels: tuple[str, str] = CYCLES) -> bytes:
    """Draw one curve as SVG, loads in the order given, with the bound that no load below saturation exceeds.

    `bound`: rate at which the bottleneck link saturates, or None.
    """
    right = max(dot.accepted for dot in dots)
    shown = bound is not None and bound <= 1.5 * right
    curve = Line(
        [dot.accepted for dot in dots], [dot.latency for dot in dots], marker="o",
        reach=Reach([dot.min for dot in dots], [dot.max for dot in dots]),
    )  # fmt: skip
    marks = [Mark(bound, text=f"bottleneck link saturates at {bound:.3g}")] if bound is not None and shown else []
    x = Axis(labels[0], low=0, high=1.06 * max(right, bound if bound is not None and shown else 0), grid=True)
    panel = Panel([curve, *marks], x, Axis(labels[1], "log", grid=True), title, width=466, height=274)
    return write(Picture([Block([panel])]), "svg")


def draw_slowdown(size: Longs, slowdown: Floats, title: str, most: int = 12) -> bytes:
    """Draw completion times of flows by size as SVG: percentiles of groups of about as many flows each.

    A percentile that the groups are too small for is left out.

    Args:
        size: (F,) bytes.
        slowdown: (F,) completion time as a multiple of the one on idle links.
        title: above.
        most: groups.
    """
    order = np.argsort(size, kind="stable")
    groups = np.array_split(order, min(most, max(1, len(order) // 20)))
    fewest = min(len(group) for group in groups)
    middle = [float(np.median(size[group])) for group in groups]
    lines = [
        replace(
            line_style(number), x=middle, y=[float(np.percentile(slowdown[group], percent)) for group in groups],
            name=name,
        )
        for number, (percent, name) in enumerate(((50, "median"), (95, "95th percentile"), (99, "99th percentile")))
        if fewest * (100 - percent) >= 100 or percent == 50
    ]  # fmt: skip
    x = Axis("Flow size (bytes)", "log", grid=True)
    y = Axis("Completion time / time on idle links", "log", low=0.9, grid=True)
    return write(Picture([Block([Panel(lines, x, y, title, width=466, height=274)])]), "svg")


def draw_growth(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, quantity: str, form: str
) -> bytes:
    """Draw counters over time on a logarithmic scale. `curves`: name → seconds and counts; up to four."""
    lines = [
        replace(line_style(number, dashed=False), x=seconds, y=counts, name=name)
        for number, (name, (seconds, counts)) in enumerate(curves.items())
    ]
    panel = Panel(lines, Axis("Time (s)", low=0), Axis(quantity, "counts", low=0, grid=True), width=544, height=230)
    return write(Picture([Block([panel])], title), form)
