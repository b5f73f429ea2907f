"""Fat tree and Clos: up to the common ancestor, down again; the way up is keyed by the source host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.model import Ints, Routes, Topology
from testbed.routing.fit import misfit
from testbed.routing.trees import plane_groups


@dataclass(frozen=True, slots=True)
class FatTreeOptions:
    """Up links are chosen by the source host's number, digit by digit: u^r VLANs (Koibuchi 2011, Table 3)."""


def route_fat_tree(topology: Topology, options: FatTreeOptions) -> Routes:
    """One tree for each (leaf, key), key = host number modulo the ways up.

    Raises:
        InputError: the topology has no upper level.
    """
    del options
    if topology.levels.max(initial=0) == 0:
        raise misfit("fat_tree", "a fat_tree, fat_tree_14 or myrinet_clos", topology.kind)
    network = _Levels(topology)
    tree_of: dict[tuple[int, int], int] = {}
    parents: list[Ints] = []
    roots: list[int] = []
    host_tree = np.empty(topology.host_count, dtype=np.int32)
    for host, leaf in enumerate(topology.host_switch.tolist()):
        key = host % network.ways_up(leaf)
        if (leaf, key) not in tree_of:
            tree_of[leaf, key] = len(parents)
            parents.append(network.tree(leaf, key))
            roots.append(leaf)
        host_tree[host] = tree_of[leaf, key]
    stacked = np.stack(parents) if parents else np.zeros((0, topology.switch_count), dtype=np.int32)
    tree_root = np.asarray(roots, dtype=np.int32)
    offset = 2 * plane_groups(topology, tree_root)[:, None]
    stacked = np.where(stacked >= 0, stacked + offset, -1).astype(np.int32)
    return Routes("source_trees", stacked, tree_root, host_tree, np.zeros((0, topology.switch_count), dtype=np.int32))


class _Levels:
    """Upper and lower neighbours of each switch, and its digit: its rank among its child's parents."""

    def __init__(self, topology: Topology) -> None:
        count = topology.switch_count
        self.topology = topology
        self.up: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.down: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for channel, (source, target) in enumerate(
            zip(topology.channel_source.tolist(), topology.channel_target.tolist(), strict=True)
        ):
            if topology.plane[channel // 2] == 0:
                rising = topology.levels[target] > topology.levels[source]
                (self.up if rising else self.down)[source].append((target, channel))
        self.digit = [0] * count
        for switch in range(count):
            for rank, (parent, _) in enumerate(self.up[switch]):
                self.digit[parent] = rank
        self.has_hosts = np.bincount(topology.host_switch, minlength=count) > 0

    def ways_up(self, leaf: int) -> int:
        """Product of the up choices from a leaf to the top."""
        ways, switch = 1, leaf
        while self.up[switch]:
            ways *= len(self.up[switch])
            switch = self.up[switch][0][0]
        return ways

    def tree(self, leaf: int, key: int) -> Ints:
        """(S,) parent channels of the tree of one source key, without branches that reach no host."""
        parent = np.full(self.topology.switch_count, -1, dtype=np.int32)
        chain, digits = [leaf], []
        while self.up[chain[-1]]:
            ways = len(self.up[chain[-1]])
            digits.append(key % ways)
            switch, channel = self.up[chain[-1]][key % ways]
            parent[switch] = channel
            chain.append(switch)
            key //= ways
        seen = set(chain)
        for start in chain:
            frontier = [start]
            while frontier:
                following: list[tuple[int, int]] = [
                    (neighbour, channel)
                    for switch in frontier
                    for neighbour, channel in self.down[switch]
                    if neighbour not in seen
                ]
                # Of several ways down to the same leaves take the switch with the source's own digit.
                following.sort(key=lambda step: self._strangeness(step[0], digits))
                frontier = []
                for switch, channel in following:
                    if switch not in seen:
                        seen.add(switch)
                        parent[switch] = channel
                        frontier.append(switch)
        return self._pruned(parent)

    def _strangeness(self, switch: int, digits: list[int]) -> bool:
        level = int(self.topology.levels[switch])
        return level > 0 and self.digit[switch] != digits[level - 1]

    def _pruned(self, parent: Ints) -> Ints:
        needed = self.has_hosts.copy()
        while True:
            entering = parent[needed & (parent >= 0)]
            more = needed.copy()
            more[self.topology.channel_source[entering]] = True
            if (more == needed).all():
                return np.where(needed, parent, -1).astype(np.int32)
            needed = more
