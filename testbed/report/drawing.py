"""The topology drawn: use of each direction of each link, and the tree of each VLAN."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from testbed.model import Bools, Floats, Topology, VlanPlan
from testbed.report.geometry import BOX_HEIGHT, BOX_WIDTH, Layout, channel_line, lane_width, layout, link_line
from testbed.report.palette import BOX, HEAT, INK, LINK, MUTED, TREES, heat
from testbed.report.svg import canvas, drawing_style, points, to_svg
from testbed.units import format_quantity

MOST_SWITCHES = 400
MOST_PANELS = 12
_WIDTH = 1080.0
_TALLEST = 860.0
_BIGGEST_UNIT = 150.0
_BAR_SPACE = 100.0
_LEAST_PANEL, _LEAST_PANEL_UNIT = 230.0, 37.0
_SMALLEST_LABEL = 6.5  # pixels; smaller labels are left out
_UNUSED = 0.0005  # a smaller use is shown as none
_FULL_SCALES = (0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Use of a channel as a share of its rate: measured, and predicted if anything was."""

    measured: float
    predicted: float | None


class Frame:
    """A layout at a place on a canvas."""

    def __init__(self, place: Layout, unit: float, left: float, bottom: float) -> None:
        self.unit = unit
        self._origin = np.array([left, bottom])
        self.switches = self.pixels(place.switches)
        self.hosts = self.pixels(place.hosts)

    def pixels(self, line: Floats) -> Floats:
        """Units as pixels of the canvas."""
        moved: Floats = line * self.unit + self._origin
        return moved


def draw_topology(topology: Topology, prefix: str, use: Mapping[int, LinkUse] | None = None) -> str:
    """Return the topology as SVG, each link one line, or with `use` each direction coloured by its use.

    Args:
        topology: what to draw.
        prefix: of the ids; links have the ids `PREFIX-link-N`, directions `PREFIX-channel-N`.
        use: of each channel that was measured.
    """
    place = layout(topology)
    right = _BAR_SPACE if use else 0.0
    unit = min(_BIGGEST_UNIT, (_WIDTH - 2 * right) / place.width, _TALLEST / place.height)
    width, height = place.width * unit, place.height * unit
    if use:
        height = max(height, 240)
    with drawing_style():
        figure, axes = canvas(width + 2 * right, height)
        frame = Frame(place, unit, right, (height - place.height * unit) / 2)
        titles = {}
        if use:
            titles = _channels(axes, topology, place, frame, use)
            _colour_bar(axes, width + 1.35 * right, height / 2, min(height - 60, 320), _full_scale(use))
        else:
            for link in range(topology.link_count):
                line = frame.pixels(link_line(topology, place, link))
                axes.add_line(line_of(line, LINK, 2.0, f"link-{link}"))
                titles[f"link-{link}"] = topology.channel_name(2 * link).replace("→", "–")
        everyone = np.ones(topology.host_count, dtype=bool)
        draw_hosts(axes, frame, topology, everyone, MUTED, min(max(0.09 * unit, 3.0), 9.5))
        _crowds(axes, frame, topology, place, everyone)
        draw_switches(axes, frame, topology, 13.0, "switches")
        return to_svg(figure, prefix, f"{topology.kind} of {topology.switch_count} switches", titles)


