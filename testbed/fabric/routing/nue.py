"""Nue, routing on the dependency graph (Domke, Hoefler, Matsuoka 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from testbed.base.model import Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import host_switches, leaving_channels
from testbed.fabric.routing.layers import MAX_LAYERS, paths_to, routes_in_layers
from testbed.fabric.routing.shortest_trees import breadth_first
from testbed.fabric.routing.turns import all_turns, by_switch, no_path


@dataclass(frozen=True, slots=True)
class NueOptions:
    """How many layers the destinations are divided among."""

    # number of layers, each an 802.1Q priority; any number will do, more give shorter paths
    layers: Annotated[int, Ge(1), Le(MAX_LAYERS)] = MAX_LAYERS


def route_nue(topology: Topology, options: NueOptions) -> Routes:
    """One tree a destination, found among the turns that close no cycle in the destination's layer.

    Fewest hops come first, then the least sum of load so far, in pairs of hosts. All frames to a destination are in
    one layer, so with one layer the next hop depends on the destination alone (N×N→C). Paths need not be minimal.

    What differs from the paper:
    - Destinations are divided by nearness, not by a multilevel partition: each layer takes the first one left and
      those nearest to it, ceil(left / layers left) in all.
    - Escape paths follow a breadth-first tree from the switch with the least sum of hops to the layer's destinations,
      not from the one of highest betweenness in their convex hull.
    - A turn enters the graph when a switch settles for it, not when the search looks at it.
    - Where no turn is left, the paper backtracks locally and, if that fails, gives the destination escape paths only.
      Here the switch follows its escape path until that meets a way on which it can go on.

    Raises:
        InputError: a pair has no path (names it).
    """
    from testbed.fabric.kernels import nue, sssp

    ends = host_switches(topology)
    hosts = np.bincount(topology.host_switch, minlength=topology.switch_count).astype(np.int32)
    hops = sssp.from_switches(ends, *leaving_channels(topology), topology.channel_target)
    if (hops[:, ends] < 0).any():
        one, other = np.argwhere(hops[:, ends] < 0)[0]
        raise no_path(topology, int(ends[one]), int(ends[other]))
    arriving = by_switch(topology.channel_target, topology.switch_count)
    turns = all_turns(topology)
    load = np.zeros(len(topology.channel_source), dtype=np.int64)
    tree = np.full((len(ends), topology.switch_count), -1, dtype=np.int32)
    layer = np.zeros(len(ends), dtype=np.int32)
    forced = 0
    for number, part in enumerate(_near_each_other(hops[:, ends], options.layers)):
        root = int(np.argmin(hops[part].sum(axis=0)))
        from_root = breadth_first(topology, root)
        up = np.where(from_root >= 0, from_root ^ 1, -1).astype(np.int32)
        tree[part], count = nue.route_layer(
            ends[part], hosts, topology.channel_source, topology.channel_target, *arriving, *turns, up, load
        )
        layer[part] = number
        forced += count
    paths = paths_to(topology, tree)
    entries = len(ends) * (topology.switch_count - 1)
    notes = (f"{forced} of {entries} next hops are those of escape paths, for want of turns",) if forced else ()
    return routes_in_layers(topology, paths, np.tile(layer, len(ends)), options.layers, notes)


def _near_each_other(hops: Ints, layers: int) -> list[Ints]:
    """Divide destinations, as indices, among layers: each the first one left and those nearest to it.

    `hops`: (E, E) between destinations. Where there are fewer destinations than layers there are fewer parts.
    """
    left = np.arange(len(hops))
    parts = []
    for remaining in range(layers, 0, -1):
        if len(left):
            nearest = np.argsort(hops[left[0], left], kind="stable")[: -(-len(left) // remaining)]
            parts.append(np.sort(left[nearest]).astype(np.int32))
            left = np.delete(left, nearest)
    return parts
