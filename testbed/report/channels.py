"""How full the channels of a simulated fabric were, as heat maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.model import Floats, Topology
from testbed.report.heat import HeatMap, draw_heat
from testbed.report.palette import COLOURS
from testbed.units import format_quantity, format_seconds

MOST_ROWS = 64
_TICKS = 5
_FULL_SHARES = (0.05, 0.1, 0.2, 0.5)
_ROW = 9.0  # pixels
_WIDTH, _A_COLUMN, _BESIDE = 760.0, 46.0, 230.0
_WIDEST_MATRIX = 640.0


def draw_channel_use(topology: Topology, use: Floats, edges: Floats, below: str, columns: Sequence[str] = ()) -> bytes:
    """Draw the use of the fullest channels between switches over loads, or over time.

    Args:
        topology: names the channels.
        use: (C, L) share of the clocks in which each channel carried a flit.
        edges: (L + 1,) where each column begins, and where the last one ends.
        below: what the columns are.
        columns: name of each; empty for an axis with numbers.

    Returns:
        an SVG file.
    """
    fullest = np.sort(np.argsort(-use.max(axis=1), kind="stable")[:MOST_ROWS])
    shown = use[fullest]
    full = next((share for share in _FULL_SHARES if shown.max() <= share), 1.0)
    heat = HeatMap(
        shown, edges, [topology.channel_name(int(channel)) for channel in fullest], full,
        [format_quantity(full * tick / (_TICKS - 1), "ratio") for tick in range(_TICKS)],
        "Channel use", below, columns=columns,
    )  # fmt: skip
    width = min(_WIDTH, _BESIDE + _A_COLUMN * max(len(columns), 3)) if columns else _WIDTH
    return _file(draw_heat(heat, "channels", f"use of {len(fullest)} channels", row_height=_ROW, width=width))


def draw_pair_times(topology: Topology, times: Floats) -> bytes:
    """Draw when all that a host has sent to another one had arrived.

    Args:
        topology: names the hosts.
        times: (H, H) s from host (row) to host (column), 0 for pairs that send nothing.

    Returns:
        an SVG file.
    """
    together = -(-len(times) // MOST_ROWS)
    starts = np.arange(0, len(times), together)
    cells = np.maximum.reduceat(np.maximum.reduceat(times, starts, axis=0), starts, axis=1)
    names = [topology.host_name(int(start)) for start in starts]
    full = float(cells.max())
    scale = [format_seconds(full * tick / (_TICKS - 1)) for tick in range(_TICKS)]
    heat = HeatMap(
        cells, np.arange(len(cells) + 1, dtype=float), names, full, scale, "Arrived", "to", columns=names, beside="from"
    )
    row = min(24.0, max(_ROW, 480 / len(cells)))
    width = min(_WIDEST_MATRIX, _BESIDE + 24 * len(cells))
    return _file(draw_heat(heat, "pairs", "time of arrival from host to host", row_height=row, width=width))


def _file(svg: str) -> bytes:
    """A drawing made for a page as a file of its own: with its name space, and colours instead of variables."""
    for name, (light, _) in COLOURS.items():
        svg = svg.replace(f"var(--{name},{light})", light)
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return svg.replace("<svg ", f"<svg {spaces} ", 1).encode()
