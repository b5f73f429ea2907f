"""Source trees of minimal hops: the routing of networks without loops and of complete graphs."""

from __future__ import annotations

import numpy as np

from testbed.model import Ints, Topology


def host_switches(topology: Topology) -> Ints:
    """Switches that have at least one host, ascending."""
    return np.unique(topology.host_switch)


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
    offset = 2 * plane_groups(topology, roots)[:, None]
    return np.where(parents >= 0, parents + offset, -1).astype(np.int32), roots
