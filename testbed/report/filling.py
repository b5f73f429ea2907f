"""A deadlock as it forms: the fabric at some moments, memory coloured by how full it is, the cycle in red."""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from testbed.model import Floats, Topology
from testbed.report.drawing import Frame, arrow_head, draw_hosts, draw_switches, line_of
from testbed.report.geometry import Layout, channel_line, lane_width, layout
from testbed.report.palette import COLOURS, LINK, MUTED, PAPER, heat
from testbed.report.svg import PIXELS_AN_INCH, canvas, drawing_style, points

CYCLE = COLOURS["bad"][0]
_WIDTH, _BIGGEST_UNIT = 1080.0, 130.0
_HEAD, _GAP = 26.0, 18.0
_COLUMNS = 4
_LAST_SECONDS = 4
_NO_METADATA: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))

# Title, (C,) share of each memory that is full, and the channels of the cycle.
Panel = tuple[str, Floats, Sequence[int]]


def draw_filling(topology: Topology, panels: Sequence[Panel]) -> bytes:
    """Draw moments side by side as SVG; the same panels give the same file.

    Args:
        topology: the fabric.
        panels: one a moment, in order.
    """
    place = layout(topology)
    columns = min(len(panels), _COLUMNS)
    rows = math.ceil(len(panels) / columns)
    unit = min(_BIGGEST_UNIT, (_WIDTH / columns - _GAP) / place.width)
    width, height = place.width * unit, place.height * unit + _HEAD
    with drawing_style():
        figure, axes = canvas(columns * (width + _GAP) - _GAP, rows * (height + _GAP) - _GAP)
        figure.patch.set(visible=True, facecolor=PAPER)
        for number, panel in enumerate(panels):
            row, column = divmod(number, columns)
            left, bottom = column * (width + _GAP), (rows - 1 - row) * (height + _GAP)
            _panel(axes, topology, place, Frame(place, unit, left, bottom), panel, bottom + height)
        content = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(content, metadata=_NO_METADATA)  # type: ignore[no-untyped-call]
    return content.getvalue()


def animate_filling(topology: Topology, panels: Sequence[Panel]) -> bytes:
    """Show moments one after the other, a second each, as an animated GIF; the last one stays longer."""
    place = layout(topology)
    unit = min(_BIGGEST_UNIT, _WIDTH / 2 / place.width)
    height = place.height * unit + _HEAD
    seconds = [*[1] * (len(panels) - 1), _LAST_SECONDS]
    with drawing_style(), tempfile.TemporaryDirectory() as folder:
        figure, _ = canvas(place.width * unit, height)
        FigureCanvasAgg(figure)
        writer = PillowWriter(fps=1)
        file = Path(folder) / "deadlock.gif"
        with writer.saving(figure, str(file), PIXELS_AN_INCH):
            for panel, frames in zip(panels, seconds, strict=True):
                axes = _cleared(figure)
                _panel(axes, topology, place, Frame(place, unit, 0.0, 0.0), panel, height)
                for _ in range(frames):
                    writer.grab_frame()
        return file.read_bytes()


def _cleared(figure: Figure) -> Axes:
    """The figure's axes, empty, in pixels."""
    axes = figure.axes[0]
    limits = axes.get_xlim(), axes.get_ylim()
    axes.clear()
    axes.set_axis_off()
    axes.set(xlim=limits[0], ylim=limits[1])
    figure.patch.set(visible=True, facecolor=PAPER)
    return axes


def _panel(axes: Axes, topology: Topology, place: Layout, frame: Frame, panel: Panel, top: float) -> None:
    """Draw one moment; its title hangs from `top`."""
    title, fill, cycle = panel
    widest = min(lane_width(topology) * frame.unit * 0.7, 6.0)
    heads, colours = [], []
    # The cycle lies above the rest.
    for channel in sorted(range(2 * topology.link_count), key=lambda channel: channel in cycle):
        line = frame.pixels(channel_line(topology, place, channel))
        share = float(min(fill[channel], 1.0))
        if channel in cycle:
            colour, width = CYCLE, widest
        elif share > 0:
            colour, width = heat(share), widest * (0.3 + 0.7 * share)
        else:
            axes.add_line(line_of(line, LINK, 0.7, ""))
            continue
        axes.add_line(line_of(line, colour, width, ""))
        heads.append(arrow_head(line, 4.0 + width))
        colours.append(colour)
    axes.add_collection(PolyCollection(heads, facecolors=colours, linewidths=0, zorder=3), autolim=False)
    everyone = np.ones(topology.host_count, dtype=bool)
    draw_hosts(axes, frame, topology, everyone, MUTED, min(max(0.07 * frame.unit, 2.0), 6.0))
    draw_switches(axes, frame, topology, 11.0, "")
    left = float(frame.pixels(np.zeros((1, 2)))[0, 0])
    colour = CYCLE if cycle else MUTED
    about = f"{title}: deadlock" if cycle else title
    axes.text(left + 4, top - 2, about, size=points(12.5), color=colour, weight="bold" if cycle else None, va="top")
