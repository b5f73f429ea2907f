"""The fabric with the links drawn that are off, watts as bars, and rates of pairs while paths change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.model import Floats, Topology
from testbed.experiments.regulate.choose_links import LinkChoice
from testbed.experiments.regulate.power import Power
from testbed.experiments.regulate.thresholds import Rule
from testbed.experiments.report.drawing import fabric_panel
from testbed.experiments.report.fabric_drawing import ReportFabric, Stroke
from testbed.experiments.report.geometry import layout
from testbed.experiments.report.marks import DASHED, Bars, Line, Mark, Note, line_style
from testbed.experiments.report.palette import LINK, MEASURED, MUTED
from testbed.experiments.report.panels import Axis, Block, Panel, Picture
from testbed.experiments.report.render import write
from testbed.planning import Plan

_FABRIC = 420.0  # pixels
_A_BAR = 92.0
_MAX_CURVES = 8
_GAP = 4  # periods


def draw(plan: Plan, found: Sequence[tuple[LinkChoice, Sequence[Power]]], form: str) -> bytes:
    """Draw the fabric of the first choice, and the power of all."""
    panels = [_fabric(plan.wiring, found[0][0]), _watts(found)]
    width = sum(panel.width for panel in panels) + 160
    return write(Picture([Block(panels, 2)], width=width), form)


def _fabric(topology: Topology, choice: LinkChoice) -> Panel:
    slower = np.isin(np.arange(topology.link_count), choice.slowed_links)
    off = choice.selection.off
    strokes = [Stroke(np.flatnonzero(~off & ~slower).tolist(), MEASURED, 2.1, name="link on")]
    if slower.any():
        strokes.append(Stroke(np.flatnonzero(slower).tolist(), MEASURED, 0.9, name="slower"))
    strokes.append(Stroke(np.flatnonzero(off).tolist(), LINK, 1.1, (0, (2, 2)), name="off"))
    place = layout(topology)
    more = f", {int(slower.sum())} slower" if slower.any() else ""
    title = f"{int(off.sum())} of {len(off)} links off{more}: {choice.traffic.name}"
    return fabric_panel(ReportFabric(topology, _FABRIC / max(place.width, place.height), strokes, label=9.5), title)


def _watts(found: Sequence[tuple[LinkChoice, Sequence[Power]]]) -> Panel:
    rows = [(choice.traffic.name, power) for choice, powers in found for power in powers]
    at = np.arange(len(rows))
    before = [float(power.before.sum()) for _, power in rows]
    after = [float(power.after.sum()) for _, power in rows]
    notes = [
        Note(
            place + 0.2,
            watts,
            f"\N{MINUS SIGN}{100 * power.saving:.0f} %" if power.saving else "the same",
            align="center",
        )
        for place, (watts, (_, power)) in enumerate(zip(after, rows, strict=True))
    ]
    names = [(float(place), f"{traffic}\n{power.model.name}") for place, (traffic, power) in enumerate(rows)]
    x = Axis(ticks=names, low=-0.6, high=len(rows) - 0.4)
    y = Axis("Power of all switches (W)", low=0, high=1.12 * max(before), grid=True)
    bars = [
        Bars(at - 0.2, before, "all links on", LINK, 0.38), Bars(at + 0.2, after, "links off", MEASURED, 0.38)
    ]  # fmt: skip
    return Panel([*bars, *notes], x, y, width=max(_A_BAR * len(rows), 220.0), height=320)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time in which something was changed: s, and what."""

    begin: float
    end: float
    name: str


def draw_rates(time: Floats, rates: Mapping[str, Floats], changes: Sequence[Stretch]) -> bytes:
    """Draw rates of pairs of hosts over time as SVG, changes of paths as bands (Koibuchi et al. 2011, Fig. 6).

    Of many pairs it shows those whose rate changes most.

    `time`: (T,) laboratory s; `rates`: name of a pair → (T,) bit/s.
    """
    chosen = sorted(sorted(rates, key=lambda name: -float(rates[name].std()))[:_MAX_CURVES])
    marks = [Mark(change.begin, change.end, text=change.name) for change in changes]
    lines = [
        replace(line_style(number), x=time[1:], y=rates[name][1:] / 1e6, name=name, marker="", width=1.2)
        for number, name in enumerate(chosen)
    ]
    x, y = Axis("Laboratory time (s)", low=0), Axis("Frames of a pair (Mbit/s)", low=0, grid=True)
    return write(Picture([Block([Panel([*marks, *lines], x, y, width=780, height=280)])]), "svg")


def draw_loop(
    rule: Rule,
    links: int,
    looks: Sequence[tuple[float, float]],
    off: Sequence[tuple[float, int]],
    loads: Sequence[Stretch],
) -> bytes:
    """Draw what links were used and how many were on, over time, as SVG; loads are bands.

    Args:
        rule: that was decided by.
        links: how many there are.
        looks: (s, share of its rate that the busiest one carried).
        off: (s, how many were off from then on).
        loads: that ran.
    """
    end = max([at for at, _ in (*looks, *off)] + [load.end for load in loads])
    ends = (0.0, end)
    # While links go off or on nobody looks: there the line has a gap.
    points = [*looks[:1]]
    for (before, _), look_at in itertools.pairwise(looks):
        points += [*([(before, math.nan)] if look_at[0] - before > _GAP * rule.period else []), look_at]
    used = [
        Line(ends, (100 * rule.on_above,) * 2, "all go on above", MUTED, DASHED, 1.0),
        Line(ends, (100 * rule.off_below,) * 2, "may go off below", MUTED, (0, (1.5, 1.5)), 1.0),
        Line([at for at, _ in points], [100 * use for _, use in points], marker="o"),
    ]
    steps = [*off, (end, off[-1][1])]
    on = [Line([at for at, _ in steps], [links - count for _, count in steps], stepped=True)]
    x = Axis("Laboratory time (s)", low=0, high=end)
    named = [Mark(load.begin, load.end, text=load.name) for load in loads]
    panels = [
        Panel([*named, *used], x, Axis("Busiest link (% of its rate)", low=0, grid=True), width=780, height=200),
        Panel([*(replace(mark, text="") for mark in named), *on], x,
              Axis("Links on", low=0, high=1.05 * links, grid=True, whole=True), width=780, height=120),
    ]  # fmt: skip
    return write(Picture([Block(panels)]), "svg")
