"""Shortest-path bridging (IEEE 802.1aq): a shortest-path tree a source, symmetric, by one of 16 equal-cost algorithms.

Of equally short paths an algorithm takes the one whose path identifier is lowest: the bridge identifiers on it, each
with all its bytes XORed with the algorithm's mask, in ascending order. So each part of a path is the path of its ends,
and the way back is the way there. Each algorithm has a VLAN of its own (B-VID); which one a source uses is a matter of
its service, here sources take turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from testbed.base.model import Ints, Longs, Routes, Topology
from testbed.fabric.routing.channel_lookup import host_switches, leaving_channels, source_trees

# The masks of 802.1aq, Table 28-1, in the order of the algorithms 00-80-C2-01 to 00-80-C2-10.
MASKS = (0x00, 0xFF, 0x88, 0x77, 0x44, 0xBB, 0x22, 0xDD, 0x11, 0xEE, 0x66, 0x99, 0xAA, 0x55, 0xCC, 0x33)
_PRIORITY = 0x8000 << 48  # of every bridge, before its 48 bits of system identifier
_ADDRESS = 0x020000000000


@dataclass(frozen=True, slots=True)
class SpbOptions:
    """Which of the 16 algorithms are in use."""

    algorithms: Annotated[int, Ge(1), Le(16)] = 16  # as many as the first so many; sources take them in turn
    # the one that all sources use, from 1 (LowPATH) and 2 (HighPATH) to 16, in place of turns
    algorithm: Annotated[int, Ge(1), Le(16)] | None = None


def route_spb(topology: Topology, options: SpbOptions) -> Routes:
    """Make a tree a source switch; of parallel links the first is used."""
    roots = host_switches(topology)
    trees = np.full((len(roots), topology.switch_count), -1, dtype=np.int32)
    start, leaving = leaving_channels(topology)
    for place, root in enumerate(roots.tolist()):
        number = place % options.algorithms if options.algorithm is None else options.algorithm - 1
        trees[place] = _grow_tree(topology, root, rank_bridges(topology.switch_count, MASKS[number]), start, leaving)
    unused = topology.parallel_links > 1
    notes = ("of parallel links shortest-path bridging uses the first",) if unused else ()
    return source_trees(topology, trees, roots, notes)


def rank_bridges(switches: int, mask: int) -> Longs:
    """(S,) place of each bridge among all, by its identifier under a mask."""
    whole = int.from_bytes(bytes([mask] * 8), "big")
    masked = [(_PRIORITY | _ADDRESS + switch + 1) ^ whole for switch in range(switches)]
    rank = np.empty(switches, dtype=np.int64)
    rank[sorted(range(switches), key=masked.__getitem__)] = np.arange(switches)
    return rank


def _grow_tree(topology: Topology, root: int, rank: Longs, start: Longs, leaving: Ints) -> Ints:
    """(S,) channel by which the tree of a root enters each switch."""
    tree = np.full(topology.switch_count, -1, dtype=np.int32)
    path: dict[int, list[int]] = {root: [int(rank[root])]}
    level = [root]
    while level:
        best: dict[int, tuple[list[int], int]] = {}
        for switch in level:
            for channel in leaving[start[switch] : start[switch + 1]].tolist():
                after = int(topology.channel_target[channel])
                if after in path:
                    continue
                found = sorted([*path[switch], int(rank[after])])
                if after not in best or found < best[after][0]:
                    best[after] = (found, channel)
        for after, (found, channel) in best.items():
            path[after], tree[after] = found, channel
        level = list(best)
    return tree
