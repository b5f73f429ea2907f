"""L-turn style routing: a reconstruction in the spirit of Koibuchi et al. 2001 (L-turn), not verified against it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, switch_named
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.stp import spanning_tree
from testbed.fabric.routing.turns import all_turns, allow, breadth_first_levels


@dataclass(frozen=True, slots=True)
class LturnOptions(SelectionOptions):
    """Turns are judged by two coordinates of the switches in a spanning tree."""

    root: str | None = None  # of the spanning tree, a switch such as s5; without one the first


def route_lturn(topology: Topology, options: LturnOptions) -> Routes:
    """Shortest paths that take only turns of left_first_turns().

    Raises:
        InputError: the root is not a switch of the fabric.
    """
    before, after = all_turns(topology)
    allowed = left_first_turns(topology, switch_named(topology, options.root, "root"))
    turns = allow(topology, allowed, before, after)
    return explicit_routes(topology, select_paths(topology, turns, options), turns)


def left_first_turns(topology: Topology, root: int) -> Bools:
    """(A,) True for the allowed ones of all_turns().

    Only the outline of L-turn routing is known here: cycles are identified on a two-dimensional graph of the switches
    (Koibuchi et al. 2003, section 3.1). The rule is this project's own:

    A switch has a level (hops from the root) and a rank (preorder of the tree, children by number). A channel to a
    lower rank goes left, others right; left-up is left to a lower level. Left-up comes first, then other left
    channels, then right ones: turns against that order are forbidden. Then each forbidden turn, in the order of
    all_turns(), is allowed again unless it closes a cycle with what is allowed so far.

    Left channels only lower the rank and right ones only raise it, so the order leaves no cycle. The way up the tree
    is left-up and the way down right, so every pair has a path.
    """
    from testbed.fabric.kernels.release_turns import release

    before, after = all_turns(topology)
    tree = spanning_tree(topology, root)
    level, rank = breadth_first_levels(topology, root), _preorder(topology, tree, root)
    source, target = topology.channel_source, topology.channel_target
    left = rank[target] < rank[source]
    direction = np.where(left, np.where(level[target] < level[source], 0, 1), 2)
    start = np.searchsorted(before, np.arange(len(source) + 1)).astype(np.int64)
    return release(start, after, direction[before] <= direction[after])


def _preorder(topology: Topology, tree: Ints, root: int) -> Ints:
    """(S,) rank of each switch in the preorder of a tree given by the channel that enters each."""
    children: list[list[int]] = [[] for _ in range(topology.switch_count)]
    for switch in np.flatnonzero(tree >= 0)[::-1].tolist():
        children[int(topology.channel_source[tree[switch]])].append(switch)
    rank = np.zeros(topology.switch_count, dtype=np.int32)
    waiting, count = [root], 0
    while waiting:
        switch = waiting.pop()
        rank[switch] = count
        count += 1
        waiting += children[switch]
    return rank
