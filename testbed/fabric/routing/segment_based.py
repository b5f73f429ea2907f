"""Segment-based routing (Mejia et al. 2007, section 2), with a second, link-disjoint path for each pair."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.base.model import AllowedTurns, Ints, Longs, Paths, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, host_switches, leaving_channels, switch_named
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.turns import allow_all_but, by_switch

_SHOWN_PAIRS = 6


@dataclass(frozen=True, slots=True)
class SrOptions(SelectionOptions):
    """Where the search for segments starts, and whether each pair gets a second path."""

    start: str | None = None  # a switch such as s5; without one the first, whose number is the lowest
    # `shortest`: the shortest in all the fabric. `rows`: on a mesh or torus of two dimensions row by row, from left to
    # right and from right to left in turn, so that the prohibited turns of one row lean to the other side than those of
    # the next. `auto`: `rows` there, also if links are dead, unless `start` is given; else `shortest`.
    segments: Literal["auto", "shortest", "rows"] = "auto"
    # whether a link between two switches that are visited becomes a segment as `soon` as they are, as in the paper,
    # whose segments are "as short as possible", or after all others (`last`)
    unitary: Literal["last", "soon"] = "last"
    backup: bool = True  # find a second path for each pair that shares no link with the first, where there is one


def route_sr(topology: Topology, options: SrOptions) -> Routes:
    """Shortest paths that take no turn a segment prohibits.

    Raises:
        InputError: the start is not a switch of the fabric, or the fabric has no rows.
    """
    start = switch_named(topology, options.start, "start")
    turns = segment_turns(topology, start, by_rows=_by_rows(topology, options), unitary=options.unitary)
    paths = select_paths(topology, turns, options)
    if not options.backup:
        return explicit_routes(topology, paths, turns)
    backup = backup_paths(topology, turns, paths)
    routes = explicit_routes(topology, paths, turns, notes=_without_backup(topology, paths, backup))
    return dataclasses.replace(routes, backup=backup)


def _by_rows(topology: Topology, options: SrOptions) -> bool:
    sizes = topology.sizes
    has_rows = topology.kind in ("mesh", "torus") and len(sizes) == 2 and topology.switch_count == math.prod(sizes)
    if options.segments == "rows":
        problems = []
        if not has_rows:
            sentence = "rows needs a mesh or torus of two dimensions without dead switches; take segments: shortest"
            problems.append(Problem("routing.segments", sentence))
        if options.start is not None:
            problems.append(Problem("routing.start", "has no effect with segments: rows; remove it"))
        if problems:
            raise InputError(problems)
    return has_rows and options.segments != "shortest" and options.start is None


def _stages(topology: Topology, *, by_rows: bool) -> tuple[Ints, Ints]:
    """(S,) stage of each switch and (G, S) order of the search in each, as find_ears() takes them."""
    number = np.arange(topology.switch_count, dtype=np.int32)
    if not by_rows:
        return np.zeros_like(number), number[None]
    width = topology.sizes[0]
    column, row = number % width, number // width
    stage = np.maximum(row - 1, 0)  # a single row has no segment
    order = [np.lexsort((-column if turn % 2 else column, row)) for turn in range(int(stage.max()) + 1)]
    return stage, np.stack(order).astype(np.int32)


def segment_turns(
    topology: Topology, start: int, *, by_rows: bool = False, unitary: Literal["last", "soon"] = "last"
) -> AllowedTurns:
    """Allow every turn but those that segments prohibit, each both ways.

    The fabric falls into parts between its bridges, which no cycle can cross. In each part, from the switch by which
    it is entered, the shortest ear is taken again and again: a way from a visited switch through unvisited ones back
    to a visited one. Each ear is a segment with one prohibited turn at its middle inner switch; the paper draws that
    switch at random. Links left over are unitary segments: all turns between such a link and links of earlier
    segments are prohibited at the end where these are fewer. They come last, or as soon as both ends are visited.

    Why no cycle is left: of the segments on a closed walk take the last one made. The walk crosses it from end to
    end, so takes its prohibited turn. Over a bridge it would have to come back, and in the part behind no walk from
    the entrance leads back to it, for the same reason.
    """
    return allow_all_but(topology, found_segments(topology, start, by_rows=by_rows, unitary=unitary)[2])


def found_segments(
    topology: Topology, start: int, *, by_rows: bool = False, unitary: Literal["last", "soon"] = "last"
) -> tuple[Longs, Ints, Ints]:
    """Find the segments, as in segment_turns().

    Returns:
        (N + 1,) offsets and channels of N ears, each in order from end to end; (M, 2) channel that enters a switch and
        channel that leaves it of the turns that ears and unitary segments prohibit, segment by segment.
    """
    from testbed.fabric.kernels import segments

    leaving = leaving_channels(topology)
    bridge = segments.bridges(*leaving, topology.channel_target)
    stages = _stages(topology, by_rows=by_rows)
    ear_start, ear, entrance = segments.find_ears(*leaving, topology.channel_target, bridge, start, *stages)
    prohibited = segments.restrictions(
        *leaving, topology.channel_target, bridge, ear_start, ear, entrance, unitary == "soon"
    )
    return ear_start, ear, prohibited


def _without_backup(topology: Topology, paths: Paths, backup: Paths) -> tuple[str, ...]:
    pairs = np.diff(paths.start) > 0
    without = np.flatnonzero(pairs & (np.diff(backup.start) == 0))
    if not len(without):
        return ()
    ends = host_switches(topology)
    rows = zip(*np.divmod(without[:_SHOWN_PAIRS], len(ends)), strict=True)
    name = topology.switch_name
    shown = ", ".join(f"{name(int(ends[source]))}→{name(int(ends[end]))}" for source, end in rows)
    return (
        f"{len(without)} of {int(pairs.sum())} pairs of switches have no second legal path that shares no link with "
        f"the first: {shown}{', …' if len(without) > _SHOWN_PAIRS else ''}",
    )


def backup_paths(topology: Topology, turns: AllowedTurns, paths: Paths) -> Paths:
    """Give every pair the shortest legal path that shares no link with its first; none where there is no such path.

    Both walk on the same graph of allowed turns, so the two sets of paths together have no cycle of dependencies
    either (Mejia et al. 2007, section 2.3). Of several shortest one over channels with few backup paths is taken.
    """
    from testbed.fabric.kernels import backup

    channels = len(topology.channel_source)
    layers = max(1, (len(turns.start) - 1) // max(channels, 1))
    leaving: tuple[Longs, Ints] = by_switch(np.tile(topology.channel_source, layers), topology.switch_count)
    arriving: tuple[Longs, Ints] = by_switch(np.tile(topology.channel_target, layers), topology.switch_count)
    start, hop = backup.disjoint_paths(
        host_switches(topology), paths.start, paths.hop, turns.start, turns.following, turns.entry, *leaving,
        *arriving, max(channels, 1),
    )  # fmt: skip
    return Paths(start, hop)
