"""Curves of simulations and counters: latency over accepted traffic, alone or many beside each other, and growth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from testbed.report.marks import Line, Mark, Reach, look
from testbed.report.panels import Axis, Block, Panel, Picture
from testbed.report.render import write

ACCEPTED = "Accepted traffic (flits/host/cycle)"
# Axes of the flit level and of the packet level.
CYCLES = (ACCEPTED, "Mean latency (cycles)")
MICROSECONDS = ("Accepted traffic (share of a host's link)", "Mean latency (µs)")


@dataclass(frozen=True, slots=True)
class Dot:
    """One load."""

    accepted: float  # in the unit of the axis
    latency: float  # mean latency, likewise
    min: float  # lowest mean latency of a seed
    max: float  # highest mean latency of a seed


@dataclass(frozen=True, slots=True)
class LatencyPanel:
    """A topology under a traffic: name of each routing → its loads, ascending."""

    title: str
    routings: Mapping[str, Sequence[Dot]]


def draw_latency(dots: Sequence[Dot], bound: float | None, title: str, labels: tuple[str, str] = CYCLES) -> bytes:
    """Draw one curve as SVG, loads in the order given, with the bound that no load below saturation exceeds.

    `bound`: rate at which the bottleneck channel saturates, or None.
    """
    right = max(dot.accepted for dot in dots)
    shown = bound is not None and bound <= 1.5 * right
    curve = Line(
        [dot.accepted for dot in dots], [dot.latency for dot in dots], marker="o",
        reach=Reach([dot.min for dot in dots], [dot.max for dot in dots]),
    )  # fmt: skip
    marks = [Mark(bound, text=f"bottleneck channel saturates at {bound:.3g}")] if bound is not None and shown else []
    x = Axis(labels[0], low=0, high=1.06 * max(right, bound if bound is not None and shown else 0), grid=True)
    panel = Panel([curve, *marks], x, Axis(labels[1], "log", grid=True), title, width=466, height=274)
    return write(Picture([Block([panel])]), "svg")


def draw_burton(panels: Sequence[LatencyPanel], *, columns: int, unit: str) -> bytes:
    """Draw panels in Burton normal form: latency over accepted traffic, several routings in a panel.

    The form in which network simulations are compared (Duato, Yalamanchili, Ni 2003, section 9.2). Beyond saturation a
    curve bends back: less arrives although more is asked for.
    """
    columns, rows = min(columns, len(panels)), -(-len(panels) // columns)
    drawn = []
    for number, panel in enumerate(panels):
        lines = [
            Line([dot.accepted for dot in dots], [dot.latency for dot in dots], name, **look(place))
            for place, (name, dots) in enumerate(panel.routings.items())
        ]
        right = max((dot.accepted for dots in panel.routings.values() for dot in dots), default=1.0)
        row, column = divmod(number, columns)
        x = Axis(ACCEPTED if row == rows - 1 else "", low=0, high=1.06 * right, grid=True)
        y = Axis(f"Mean latency ({unit})" if column == 0 else "", "log", grid=True)
        drawn.append(Panel(lines, x, y, panel.title, width=258, height=176))
    return write(Picture([Block(drawn, columns)]), "svg")


def draw_growth(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, quantity: str, form: str
) -> bytes:
    """Draw counters over time on a logarithmic scale. `curves`: name → seconds and counts; up to four."""
    lines = [
        Line(seconds, counts, name, **look(number, dashed=False))
        for number, (name, (seconds, counts)) in enumerate(curves.items())
    ]
    panel = Panel(lines, Axis("Time (s)", low=0), Axis(quantity, "counts", low=0, grid=True), width=544, height=230)
    return write(Picture([Block([panel])], title), form)
