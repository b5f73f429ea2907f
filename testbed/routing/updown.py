"""Up*/down* routing (Schroeder et al. 1991; Koibuchi et al. 2003, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.model import Bools, Routes, Topology
from testbed.routing.common import explicit_routes, switch_named
from testbed.routing.selection import SelectionOptions, select_paths
from testbed.routing.turns import all_turns, allow, breadth_first_levels


@dataclass(frozen=True, slots=True)
class UpDownOptions(SelectionOptions):
    """Up is toward the root: a lower level of the breadth-first tree, or a lower number on the same level."""

    root: str | None = None  # a switch such as s5; without one the first, whose number is the lowest (Autonet)


def upward(topology: Topology, root: int = 0) -> Bools:
    """(C,) True for channels that go up, levels being hops from the root; the lower number breaks ties."""
    level = breadth_first_levels(topology, root)
    source, target = topology.channel_source, topology.channel_target
    nearer = level[target] < level[source]
    up: Bools = nearer | ((level[target] == level[source]) & (target < source))
    return up


def route_updown(topology: Topology, options: UpDownOptions) -> Routes:
    """Shortest paths that never turn from down to up.

    Raises:
        InputError: the root is not a switch of the fabric.
    """
    up = upward(topology, switch_named(topology, options.root, "root"))
    before, after = all_turns(topology)
    turns = allow(topology, ~(~up[before] & up[after]), before, after)
    return explicit_routes(topology, select_paths(topology, turns, options), turns)
