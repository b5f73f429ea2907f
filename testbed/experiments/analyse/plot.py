"""Channel loads and path lengths of several plans as curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from testbed.base.untrusted_text import csv_text
from testbed.experiments.analyse.plan_figures import Analysis
from testbed.experiments.report.marks import MAX_LINES, Line, line_style
from testbed.experiments.report.panels import Axis, Block, Panel, Picture
from testbed.experiments.report.render import write

MAX_CURVES = MAX_LINES
_WIDTH, _HEIGHT = 400.0, 270.0  # pixels


def draw(analyses: Sequence[Analysis], form: str) -> bytes:
    """Draw a panel of sorted channel loads for each pattern, and one of path lengths; a colour a scenario.

    They are of the same patterns, up to MAX_CURVES.
    """
    # Lines get thinner, so that curves on top of each other are both seen.
    count = len(analyses)
    step = min(0.5, 2.0 / count)
    styles = [replace(line_style(number), width=1.5 + step * (count - 1 - number)) for number in range(count)]
    patterns = [load.pattern for load in analyses[0].loads]
    panels = [_loads(analyses, pattern, styles) for pattern in patterns]
    panels.append(_hops(analyses, styles))
    columns = min(len(panels), 2 if len(panels) in (2, 4) else 3)
    return write(Picture([Block(panels, columns)], width=1450), form)


def as_csv(analyses: Sequence[Analysis]) -> str:
    """What draw() draws, a row a point.

    `channel load <pattern>` has channels by rank, busiest first, and their load as a multiple of the injection rate;
    `path length` has hops between switches, and the pairs of hosts that far apart in per cent.
    """
    rows: list[tuple[str, str, int, float]] = []
    for analysis in analyses:
        name = analysis.plan.scenario.name
        for load in analysis.loads:
            for rank, value in enumerate(np.sort(load.demand)[::-1].tolist(), start=1):
                rows.append((name, f"channel load {load.pattern}", rank, value))
        for hops, pairs in enumerate(analysis.hops.distribution):
            rows.append((name, "path length", hops, 100 * pairs / max(analysis.hops.pairs, 1)))
    return csv_text(("scenario", "figure", "place", "value"), rows)


def links_as_csv(analyses: Sequence[Analysis]) -> str:
    """The load of every channel between switches, a row each, by the names that the switches have in their file.

    `flows` cross it, `load` is a multiple of the injection rate, `busiest` a share of the busiest channel's in per
    cent. With sets of next hops these are means over all choices.
    """
    rows: list[tuple[str, str, str, str, int, float, float, float]] = []
    for analysis in analyses:
        topology = analysis.plan.topology
        names = topology.switch_labels or [topology.switch_name(switch) for switch in range(topology.switch_count)]
        ends = zip(topology.channel_source.tolist(), topology.channel_target.tolist(), strict=True)
        channels = [(names[one], names[other], int(topology.plane[c // 2])) for c, (one, other) in enumerate(ends)]
        for load in analysis.loads:
            most = float(load.demand.max(initial=0)) or 1.0
            for channel, flows, demand in zip(channels, load.flows.tolist(), load.demand.tolist(), strict=True):
                rows.append((analysis.plan.scenario.name, load.pattern, *channel, flows, demand, 100 * demand / most))
    return csv_text(("scenario", "pattern", "from", "to", "plane", "flows", "load", "busiest"), rows)


def _loads(analyses: Sequence[Analysis], pattern: str, styles: Sequence[Line]) -> Panel:
    lines = []
    for analysis, style in zip(analyses, styles, strict=True):
        load = next(load for load in analysis.loads if load.pattern == pattern)
        falling = np.sort(load.demand)[::-1]
        if len(falling):
            share = 100 * np.arange(len(falling) + 1) / len(falling)
            lines.append(replace(style, x=share, y=np.append(falling, falling[-1]), stepped=True, marker=""))
    x = Axis("Channels, busiest first (% of all)", low=0, high=100)
    y = Axis("Channel load (× injection rate)", low=0, grid=True)
    return Panel(lines, x, y, f"Channel load: {pattern}", width=_WIDTH, height=_HEIGHT)


def _hops(analyses: Sequence[Analysis], styles: Sequence[Line]) -> Panel:
    lines = []
    for analysis, style in zip(analyses, styles, strict=True):
        pairs = np.array(analysis.hops.distribution) / max(analysis.hops.pairs, 1)
        name = f"{analysis.plan.scenario.name} (mean {analysis.hops.mean:.3g} hops)"
        lines.append(replace(style, x=np.arange(len(pairs)), y=100 * pairs, name=name))
    y = Axis("Pairs of hosts (%)", low=0, grid=True)
    return Panel(lines, Axis("Hops between switches", whole=True), y, "Length of paths", width=_WIDTH, height=_HEIGHT)
