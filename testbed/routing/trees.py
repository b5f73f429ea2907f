"""Source trees of minimal hops: the routing of networks without loops and of complete graphs."""

from __future__ import annotations

import numpy as np

from testbed.model import AllowedTurns, Ints, Paths, Routes, Topology


def host_switches(topology: Topology) -> Ints:
    """Switches that have at least one host, ascending."""
    return np.unique(topology.host_switch)


def source_trees(topology: Topology, trees: Ints, roots: Ints, notes: tuple[str, ...] = ()) -> Routes:
    """Routes of one tree a switch with hosts; `roots` ascending."""
    host_tree = np.searchsorted(roots, topology.host_switch).astype(np.int32)
    return Routes("source_trees", host_switches(topology), trees, roots, host_tree, notes=notes)


def explicit_routes(
    topology: Topology, paths: Paths, allowed: AllowedTurns | None, layers: int = 1, notes: tuple[str, ...] = ()
) -> Routes:
    """Routes of one explicit path a pair of switches with hosts."""
    none = np.zeros(0, dtype=np.int32)
    trees = np.zeros((0, topology.switch_count), dtype=np.int32)
    ends = host_switches(topology)
    return Routes("paths", ends, trees, none, none, layers, paths, allowed=allowed, notes=notes)


def plane_groups(topology: Topology, roots: Ints, planes_used: int = 1) -> Ints:
    """Plane offset of each source tree: parallel links beyond those a routing needs share the sources.

    Args:
        topology: the network.
        roots: (T,) source switch of each tree.
        planes_used: planes the routing itself distinguishes.

    Returns:
        (T,) the first plane of the group of planes that tree uses.
    """
    groups = max(1, topology.parallel_links // planes_used)
    return ((roots % groups) * planes_used).astype(np.int32)


def parallel_of_pair(topology: Topology) -> Ints:
    """(C + 1,) living parallel links of each channel's pair; the last entry is for -1, no channel."""
    pair = np.cumsum(topology.plane == 0) - 1
    count = np.bincount(pair, minlength=1)[pair]
    return np.append(np.repeat(count, 2), 1).astype(np.int32)


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
