"""Dragonfly+: groups of leaves and spines, of which the spines have the links between groups (Shpiner et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

from annotated_types import Ge

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, count_pairs, make_topology, on_nested_circles
from testbed.fabric.topologies.dragonfly import LinkedGroups


@dataclass(frozen=True, slots=True)
class DragonflyPlus(LinkedGroups):
    """Groups in each of which every leaf is linked to every spine; spines of different groups have global links."""

    leaves: Annotated[int, Ge(1)]  # of a group, with hosts
    spines: Annotated[int, Ge(1)]  # of a group
    global_links: Annotated[int, Ge(1)]  # of a spine
    hosts_per_leaf: Annotated[int, Ge(0)] = 1  # hosts on each leaf
    # without it the most there can be, spines · global_links + 1. With fewer, every two groups have as many links as
    # every two can have, and global ports that are left over stay unused.
    groups: Annotated[int, Ge(2)] | None = None
    parallel_links: Annotated[int, Ge(1)] = 1  # physical links for each of these

    @property
    def max_groups(self) -> int:
        """One more than the global links of a group."""
        return self.spines * self.global_links + 1

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        groups = self.group_count
        between = groups * (groups - 1) // 2 * self.links_between_groups
        links = (groups * self.leaves * self.spines + between) * self.parallel_links
        return Extent(groups * (self.leaves + self.spines), links, groups * self.leaves * self.hosts_per_leaf)


def check_dragonfly_plus(spec: DragonflyPlus) -> list[Problem]:
    """Name more groups than each can be linked to."""
    return spec.check_groups(f"{spec.spines} × {spec.global_links}")


def dragonfly_plus(spec: DragonflyPlus) -> Topology:
    """Build group by group, leaves before spines, then the links between groups in the order of the other groups."""
    size, groups = spec.leaves + spec.spines, spec.group_count
    pairs = [
        (group * size + leaf, group * size + spec.leaves + spine)
        for group in range(groups)
        for leaf in range(spec.leaves)
        for spine in range(spec.spines)
    ]
    for turn in range(spec.links_between_groups):
        for one, other in combinations(range(groups), 2):
            ends = []
            for group, far in ((one, other), (other, one)):
                port = turn * (groups - 1) + far - (far > group)
                ends.append(group * size + spec.leaves + port // spec.global_links)
            pairs.append((ends[0], ends[1]))
    neighbours, count = count_pairs(pairs)
    return make_topology(
        "dragonfly_plus",
        neighbours,
        ([spec.hosts_per_leaf] * spec.leaves + [0] * spec.spines) * groups,
        on_nested_circles((size, groups)),
        parallel_links=[links * spec.parallel_links for links in count],
    )
