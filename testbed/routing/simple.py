"""Routings that need no choice: on networks without loops, and on completely connected ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.model import Routes, Topology
from testbed.routing.fit import misfit, require_every_pair
from testbed.routing.trees import shortest_trees, source_trees


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
        raise misfit("tree", "a topology without loops", f"a {topology.kind} of {size}")
    return source_trees(topology, *shortest_trees(topology))


def route_direct(topology: Topology, options: DirectOptions) -> Routes:
    """Route a completely connected network.

    Raises:
        InputError: two switches have no link.
    """
    del options
    if topology.kind != "complete":
        raise misfit("direct", "the topology complete", topology.kind)
    switches = topology.switch_count
    require_every_pair("direct", topology, switches, switches * (switches - 1) // 2)
    return source_trees(topology, *shortest_trees(topology))
