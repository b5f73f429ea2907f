"""What failures cost: datagrams that arrived over time, with the moments of each failure, and the figures in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from testbed.report.palette import INK, MEASURED, MUTED, TREES
from testbed.report.selection import Drawn
from testbed.report.svg import drawing_style, new_figure, to_svg
from testbed.units import format_seconds

_WIDTH, _ROW, _FOOT = 1080.0, 54.0, 44.0
_LEFT, _RIGHT = 0.09, 0.99
# Moments of a failure, and how they are drawn.
_MOMENTS = (("", "it dies", INK, "-"), ("takeover", "backup path carries", TREES[2], "-"),
            ("recovery", "new tables are in", TREES[1], (0, (4, 3))))  # fmt: skip


def failure_charts(repeats: Sequence[Mapping[str, Any]], prefix: str) -> list[Drawn]:
    """Return the drawing of the first repeat of a load with failures; nothing for a load without."""
    if not repeats or not repeats[0]["pairs"]:
        return []
    first = repeats[0]
    pairs = first["pairs"]
    height = _FOOT + _ROW * len(pairs)
    with drawing_style():
        figure = new_figure(_WIDTH, height)
        for row, pair in enumerate(pairs):
            bottom = (_FOOT + _ROW * (len(pairs) - 1 - row)) / height
            axes = figure.add_axes((_LEFT, bottom, _RIGHT - _LEFT, 0.8 * _ROW / height))
            _draw(axes, first, pair)
            if row < len(pairs) - 1:
                axes.set_xticklabels([])
            else:
                axes.set_xlabel("Laboratory time (s)")
        words = "; ".join(event_words(event) for event in first["events"])
        svg = to_svg(figure, prefix, f"Datagrams that arrived while things died. {words}")
    lines = "black: something dies or comes back; green: the first datagram on a backup path; dashed: new tables are in"
    more = f" (the first of {len(repeats)} repeats)" if len(repeats) > 1 else ""
    caption = f"Datagrams of each watched pair that arrived, by the time they were sent{more}; {lines}. {words}."
    return [Drawn(svg, caption)]


def _draw(axes: Axes, first: Mapping[str, Any], pair: Mapping[str, Any]) -> None:
    arrived = np.array(pair["arrived"])
    edges = np.linspace(0.0, first["seconds"], len(arrived) + 1)
    most = max(1, *pair["sent"])
    axes.stairs(arrived, edges, fill=True, color=MEASURED)
    axes.stairs(np.array(pair["sent"]), edges, color=MUTED, linewidth=0.6)
    for event in first["events"]:
        for key, _, colour, style in _MOMENTS:
            after = event[key] if key else 0.0
            if after is not None:
                axes.axvline(event["at"] + after, color=colour, linestyle=style, linewidth=1.0)
    axes.set(xlim=(0, first["seconds"]), ylim=(0, 1.1 * most), yticks=[])
    axes.set_ylabel(f"{pair['src']}→{pair['dst']}", rotation=0, ha="right", va="center")


def event_words(event: Mapping[str, Any]) -> str:
    """An event and what it cost, in words."""
    parts = [f"noticed after {format_seconds(event['detection'])}" if event["detection"] is not None else "not noticed"]
    if event["takeover"] is not None:
        parts.append(f"backup path after {format_seconds(event['takeover'])}")
    if event["recovery"] is not None:
        parts.append(f"new tables after {format_seconds(event['recovery'])}")
    parts.append(f"{event['frames_lost']} datagrams lost")
    if event["cut_off"]:
        parts.append(f"{event['cut_off']} pairs cut off")
    if event["without_backup"]:
        parts.append(f"{event['without_backup']} pairs without backup")
    return f"{event['event']}: {', '.join(parts)}"
