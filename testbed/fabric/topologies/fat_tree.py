"""Fat tree (u, d, r), the papers' 14-switch fat tree, and the Myrinet-Clos network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le

from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, in_rows, make_topology


@dataclass(frozen=True, slots=True)
class FatTree:
    """`up` upper and `down` lower links a switch, `rounds` layers of links (Koibuchi 2011, section 4.1)."""

    up: Annotated[int, Ge(1)]  # links of a switch to the level above
    down: Annotated[int, Ge(1)]  # links of a switch to the level below, or hosts
    rounds: Annotated[int, Ge(1), Le(14)]  # levels
    hosts_per_leaf: Annotated[int, Ge(0)] | None = None  # hosts on each leaf
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    @property
    def leaf_hosts(self) -> int:
        """Hosts on a leaf; where the scenario says nothing, as many as it has lower links."""
        return self.down if self.hosts_per_leaf is None else self.hosts_per_leaf

    def width(self, level: int) -> int:
        """Count the switches of a level, 0 for the leaves."""
        return int(self.down ** (self.rounds - level) * self.up**level)

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        widths = [self.width(level) for level in range(self.rounds + 1)]
        links = sum(widths[:-1]) * self.up * self.parallel_links
        return Extent(sum(widths), links, widths[0] * self.leaf_hosts)


@dataclass(frozen=True, slots=True)
class FatTree14:
    """8 leaves in 2 groups, 2 middle switches a group, 2 top switches linked to all middles (Table 11)."""

    hosts_per_leaf: Annotated[int, Ge(0)] = 2  # hosts on each leaf
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return Extent(14, 24 * self.parallel_links, 8 * self.hosts_per_leaf)


@dataclass(frozen=True, slots=True)
class MyrinetClos:
    """`leaves` leaf switches, each linked to each of `roots` root switches (Fig. 9b: 4×4)."""

    leaves: Annotated[int, Ge(1)] = 4  # switches with hosts
    roots: Annotated[int, Ge(1)] = 4  # switches that join them
    hosts_per_leaf: Annotated[int, Ge(0)] = 4  # hosts on each leaf
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        links = self.leaves * self.roots * self.parallel_links
        return Extent(self.leaves + self.roots, links, self.leaves * self.hosts_per_leaf)


def fat_tree(spec: FatTree) -> Topology:
    """Build the tree level by level: level i has down^(r-i) · up^i switches.

    A switch of level i is (group, copy): group of down^(r-i), copy of up^i. It links to the switches of level
    i+1 in group // down whose copy is copy + up^i · j, j = 0..up-1, so its j is digit i of the copy.
    """
    up, down = spec.up, spec.down
    rows: list[list[int]] = []
    total = 0
    for level in range(spec.rounds + 1):
        width = spec.width(level)
        rows.append(list(range(total, total + width)))
        total += width
    pairs = []
    for level in range(spec.rounds):
        copies = up**level
        for place, switch in enumerate(rows[level]):
            group, copy = divmod(place, copies)
            for choice in range(up):
                pairs.append((switch, rows[level + 1][(group // down) * copies * up + copy + copies * choice]))
    return _build_levels("fat_tree", pairs, rows, spec.leaf_hosts, spec.parallel_links)


def fat_tree_14(spec: FatTree14) -> Topology:
    """Build the papers' 14-switch fat tree: 24 switch links."""
    pairs = [(leaf, 8 + 2 * (leaf // 4) + middle) for leaf in range(8) for middle in range(2)]
    pairs += [(middle, top) for middle in range(8, 12) for top in (12, 13)]
    rows = [list(range(8)), list(range(8, 12)), [12, 13]]
    return _build_levels("fat_tree_14", pairs, rows, spec.hosts_per_leaf, spec.parallel_links)


def myrinet_clos(spec: MyrinetClos) -> Topology:
    """Build leaves and roots, every leaf linked to every root."""
    roots = range(spec.leaves, spec.leaves + spec.roots)
    pairs = [(leaf, root) for leaf in range(spec.leaves) for root in roots]
    rows = [list(range(spec.leaves)), list(roots)]
    return _build_levels("myrinet_clos", pairs, rows, spec.hosts_per_leaf, spec.parallel_links)


def _build_levels(
    kind: str, pairs: list[tuple[int, int]], rows: list[list[int]], hosts: int, parallel_links: int
) -> Topology:
    levels = [level for level, row in enumerate(rows) for _ in row]
    hosts_on = [hosts if level == 0 else 0 for level in levels]
    return make_topology(kind, pairs, hosts_on, in_rows(rows), parallel_links=parallel_links, levels=levels)
