"""Fat tree and Clos: up to the common ancestor, down again; what chooses the way up is the key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.model import Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import host_switches, plane_groups, refuse_topology, require_whole


@dataclass(frozen=True, slots=True)
class FatTreeOptions:
    """What chooses the up link at each switch."""

    # `source`: the number of the source host, digit by digit, one tree a source host and u^r VLANs (Koibuchi 2011,
    # Table 3). `in_port`: the port of arrival, so that every switch can tell it: the host's port at a leaf, the rank of
    # the lower switch above. `destination`: the number of the destination host, digit by digit.
    key: Literal["source", "in_port", "destination"] = "source"


def route_fat_tree(topology: Topology, options: FatTreeOptions) -> Routes:
    """One tree for each (leaf, key), the key being a host number modulo the ways up or a host port modulo up links.

    By source, where a switch has more lower than upper links, hosts of one leaf that share its up link may part
    above it, so the port of arrival does not tell the way (no C×N→C).

    Returns:
        Source trees; destination trees for the key `destination`, which are the source trees walked backward.

    Raises:
        InputError: the topology has no upper level, or something in it is dead.
    """
    if topology.levels.max(initial=0) == 0:
        raise refuse_topology("fat_tree", "levels as of fat_tree, fat_tree_pods or leaf_spine", topology.kind)
    require_whole("fat_tree", topology)
    network = _Levels(topology)
    by_port = options.key == "in_port"
    tree_of: dict[tuple[int, int], int] = {}
    parents: list[Ints] = []
    roots: list[int] = []
    host_tree = np.empty(topology.host_count, dtype=np.int32)
    for host, leaf in enumerate(topology.host_switch.tolist()):
        ways = max(len(network.up[leaf]), 1) if by_port else network.ways_up(leaf)
        key = (int(topology.host_port[host]) - 1 if by_port else host) % ways
        if (leaf, key) not in tree_of:
            tree_of[leaf, key] = len(parents)
            parents.append(
                network.tree(leaf, network.choices_by_port(leaf, key) if by_port else network.digits(leaf, key))
            )
            roots.append(leaf)
        host_tree[host] = tree_of[leaf, key]
    stacked = np.stack(parents) if parents else np.zeros((0, topology.switch_count), dtype=np.int32)
    tree_root = np.asarray(roots, dtype=np.int32)
    offset = 2 * plane_groups(topology, tree_root)[:, None]
    stacked = np.where(stacked >= 0, stacked + offset, -1).astype(np.int32)
    if options.key == "destination":
        backward = np.where(stacked >= 0, stacked ^ 1, -1).astype(np.int32)
        return Routes("destination_trees", host_switches(topology), backward, tree_root, host_tree)
    return Routes("source_trees", host_switches(topology), stacked, tree_root, host_tree)


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

    def digits(self, leaf: int, key: int) -> list[int]:
        """Choice at each switch on the way up: the digits of a key, lowest first."""
        choices, switch = [], leaf
        while self.up[switch]:
            key, choice = divmod(key, len(self.up[switch]))
            choices.append(choice)
            switch = self.up[switch][choice][0]
        return choices

    def choices_by_port(self, leaf: int, first: int) -> list[int]:
        """Choice at each switch on the way up: the first one, then the rank of the lower switch it comes from."""
        choices, below, choice = [first], leaf, first
        switch = self.up[leaf][choice][0] if self.up[leaf] else leaf
        while self.up[switch]:
            rank = [lower for lower, _ in self.down[switch]].index(below)
            choice = rank % len(self.up[switch])
            choices.append(choice)
            below, switch = switch, self.up[switch][choice][0]
        return choices

    def tree(self, leaf: int, choices: list[int]) -> Ints:
        """(S,) parent channels of the tree of one source key, without branches that reach no host."""
        parent = np.full(self.topology.switch_count, -1, dtype=np.int32)
        chain = [leaf]
        while self.up[chain[-1]]:
            switch, channel = self.up[chain[-1]][choices[len(chain) - 1]]
            parent[switch] = channel
            chain.append(switch)
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
                following.sort(key=lambda step: self._is_foreign(step[0], choices))
                frontier = []
                for switch, channel in following:
                    if switch not in seen:
                        seen.add(switch)
                        parent[switch] = channel
                        frontier.append(switch)
        return self._prune_tree(parent)

    def _is_foreign(self, switch: int, choices: list[int]) -> bool:
        level = int(self.topology.levels[switch])
        return level > 0 and self.digit[switch] != choices[level - 1]

    def _prune_tree(self, parent: Ints) -> Ints:
        needed = self.has_hosts.copy()
        while True:
            entering = parent[needed & (parent >= 0)]
            more = needed.copy()
            more[self.topology.channel_source[entering]] = True
            if (more == needed).all():
                return np.where(needed, parent, -1).astype(np.int32)
            needed = more