def draw_vlans(topology: Topology, vlans: VlanPlan, prefix: str) -> str:
    """Return one panel a VLAN as SVG, at most MOST_PANELS: its links and its PVID's hosts coloured."""
    place = layout(topology)
    count = min(vlans.vlan_count, MOST_PANELS)
    gap, head = 26.0, 30.0
    columns = _columns(place, count, gap)
    rows = -(-count // columns)
    unit = min(_BIGGEST_UNIT * 0.6, (_WIDTH / columns - gap) / place.width)
    panel_width = max(place.width * unit, _LEAST_PANEL)
    panel_height = place.height * unit + head
    with drawing_style():
        figure, axes = canvas(columns * (panel_width + gap) - gap, rows * (panel_height + gap) - gap)
        lines = [link_line(topology, place, link) for link in range(topology.link_count)]
        for vlan in range(count):
            row, column = divmod(vlan, columns)
            left = column * (panel_width + gap)
            bottom = (rows - 1 - row) * (panel_height + gap)
            frame = Frame(place, unit, left + (panel_width - place.width * unit) / 2, bottom)
            pixels = [frame.pixels(line) for line in lines]
            colour = TREES[vlan % len(TREES)]
            members = vlans.tagged_links[vlan]
            _tree(axes, pixels, np.flatnonzero(~members), LINK, 0.8, f"vlan-{vlan}-rest")
            _tree(axes, pixels, np.flatnonzero(members), colour, 3.0, f"vlan-{vlan}-tree")
            own = vlans.pvid == vlan
            draw_hosts(axes, frame, topology, ~own, LINK, min(max(0.06 * unit, 2.5), 6.0))
            draw_hosts(axes, frame, topology, own, colour, min(max(0.12 * unit, 6.0), 10.0))
            _crowds(axes, frame, topology, place, own)
            draw_switches(axes, frame, topology, 9.5, f"vlan-{vlan}-switches")
            name = f"VLAN {vlans.vlan_ids[vlan]}"
            axes.text(left + 2, bottom + panel_height - 4, name, weight="bold", size=points(13), va="top")
            about = f"{_counted(int(own.sum()), 'host')}, {_counted(int(members.sum()), 'link')}"
            axes.text(
                left + panel_width,
                bottom + panel_height - 5,
                about,
                color=MUTED,
                size=points(11.5),
                ha="right",
                va="top",
            )
        return to_svg(figure, prefix, f"the trees of {_counted(count, 'VLAN')}")


def _columns(place: Layout, count: int, gap: float) -> int:
    """As many panels beside each other as stay legible."""
    columns = next((n for n in (4, 3) if (_WIDTH / n - gap) / place.width >= _LEAST_PANEL_UNIT), 2)
    return min(2 if count == 4 and columns == 3 else columns, count)  # two rows of two


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def line_of(line: Floats, colour: str, width: float, gid: str) -> Line2D:
    """A line of a colour and a width in pixels."""
    return Line2D(
        line[:, 0].tolist(),
        line[:, 1].tolist(),
        color=colour,
        linewidth=points(width),
        gid=gid,
        clip_on=False,
        zorder=2,
    )


def _channels(
    axes: Axes, topology: Topology, place: Layout, frame: Frame, use: Mapping[int, LinkUse]
) -> dict[str, str]:
    scale = _full_scale(use)
    widest = min(lane_width(topology) * frame.unit * 0.6, 5.0)
    titles, heads, colours = {}, [], []
    for channel in range(2 * topology.link_count):
        line = frame.pixels(channel_line(topology, place, channel))
        name, gid = topology.channel_name(channel), f"channel-{channel}"
        measured = use[channel].measured if channel in use else 0.0
        if measured < _UNUSED:
            axes.add_line(line_of(line, LINK, 0.8, gid))
            titles[gid] = f"{name}: {'unused' if channel in use else 'not measured'}"
            continue
        share = measured / scale
        width = widest * (0.3 + 0.7 * min(share, 1.0))
        axes.add_line(line_of(line, heat(share), width, gid))
        heads.append(arrow_head(line, 5.0 + width))
        colours.append(heat(share))
        predicted = use[channel].predicted
        titles[gid] = f"{name}: {format_quantity(measured, 'ratio')}"
        if predicted is not None:
            titles[gid] += f", predicted {format_quantity(predicted, 'ratio')}"
    axes.add_collection(PolyCollection(heads, facecolors=colours, linewidths=0, zorder=3), autolim=False)
    return titles


def arrow_head(line: Floats, size: float) -> Floats:
    """A triangle past the middle of a line, pointing along it."""
    lengths = np.linalg.norm(np.diff(line, axis=0), axis=1)
    travelled = np.concatenate([[0.0], np.cumsum(lengths)])
    at = 0.62 * travelled[-1] + size / 2
    tip, back = (np.array([np.interp(x, travelled, line[:, axis]) for axis in (0, 1)]) for x in (at, at - size))
    side = (tip - back)[::-1] * np.array([-1, 1]) / 2
    return np.stack([tip, back + side, back - side])


def _full_scale(use: Mapping[int, LinkUse]) -> float:
    highest = max(value.measured for value in use.values())
    return next((scale for scale in _FULL_SCALES if highest <= scale), 1.0)


def _colour_bar(axes: Axes, left: float, middle: float, height: float, scale: float) -> None:
    bottom, step = middle - height / 2, height / len(HEAT)
    for level, colour in enumerate(HEAT):
        axes.add_patch(Rectangle((left, bottom + level * step), 14, step, facecolor=colour, linewidth=0))
    for tick in range(5):
        text = format_quantity(scale * tick / 4, "ratio")
        axes.text(left + 20, bottom + height * tick / 4, text, va="center", size=points(12))
    axes.text(left, bottom + height + 16, "Link use", size=points(12), weight="bold")


def _tree(axes: Axes, pixels: list[Floats], links: Iterable[int], colour: str, width: float, gid: str) -> None:
    lines = [pixels[link] for link in links]
    if lines:
        axes.add_collection(
            LineCollection(lines, colors=colour, linewidths=points(width), gid=gid, zorder=2), autolim=False
        )


def draw_hosts(axes: Axes, frame: Frame, topology: Topology, hosts: Bools, colour: str, size: float) -> None:
    """Draw those hosts that are chosen, each a dot."""
    if not hosts.any():
        return
    stubs = np.stack([frame.switches[topology.host_switch[hosts]], frame.hosts[hosts]], axis=1)
    axes.add_collection(
        LineCollection(list(stubs), colors=colour, linewidths=points(size / 6), zorder=1.5), autolim=False
    )
    axes.add_collection(
        EllipseCollection(
            size,
            size,
            0,
            units="xy",
            offsets=frame.hosts[hosts],
            facecolors=colour,
            linewidths=0,
            transOffset=axes.transData,
            zorder=2.5,
        ),
        autolim=False,
    )


def _crowds(axes: Axes, frame: Frame, topology: Topology, place: Layout, chosen: Bools) -> None:
    """Say how many hosts the one dot of a crowd stands for, and how many are chosen if not all or none."""
    for switch in place.crowds:
        hosts = np.flatnonzero(topology.host_switch == switch)
        count = int(chosen[hosts].sum())
        text = f"×{len(hosts)}" if count in (0, len(hosts)) else f"{count} of {len(hosts)}"
        x, y = frame.hosts[hosts[0]]
        axes.text(
            x,
            y - 0.07 * frame.unit,
            text,
            size=points(min(max(0.14 * frame.unit, 7), 12)),
            color=MUTED,
            ha="center",
            va="top",
        )


def draw_switches(axes: Axes, frame: Frame, topology: Topology, largest_label: float, gid: str) -> None:
    """Draw the switches, with their names where these fit."""
    width, height = BOX_WIDTH * frame.unit, BOX_HEIGHT * frame.unit
    corner = np.array([-width, -height]) / 2
    square = np.array([(0, 0), (width, 0), (width, height), (0, height)])
    boxes = frame.switches[:, None] + corner + square
    axes.add_collection(
        PolyCollection(list(boxes), facecolors=BOX, edgecolors=MUTED, linewidths=points(1.0), gid=gid, zorder=4),
        autolim=False,
    )
    longest = len(topology.switch_name(topology.switch_count - 1))
    label = min(largest_label, width * 0.92 / (0.64 * longest), height * 0.8)
    if label < _SMALLEST_LABEL:
        return
    for switch, (x, y) in enumerate(frame.switches):
        axes.text(
            x,
            y,
            topology.switch_name(switch),
            size=points(label),
            color=INK,
            ha="center",
            va="center_baseline",
            zorder=5,
        )
