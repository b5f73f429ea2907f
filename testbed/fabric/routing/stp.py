"""The tree of the spanning tree protocol (IEEE 802.1D), with a bridge identifier for each switch: its number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import host_switches, source_trees, switch_named
from testbed.fabric.routing.turns import breadth_first_levels


@dataclass(frozen=True, slots=True)
class StpOptions:
    """What Ethernet does by itself: the links of one tree, all others unused."""

    root: str | None = None  # the switch with the lowest bridge identifier, such as s5; without one the first


def spanning_tree(topology: Topology, root: int) -> Ints:
    """(S,) channel by which the tree enters each switch, -1 at the root and where there is no way.

    Every link costs the same, so cost counts hops. A switch takes the neighbour of least cost; of several that with
    the lowest number, and of parallel links that with the lowest port there.
    """
    level = breadth_first_levels(topology, root)
    source, target = topology.channel_source, topology.channel_target
    down = np.flatnonzero((level[source] >= 0) & (level[target] == level[source] + 1))
    order = down[np.lexsort((topology.out_port[down], source[down], target[down]))]
    reached, first = np.unique(target[order], return_index=True)
    tree = np.full(topology.switch_count, -1, dtype=np.int32)
    tree[reached] = order[first]
    return tree


def route_stp(topology: Topology, options: StpOptions) -> Routes:
    """Route on one tree, whatever the source.

    Raises:
        InputError: the root is not a switch of the fabric.
    """
    root = switch_named(topology, options.root, "root")
    tree = spanning_tree(topology, root)
    ends = host_switches(topology)
    trees = np.tile(tree, (len(ends), 1))
    # Seen from a source, the tree is entered the other way round on the way up to the root.
    rows, at = np.arange(len(ends)), ends
    trees[rows, at] = -1
    while True:
        below = at != root
        rows, at = rows[below], at[below]
        if not len(rows):
            return source_trees(topology, trees, ends)
        above = topology.channel_source[tree[at]]
        trees[rows, above] = tree[at] ^ 1
        at = above
