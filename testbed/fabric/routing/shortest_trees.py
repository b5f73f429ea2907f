"""Routings that need no choice: source trees of fewest hops, without loops and on completely connected switches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import (
    host_switches,
    parallel_of_pair,
    refuse_topology,
    require_every_pair,
    source_trees,
)


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """The only path there is; parallel links are shared by source switch."""


@dataclass(frozen=True, slots=True)
class DirectOptions:
    """One hop to every other switch; parallel links are shared by source switch."""


def route_tree(topology: Topology, options: TreeOptions) -> Routes:
    """Route a network without loops.

    Raises:
        InputError: the topology has a loop.
    """
    del options
    pairs = len(np.unique(topology.links, axis=0)) if topology.link_count else 0
    if pairs != topology.switch_count - 1:
        size = f"{topology.switch_count} switches with {pairs} neighbour pairs"
        raise refuse_topology("tree", "a topology without loops", f"a {topology.kind} of {size}")
    return source_trees(topology, *shortest_trees(topology))


def route_direct(topology: Topology, options: DirectOptions) -> Routes:
    """Route a completely connected network.

    Raises:
        InputError: two switches have no link.
    """
    del options
    if topology.kind != "complete":
        raise refuse_topology("direct", "the topology complete", topology.kind)
    switches = topology.switch_count
    require_every_pair("direct", topology, switches, switches * (switches - 1) // 2)
    return source_trees(topology, *shortest_trees(topology))


def breadth_first(topology: Topology, root: int) -> Ints:
    """(S,) channel of plane 0 by which a shortest-hop tree from `root` enters each switch, low port first."""
    parent = np.full(topology.switch_count, -1, dtype=np.int32)
    outgoing: list[list[int]] = [[] for _ in range(topology.switch_count)]
    for channel in range(len(topology.channel_source)):
        if topology.plane[channel // 2] == 0:
            outgoing[topology.channel_source[channel]].append(channel)
    seen = {root}
    frontier = [root]
    while frontier:
        following = []
        for switch in frontier:
            for channel in outgoing[switch]:
                neighbour = int(topology.channel_target[channel])
                if neighbour not in seen:
                    seen.add(neighbour)
                    parent[neighbour] = channel
                    following.append(neighbour)
        frontier = following
    return parent


def shortest_trees(topology: Topology) -> tuple[Ints, Ints]:
    """Breadth-first trees from every switch with hosts: (T, S) parent channels and (T,) roots."""
    roots = host_switches(topology)
    parents = np.stack([breadth_first(topology, int(root)) for root in roots])
    plane = roots[:, None] % parallel_of_pair(topology)[parents]
    return np.where(parents >= 0, parents + 2 * plane, -1).astype(np.int32), roots
