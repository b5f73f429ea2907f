"""Dimension order in a torus some of whose rings are cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Bools, Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import OTHERWISE, host_switches, parallel_of_pair, source_trees
from testbed.fabric.routing.dimension_order import DorOptions, route_dor
from testbed.fabric.topologies.grid import Torus, torus


@dataclass(frozen=True, slots=True)
class _Cut:
    """A ring opened between two switches."""

    dimension: int  # along which it runs
    inside: Bools  # (S,) True for its switches
    first: int  # coordinate of the first switch of the line it has become


def route_cut_rings(topology: Topology, *, two_trees: bool) -> Routes:
    """Route a torus by dimension order; a ring with a dead link is a line, gone along the only way there is.

    The other rings are as in `dor`. A line has no cycle of dependencies and paths change dimension in one order, so
    none is left. Where a pair has lost some but not all of its parallel links, its ring is cut there as well, because
    the planes that break the cycle of a ring would be missing.

    Args:
        topology: a torus or ring.
        two_trees: other rings are as in `dor` with `ring: two_trees`. The sources of a line then have one tree in it,
            so of those along the first dimension each has one VLAN where other rings have two.

    Raises:
        InputError: a ring has lost two links (names them).
    """
    whole = torus(Torus(topology.sizes, parallel_links=max(topology.parallel_links, 1)))
    living = _living_channels(topology, whole)
    cuts = list(_cuts(topology, whole, living))
    roots = host_switches(topology)
    routes = route_dor(whole, DorOptions(ring="two_trees" if two_trees else "auto"))
    of_whole = routes.tree_channel[roots]
    trees = living[of_whole]
    # On a line a source keeps to one plane, so that sources with one tree still have one.
    plane = np.append(np.repeat(whole.plane, 2), whole.parallel_links)[of_whole].min(axis=1)[:, None] * (not two_trees)
    parallel = parallel_of_pair(topology)
    for cut in cuts:
        inside = np.flatnonzero(cut.inside)
        place = (topology.coordinates[:, cut.dimension] - cut.first) % topology.sizes[cut.dimension]
        entering = _entering_channels(whole, cut, place)[:, inside]
        up = place[inside][None] > place[roots][:, None]
        channel = living[entering[up.astype(int), np.arange(len(inside))]]
        # The last dimension that differs is crossed last: here, unless a later one differs.
        later = topology.coordinates[:, cut.dimension + 1 :]
        last = (later[roots][:, None] == later[inside][None]).all(axis=2) & (place[inside] != place[roots][:, None])
        trees[:, inside] = np.where(last, channel + 2 * (plane % parallel[channel]), trees[:, inside])
    notes = routes.notes
    if cuts:
        which = "ring with a dead link is a line" if len(cuts) == 1 else "rings with a dead link are lines"
        notes += (f"{len(cuts)} {which}, so some paths are longer than the shortest",)
    return source_trees(topology, trees, roots, notes)


def _living_channels(topology: Topology, whole: Topology) -> Ints:
    """(C of the whole torus + 1,) number of each of its channels here, -1 where it is dead; the last entry is -1."""
    number = {key: channel for channel, key in enumerate(_channel_keys(topology))}
    return np.array([*(number.get(key, -1) for key in _channel_keys(whole)), -1], dtype=np.int32)


def _channel_keys(topology: Topology) -> Iterator[tuple[int, int, int]]:
    plane = np.repeat(topology.plane, 2)
    return zip(topology.channel_source.tolist(), topology.channel_target.tolist(), plane.tolist(), strict=True)


def _cuts(topology: Topology, whole: Topology, living: Ints) -> Iterator[_Cut]:
    """One for each ring with a pair that has fewer links than others."""
    pairs = whole.links[whole.plane == 0]
    left = (living[:-1:2] >= 0).reshape(-1, max(whole.parallel_links, 1)).sum(axis=1)
    step = whole.coordinates[pairs[:, 1]] - whole.coordinates[pairs[:, 0]]
    dimension = np.argmax(step != 0, axis=1)
    # A ring is identified by the switch where its coordinate is 0.
    strides = np.cumprod([1, *whole.sizes])[dimension]
    ring = pairs[:, 0] - whole.coordinates[pairs[:, 0], dimension] * strides
    weak = left < whole.parallel_links
    for along, origin in sorted(set(zip(dimension[weak].tolist(), ring[weak].tolist(), strict=True))):
        here = weak & (dimension == along) & (ring == origin)
        dead = pairs[here & (left == 0)]
        size = whole.sizes[along]
        if len(dead) > (1 if size > 2 else 0):
            names = " and ".join(f"{topology.switch_name(a)}–{topology.switch_name(b)}" for a, b in dead.tolist())
            what = "a ring has lost its links" if size > 2 else "there is no ring round the link"
            raise InputError.one(
                "routing.kind", f'"north_last" goes the other way round a ring and here {what} {names}; {OTHERWISE}'
            )
        opened = dead[0] if len(dead) else pairs[here][0]
        others = np.delete(whole.coordinates, along, axis=1)
        inside = (others == others[origin]).all(axis=1)
        first = int(whole.coordinates[opened[1], along]) if size > 2 else 0
        yield _Cut(along, inside, first)


def _entering_channels(whole: Topology, cut: _Cut, place: Ints) -> Ints:
    """(2, S) plane-0 channel that enters a switch going down [0] or up [1] the line, -1 off it."""
    source, target = whole.channel_source, whole.channel_target
    rise = place[target] - place[source]
    plane_0 = np.repeat(whole.plane == 0, 2)
    for_it = np.flatnonzero(plane_0 & cut.inside[source] & cut.inside[target] & (abs(rise) == 1))
    entering = np.full((2, whole.switch_count), -1, dtype=np.int32)
    entering[(rise[for_it] > 0).astype(int), target[for_it]] = for_it
    return entering
