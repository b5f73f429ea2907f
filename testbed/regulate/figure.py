"""The fabric with the links drawn that are off, and watts as bars."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from testbed.model import Bools, Topology
from testbed.plan import Plan
from testbed.regulate.choice import Choice
from testbed.regulate.power import Power
from testbed.report.geometry import BOX_HEIGHT, BOX_WIDTH, layout, link_line
from testbed.report.palette import BOX, INK, LINK, MEASURED, MUTED, PAPER
from testbed.report.svg import PIXELS_AN_INCH, drawing_style, new_figure

_HEIGHT = 420.0
_BAR_ROOM = 92.0  # pixels a group of bars
_MARGIN = 64.0
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(plan: Plan, found: Sequence[tuple[Choice, Sequence[Power]]], form: str) -> bytes:
    """Draw the fabric of the first choice, and the power of all.

    Args:
        plan: with all links on.
        found: each choice with the power of one or more models, the same for all.
        form: `svg` or `png`.

    Returns:
        the file's content; the same choices give the same.
    """
    groups = len(found) * len(found[0][1])
    bars = max(_BAR_ROOM * groups, 220.0)
    width = _HEIGHT + bars + 3 * _MARGIN
    with drawing_style():
        figure = new_figure(width, _HEIGHT + _MARGIN)
        figure.patch.set(visible=True, facecolor=PAPER)
        low, high = _MARGIN / (_HEIGHT + _MARGIN), 1 - 2 * _MARGIN / (_HEIGHT + _MARGIN)
        fabric = figure.add_axes((0.2 * _MARGIN / width, low / 2, _HEIGHT / width, high + low / 2))
        _fabric(fabric, plan.wiring, found[0][0])
        _bars(figure.add_axes(((_HEIGHT + 2 * _MARGIN) / width, low, bars / width, high)), found)
        content = io.BytesIO()
        if form == "svg":
            FigureCanvasSVG(figure).print_svg(content, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
        else:
            figure.set_dpi(2 * PIXELS_AN_INCH)
            FigureCanvasAgg(figure).print_png(content)  # type: ignore[no-untyped-call]
    return content.getvalue()


def _fabric(axes: Axes, topology: Topology, choice: Choice) -> None:
    off, slower = choice.selection.off, np.zeros(topology.link_count, dtype=bool)
    slower[list(choice.slower)] = True
    kinds: list[tuple[str, Bools, str, float, str | tuple[float, tuple[float, ...]]]] = [
        ("on", ~off & ~slower, MEASURED, 1.6, "-"),
        ("slower", slower, MEASURED, 0.7, "-"),
        ("off", off, LINK, 0.8, (0, (2, 2))),
    ]
    shown = [kind for kind in kinds if kind[0] != "slower" or slower.any()]
    place = layout(topology)
    lines = [link_line(topology, place, link) for link in range(topology.link_count)]
    for _, chosen, colour, width, style in shown:
        some = [line for line, take in zip(lines, chosen.tolist(), strict=True) if take]
        axes.add_collection(LineCollection(some, colors=colour, linewidths=width, linestyles=[style], zorder=1))
    for switch, (x, y) in enumerate(place.switches.tolist()):
        axes.add_patch(_box(x, y))
        name = topology.switch_name(switch)
        axes.text(x, y, name, ha="center", va="center", fontsize=7, color=INK, zorder=3)
    axes.set(xlim=(0, place.width), ylim=(0, place.height), aspect="equal")
    axes.set_axis_off()
    more = f", {int(slower.sum())} slower" if slower.any() else ""
    axes.set_title(f"{int(off.sum())} of {len(off)} links off{more}: {choice.traffic.name}")
    axes.legend(
        handles=[
            Line2D([], [], color=colour, linewidth=width, linestyle=style, label=name)
            for name, _, colour, width, style in shown
        ],
        loc="upper left", bbox_to_anchor=(0, 0), ncols=len(shown),
    )  # fmt: skip


def _box(x: float, y: float) -> Rectangle:
    corner = (x - BOX_WIDTH / 2, y - BOX_HEIGHT / 2)
    return Rectangle(corner, BOX_WIDTH, BOX_HEIGHT, facecolor=BOX, edgecolor=MUTED, linewidth=0.8, zorder=2)


def _bars(axes: Axes, found: Sequence[tuple[Choice, Sequence[Power]]]) -> None:
    rows = [(choice.traffic.name, power) for choice, powers in found for power in powers]
    at = np.arange(len(rows))
    before = [float(power.before.sum()) for _, power in rows]
    after = [float(power.after.sum()) for _, power in rows]
    axes.bar(at - 0.2, before, 0.38, color=LINK, label="all links on")
    axes.bar(at + 0.2, after, 0.38, color=MEASURED, label="links off")
    for place, (watts, (_, power)) in enumerate(zip(after, rows, strict=True)):
        text = f"\N{MINUS SIGN}{100 * power.saved:.0f} %" if power.saved else "the same"
        axes.text(place + 0.2, watts, text, ha="center", va="bottom", fontsize=8, color=INK)
    axes.set_xticks(at, [f"{traffic}\n{power.model.name}" for traffic, power in rows])
    axes.set_ylabel("Power of all switches (W)")
    axes.set_ylim(0, 1.12 * max(before))
    axes.grid(axis="y")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.12), ncols=2)
