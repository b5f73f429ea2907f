"""Dimension-order routing for mesh, torus, hypercube and ring.

A path crosses the dimensions in order, in each ring all hops in one direction. What happens inside a ring
is three small (k, k) tables: direction from a to b, plane of a hop, and whether coordinate 0 is passed.

The shorter way round is free of cycles on rings of up to four switches with single links, if ties alternate. From
five on, each channel of a ring is followed by the next on some path; the papers break the cycle by a second link for
each pair. `no_transit` breaks it on single links: a path may begin or end at coordinate 0 but not pass through it. The
paths of a source remain one tree, and are longer (8×8: 5.5 switches instead of 5.0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Bools, Ints, Paths, Routes, Topology
from testbed.fabric.routing.channel_lookup import (
    explicit_routes,
    host_switches,
    parallel_of_pair,
    plane_groups,
    refuse_topology,
    require_every_pair,
    require_whole,
    source_trees,
)
from testbed.fabric.routing.paths import all_paths
from testbed.fabric.topologies.grid import pair_count

# The largest ring whose shortest paths on single links have no cyclic dependency, by tie rule.
MAX_ACYCLIC_RING = {"alternating": 4, "opposite": 4, "positive": 3}


@dataclass(frozen=True, slots=True)
class DorOptions:
    """Rules for tori; a mesh needs none of them."""

    # at distance k/2 go `alternating` (even positions -, odd +), `opposite` (even +, odd -) or `positive`. `auto`:
    # `opposite` with planes `link`, so that two neighbours share a tree, else `alternating`.
    ties: Literal["auto", "alternating", "opposite", "positive"] = "auto"
    # which of two parallel links breaks a ring's cycle. `link`: the wrap link and all after it on plane 1. `node`:
    # plane 1 after passing through coordinate 0. `dest`: plane 0 while the wrap lies ahead. `none`: no plane is told
    # from another. `auto`: `link` where links are parallel and rings too long to be acyclic without (over 4 with
    # alternating ties, over 3 with positive), else `none`.
    planes: Literal["auto", "none", "link", "node", "dest"] = "auto"
    # `shortest` way round, or `no_transit`: never through coordinate 0, which keeps rings of single links acyclic at
    # the price of longer paths, or `two_trees`: a ring of k is cut open at the wrap link on plane 0 and at k/2-1|k/2 on
    # plane 1, and a source takes the line it is nearer the middle of, so that 2k^(n-1) VLANs do for every k with paths
    # a little longer, or `datelines`: the shortest way in two layers, in layer 1 as long as the wrap link lies ahead in
    # a ring and in layer 0 after it (Dally and Seitz 1987), which takes switches with virtual channels or priorities.
    # `auto`: `no_transit` only where nothing else breaks the cycle.
    ring: Literal["auto", "shortest", "no_transit", "two_trees", "datelines"] = "auto"


@dataclass(frozen=True, slots=True)
class _Ring:
    """Tables of one dimension, indexed [a, b] with a the start and b the end (or the hop's far end)."""

    positive: Bools
    last_plane: Ints  # plane of the hop that enters b on the way from a
    first_plane: Ints  # plane of the hop that leaves a towards b


def route_dor(topology: Topology, options: DorOptions) -> Routes:
    """Route a grid dimension by dimension.

    Where no plane is told from another, each pair of neighbours may have lost some of its parallel links.

    Returns:
        Source trees, or destination trees for the plane rule `dest`, or paths in two layers for `datelines`.

    Raises:
        InputError: not a grid, a plane rule without parallel links, or dead links that it cannot do without.
    """
    if not topology.sizes:
        raise refuse_topology("dor", "a mesh, torus, hypercube or ring", topology.kind)
    wraps = topology.kind in ("torus", "ring")
    require_every_pair("dor", topology, math.prod(topology.sizes), pair_count(topology.sizes, wraps))
    longest = max(topology.sizes) if wraps else 0
    planes, ring = options.planes, options.ring
    cyclic = longest > MAX_ACYCLIC_RING["alternating" if options.ties == "auto" else options.ties]
    notes: list[str] = []
    if ring in ("two_trees", "datelines"):
        if planes not in ("auto", "none"):
            raise InputError.one("routing.planes", f'"{planes}" has no effect with ring: {ring}; leave it out')
        planes = "none"
    elif planes == "auto":
        planes = "link" if cyclic and topology.parallel_links > 1 else "none"
    ties = options.ties if options.ties != "auto" else "opposite" if planes == "link" else "alternating"
    for key, value in (("planes", planes), ("ring", ring)):
        if value in ("link", "node", "dest", "two_trees") and longest > 2 and topology.parallel_links < 2:
            raise InputError.one(
                f"routing.{key}", f'"{value}" needs two links for each pair; set topology.parallel_links to 2 or more'
            )
    if ring == "auto":
        ring = "no_transit" if cyclic and planes == "none" else "shortest"
        if ring == "no_transit":
            notes.append(
                f"rings of {longest} without planes: paths never pass through coordinate 0, so some are "
                "longer than the shortest; two parallel links that are not aggregated give shortest paths"
            )
    if planes != "none" or ring == "two_trees":
        require_whole("dor", topology)
    rings = [_ring(size, wraps and size > 2, ties, planes, ring) for size in topology.sizes]
    arrive = entering_channels(topology)
    if planes == "dest":
        return _by_destination(topology, rings, arrive, tuple(notes))
    by_source = _by_source(topology, rings, arrive, 1 if planes == "none" and ring != "two_trees" else 2, tuple(notes))
    return _with_datelines(topology, by_source) if ring == "datelines" else by_source


def _with_datelines(topology: Topology, routes: Routes) -> Routes:
    """The same paths, in layer 1 up to the wrap link of a ring and in layer 0 after it and without it."""
    paths = all_paths(topology, routes)
    apart = topology.coordinates[topology.channel_source] - topology.coordinates[topology.channel_target]
    dimension, wraps = np.argmax(apart != 0, axis=1), np.abs(apart).max(axis=1, initial=0) > 1
    pair = np.repeat(np.arange(len(paths.start) - 1), np.diff(paths.start))
    # A path crosses each dimension in one piece, and in that a wrap link at most once.
    new = np.ones(len(paths.hop), dtype=np.bool_)
    new[1:] = (np.diff(pair) != 0) | (np.diff(dimension[paths.hop]) != 0)
    piece = np.cumsum(new) - 1
    crossing = np.full(len(paths.hop), -1)
    at = np.flatnonzero(wraps[paths.hop])
    crossing[piece[at]] = at
    layer = (np.arange(len(paths.hop)) <= crossing[piece]).astype(np.int32)
    layered = Paths(paths.start, paths.hop + layer * np.int32(len(topology.channel_source)))
    return explicit_routes(topology, layered, None, 2, routes.notes)


def _ring(size: int, wraps: bool, ties: str, planes: str, rule: str) -> _Ring:
    start, end = np.arange(size)[:, None], np.arange(size)[None, :]
    if not wraps:
        none = np.zeros((size, size), dtype=np.int32)
        return _Ring(end > start, none, none)
    if rule == "two_trees":
        return _two_trees(size)
    ahead = (end - start) % size
    parity = {"alternating": 1, "opposite": 0}
    tie_positive = start % 2 == parity[ties] if ties in parity else np.ones_like(start, dtype=bool)
    positive = np.where(2 * ahead == size, tie_positive, 2 * ahead < size)
    wraps_up, wraps_down = end < start, end > start
    if rule == "no_transit":
        # Strictly inside the way: upward over k-1→0 to b≠0, downward over 0→k-1 from a≠0.
        through_up = wraps_up & (end != 0)
        through_down = wraps_down & (start != 0)
        positive = np.where(positive, ~through_up, through_down)
    crosses = np.where(positive, wraps_up, wraps_down)
    if planes == "link":
        last = crosses
    elif planes == "node":
        last = crosses & (start != 0) & (end != 0)
    else:
        last = np.zeros_like(crosses)
    first = ~crosses if planes == "dest" else np.zeros_like(crosses)
    return _Ring(positive, last.astype(np.int32), first.astype(np.int32))


def _two_trees(size: int) -> _Ring:
    """Two lines: 0..k-1 on plane 0, and k/2..k-1, 0..k/2-1 on plane 1."""
    at = np.arange(size)
    other = (at - size // 2) % size  # place on the second line
    second = np.abs(2 * other - size + 1) < np.abs(2 * at - size + 1)
    place = np.where(second[:, None], other[None, :], at[None, :])  # [source, switch] on the source's line
    positive = place > place[at, at][:, None]
    plane = np.repeat(second[:, None], size, axis=1).astype(np.int32)
    return _Ring(positive, plane, np.zeros_like(plane))


def entering_channels(topology: Topology) -> Ints:
    """(dimensions, 2, S) plane-0 channel that enters a switch going down [0] or up [1], -1 where there is none."""
    arrive = np.full((len(topology.sizes), 2, topology.switch_count), -1, dtype=np.int32)
    first_plane = np.flatnonzero(topology.plane == 0)
    source, target = topology.links[first_plane, 0], topology.links[first_plane, 1]
    dimension = np.argmax(topology.coordinates[source] != topology.coordinates[target], axis=1)
    # Links are made in the positive direction, so channel 2 l enters its target going up.
    arrive[dimension, 1, target] = 2 * first_plane
    arrive[dimension, 0, source] = 2 * first_plane + 1
    return arrive


def _by_source(
    topology: Topology, rings: list[_Ring], arrive: Ints, planes_used: int, notes: tuple[str, ...]
) -> Routes:
    roots = host_switches(topology)
    parent: Ints = np.full((len(roots), topology.switch_count), -1, dtype=np.int32)
    group = (roots if planes_used == 1 else plane_groups(topology, roots, planes_used))[:, None]
    parallel = parallel_of_pair(topology)
    every = np.arange(topology.switch_count)[None, :]
    for dimension, ring in enumerate(rings):
        start = topology.coordinates[roots, dimension][:, None]
        end = topology.coordinates[:, dimension][None, :]
        channel = arrive[dimension, ring.positive[start, end].astype(np.int32), every]
        # Where planes break a cycle every pair has all of them; elsewhere the sources share those that there are.
        channel = channel + 2 * (ring.last_plane[start, end] + group % parallel[channel])
        parent = np.where(start != end, channel, parent)  # the last dimension that differs is crossed last
    return source_trees(topology, parent.astype(np.int32), roots, notes)


def _by_destination(topology: Topology, rings: list[_Ring], arrive: Ints, notes: tuple[str, ...]) -> Routes:
    count = topology.switch_count
    following: Ints = np.full((count, count), -1, dtype=np.int32)
    every = np.arange(count)[:, None]
    for dimension in reversed(range(len(rings))):  # the first dimension that differs is crossed first
        ring = rings[dimension]
        start = topology.coordinates[:, dimension][:, None]
        end = topology.coordinates[:, dimension][None, :]
        # Leaving upward is the reverse of the channel that enters going down.
        channel = arrive[dimension, (~ring.positive[start, end]).astype(np.int32), every] ^ 1
        following = np.where(start != end, channel + 2 * ring.first_plane[start, end], following)
    roots = host_switches(topology)
    host_tree = np.searchsorted(roots, topology.host_switch).astype(np.int32)
    trees = np.ascontiguousarray(following[:, roots].T, dtype=np.int32)
    return Routes("destination_trees", roots, trees, roots, host_tree, notes=notes)
