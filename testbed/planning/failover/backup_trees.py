"""A few spanning trees such that whatever link or switch dies, one of them does without it."""

from __future__ import annotations

import heapq

import numpy as np

from testbed.base.model import Bools, Topology
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.planning.failover.failed_elements import find_islands


def backup_trees(topology: Topology, dead: Bools) -> Bools:
    """Spanning trees of what is alive, as few as a greedy choice finds.

    A link is spared by a tree that it is not in, a switch by one that it is a leaf of. Each tree follows the shortest
    paths when ways over links and switches that no earlier tree spares count as longer than any other. Where that
    spares nothing new, the tree is made without the first of them. Bridges and switches that hold the fabric together
    cannot be spared.

    `dead`: (L,) links that no tree may have.

    Returns:
        (B, L) links of each tree; of a divided fabric the trees of all its parts.
    """
    links, switches = _can_be_spared(topology, dead)
    trees: list[Bools] = []
    while not trees or links.any() or switches.any():
        tree = _shortest_paths(topology, dead, links if trees else np.zeros_like(links), switches)
        spared_links, spared_switches = links & ~tree, switches & _leaves(topology, tree)
        if trees and not (spared_links.any() or spared_switches.any()):
            tree = _without_one(topology, dead, links, switches)
            spared_links, spared_switches = links & ~tree, switches & _leaves(topology, tree)
        links, switches = links & ~spared_links, switches & ~spared_switches
        trees.append(tree)
    return np.array(trees)


def _can_be_spared(topology: Topology, dead: Bools) -> tuple[Bools, Bools]:
    """(L,) living links that are no bridge; (S,) switches without which the others stay together."""
    parts = len(np.unique(find_islands(topology, dead)))
    links = np.zeros_like(dead)
    for link in np.flatnonzero(~dead).tolist():
        without = dead.copy()
        without[link] = True
        links[link] = len(np.unique(find_islands(topology, without))) == parts
    switches = np.zeros(topology.switch_count, dtype=bool)
    for switch in range(topology.switch_count):
        at = (topology.links == switch).any(axis=1)
        # Its own part becomes two: itself and the others.
        more = len(np.unique(find_islands(topology, dead | at))) - parts
        switches[switch] = more == 1 and bool((at & ~dead).any())
    return links, switches


def _leaves(topology: Topology, tree: Bools) -> Bools:
    """(S,) True for switches that a tree passes through nowhere."""
    degree = np.bincount(topology.links[tree].reshape(-1), minlength=topology.switch_count)
    found: Bools = degree <= 1
    return found


def _without_one(topology: Topology, dead: Bools, links: Bools, switches: Bools) -> Bools:
    """A tree that spares the first link or switch that none has spared."""
    if links.any():
        without = dead.copy()
        without[links.argmax()] = True
        return _shortest_paths(topology, without, links, switches)
    # Every other switch is reached first; the one to spare then hangs on by its first living link.
    leaf = int(switches.argmax())
    at = np.flatnonzero((topology.links == leaf).any(axis=1) & ~dead)
    without = dead.copy()
    without[at] = True
    tree = _shortest_paths(topology, without, links, switches)
    tree[at[0]] = True
    return tree


def _shortest_paths(topology: Topology, dead: Bools, links: Bools, switches: Bools) -> Bools:
    """(L,) links of a tree of shortest paths in each part (Dijkstra), from the switch with most living links.

    (L,) `dead` links are not there, (L,) `links` are kept out, (S,) `switches` are passed through as little as can be.
    """
    start, leaving = leaving_channels(topology)
    detour = topology.switch_count
    degree = np.bincount(topology.links[~dead].reshape(-1), minlength=topology.switch_count)
    # What is to be spared should be no root either.
    order = np.lexsort((np.arange(topology.switch_count), -degree, switches)).tolist()
    reached = np.zeros(topology.switch_count, dtype=bool)
    tree = np.zeros_like(dead)
    for root in order:
        waiting = [] if reached[root] else [(0, root, -1)]
        while waiting:
            cost, switch, channel = heapq.heappop(waiting)
            if reached[switch]:
                continue
            reached[switch] = True
            if channel >= 0:
                tree[channel // 2] = True
            through = cost + 1 + (detour if switches[switch] and channel >= 0 else 0)
            for following in leaving[start[switch] : start[switch + 1]].tolist():
                target = int(topology.channel_target[following])
                if not (dead[following // 2] or reached[target]):
                    heapq.heappush(waiting, (through + (detour if links[following // 2] else 0), target, following))
    return tree
