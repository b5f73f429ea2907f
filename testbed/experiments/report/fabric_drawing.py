"""The fabric drawn: links or their directions in some colours and widths, hosts as dots, switches as boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from matplotlib.lines import Line2D

from testbed.base.model import Bools, Floats, Topology
from testbed.experiments.report.geometry import (
    BOX_HEIGHT,
    BOX_WIDTH,
    Layout,
    channel_line,
    lane_width,
    layout,
    link_line,
)
from testbed.experiments.report.marks import Dash, Drawn, draw_colours
from testbed.experiments.report.palette import BOX, INK, LINK, MUTED, heat_colour

_MIN_LABEL = 6.5  # pixels; smaller labels are left out
_POINT = 72 / 96  # of a pixel


@dataclass(frozen=True, slots=True)
class Stroke:
    """Links, or directions of links, drawn alike."""

    lines: Sequence[int]  # numbers of the links; of the channels where `directed`
    colour: str = LINK  # of all
    width: float = 2.0  # pixels
    dash: Dash = "-"  # kind of line
    gid: str = ""  # id of the drawn group
    name: str = ""  # for the legend
    directed: bool = False  # whether these are channels, each on the right-hand side of its link with an arrow head


@dataclass(frozen=True, slots=True, eq=False)
class ReportFabric:
    """What to draw, in a panel whose unit is the pixel."""

    topology: Topology  # whose places these are
    unit: float  # pixels of the least distance of two switches; see `Layout`
    strokes: Sequence[Stroke]  # the later ones lie above
    # those that are drawn, their colour, and the size of their dots in pixels
    hosts: Sequence[tuple[Bools, str, float]] = ()
    crowds: Bools | None = None  # hosts that count where many share a dot; None = nothing is said of them
    label: float = 11.0  # pixels, largest name of a switch
    gid: str = ""  # id of the group of switches
    scale: Sequence[str] = ()  # texts beside the scale of colours; empty for no scale
    scale_title: str = ""  # what the colours mean


def channel_strokes(
    topology: Topology, unit: float, shares: Mapping[int, float], marked: Sequence[int] = (), colour: str = ""
) -> list[Stroke]:
    """Each channel by how full it is: wider and farther up the scale the fuller.

    `shares`: channel → share of the scale; 0 and those that are not there are thin and grey. The `marked` ones are in
    `colour`, above the rest.
    """
    widest = min(lane_width(topology) * unit * 0.65, 5.5)
    found = []
    for channel in sorted(range(2 * topology.link_count), key=lambda channel: channel in marked):
        share, gid = min(shares.get(channel, 0.0), 1.0), f"channel-{channel}"
        if channel in marked:
            found.append(Stroke([channel], colour, widest, gid=gid, directed=True))
        elif share > 0:
            found.append(Stroke([channel], heat_colour(share), widest * (0.3 + 0.7 * share), gid=gid, directed=True))
        else:
            found.append(Stroke([channel], LINK, 0.8, gid=gid, directed=True))
    return found


def draw_fabric(axes: Axes, fabric: ReportFabric) -> Drawn:
    """Draw it with its lower left corner in that of the panel."""
    topology, place = fabric.topology, layout(fabric.topology)
    found: Drawn = []
    heads: list[Floats] = []
    colours = []
    for stroke in fabric.strokes:
        of = channel_line if stroke.directed else link_line
        lines = [of(topology, place, line) * fabric.unit for line in stroke.lines]
        sample = Line2D([], [], color=stroke.colour, linewidth=stroke.width * _POINT, linestyle=stroke.dash)
        found.append((sample, stroke.name))
        _draw_stroke(axes, stroke, lines)
        if stroke.directed and stroke.width > 1:
            heads += [_arrow_head(line, 4.5 + stroke.width) for line in lines]
            colours += [stroke.colour] * len(lines)
    if heads:
        axes.add_collection(PolyCollection(heads, facecolors=colours, linewidths=0, zorder=3), autolim=False)
    for hosts, colour, size in fabric.hosts:
        _draw_hosts(axes, fabric, place, hosts, colour, size)
    if fabric.crowds is not None:
        _write_crowds(axes, fabric, place, fabric.crowds)
    _draw_switches(axes, fabric, place)
    axes.set_axis_off()
    if fabric.scale:
        draw_colours(axes, fabric.scale_title, fabric.scale, min(1.0, 320 / (place.height * fabric.unit)))
    return found


def _draw_stroke(axes: Axes, stroke: Stroke, lines: Sequence[Floats]) -> None:
    if len(lines) == 1:
        axes.add_line(
            Line2D(
                *lines[0].T.tolist(), color=stroke.colour, linewidth=stroke.width * _POINT, linestyle=stroke.dash,
                gid=stroke.gid, clip_on=False, zorder=2,
            )
        )  # fmt: skip
    elif lines:
        axes.add_collection(
            LineCollection(
                list(lines), colors=stroke.colour, linewidths=stroke.width * _POINT, linestyles=[stroke.dash],
                gid=stroke.gid, clip_on=False, zorder=2,
            ),
            autolim=False,
        )  # fmt: skip


def _arrow_head(line: Floats, size: float) -> Floats:
    """A triangle past the middle of a line, pointing along it."""
    lengths = np.linalg.norm(np.diff(line, axis=0), axis=1)
    travelled = np.concatenate([[0.0], np.cumsum(lengths)])
    at = 0.62 * travelled[-1] + size / 2
    tip, back = (np.array([np.interp(x, travelled, line[:, axis]) for axis in (0, 1)]) for x in (at, at - size))
    side = (tip - back)[::-1] * np.array([-1, 1]) / 2
    return np.stack([tip, back + side, back - side])


def _draw_hosts(axes: Axes, fabric: ReportFabric, place: Layout, hosts: Bools, colour: str, size: float) -> None:
    if not hosts.any():
        return
    ends = place.switches[fabric.topology.host_switch[hosts]] * fabric.unit, place.hosts[hosts] * fabric.unit
    stubs = LineCollection(list(np.stack(ends, axis=1)), colors=colour, linewidths=size / 6 * _POINT, zorder=1.5)
    dots = EllipseCollection(
        size, size, 0, units="xy", offsets=ends[1], facecolors=colour, linewidths=0, transOffset=axes.transData,
        zorder=2.5,
    )  # fmt: skip
    axes.add_collection(stubs, autolim=False)
    axes.add_collection(dots, autolim=False)


def _write_crowds(axes: Axes, fabric: ReportFabric, place: Layout, chosen: Bools) -> None:
    """Say how many hosts the one dot of a crowd represents, and how many are chosen if not all or none."""
    for switch in place.crowds:
        hosts = np.flatnonzero(fabric.topology.host_switch == switch)
        count = int(chosen[hosts].sum())
        text = f"×{len(hosts)}" if count in (0, len(hosts)) else f"{count} of {len(hosts)}"
        x, y = place.hosts[hosts[0]] * fabric.unit
        size = min(max(0.14 * fabric.unit, 7), 12) * _POINT
        axes.text(x, y - 0.07 * fabric.unit, text, size=size, color=MUTED, ha="center", va="top")


def _draw_switches(axes: Axes, fabric: ReportFabric, place: Layout) -> None:
    """Draw boxes, with the switches' names where these fit."""
    width, height = BOX_WIDTH * fabric.unit, BOX_HEIGHT * fabric.unit
    centres = place.switches * fabric.unit
    square = np.array([(0, 0), (width, 0), (width, height), (0, height)]) - np.array([width, height]) / 2
    axes.add_collection(
        PolyCollection(
            list(centres[:, None] + square), facecolors=BOX, edgecolors=MUTED, linewidths=_POINT, gid=fabric.gid,
            zorder=4,
        ),
        autolim=False,
    )  # fmt: skip
    topology = fabric.topology
    longest = len(topology.switch_name(topology.switch_count - 1))
    label = min(fabric.label, width * 0.92 / (0.64 * longest), height * 0.8)
    if label < _MIN_LABEL:
        return
    for switch, (x, y) in enumerate(centres):
        name = topology.switch_name(switch)
        axes.text(x, y, name, size=label * _POINT, color=INK, ha="center", va="center_baseline", zorder=5)
