"""Fat tree by pods (Al-Fares et al. 2008), and dragonfly+: groups of leaves and spines (Shpiner et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

from annotated_types import Ge

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, count_pairs, in_rows, make_topology, on_nested_circles


@dataclass(frozen=True, slots=True)
class FatTreePods:
    """k pods of k/2 edge and k/2 aggregation switches of k ports, and (k/2)² cores: room for k³/4 hosts."""

    ports: Annotated[int, Ge(2)]  # k, even
    pods: Annotated[int, Ge(1)] | None = None  # k of them, or fewer, whose ports at the cores stay unused
    hosts_per_edge: Annotated[int, Ge(0)] | None = None  # k/2; more is oversubscription
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    @property
    def half(self) -> int:
        """k/2."""
        return self.ports // 2

    @property
    def pod_count(self) -> int:
        """Pods there are."""
        return self.ports if self.pods is None else self.pods

    @property
    def edge_hosts(self) -> int:
        """Hosts on an edge switch."""
        return self.half if self.hosts_per_edge is None else self.hosts_per_edge

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        half, pods = self.half, self.pod_count
        return Extent(
            2 * half * pods + half**2, 2 * half**2 * pods * self.parallel_links, half * pods * self.edge_hosts
        )


@dataclass(frozen=True, slots=True)
class DragonflyPlus:
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

    @property
    def group_count(self) -> int:
        """Groups there are."""
        return self.max_groups if self.groups is None else self.groups

    @property
    def links_between_groups(self) -> int:
        """Links of every two groups."""
        return (self.max_groups - 1) // (self.group_count - 1)

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        groups = self.group_count
        between = groups * (groups - 1) // 2 * self.links_between_groups
        links = (groups * self.leaves * self.spines + between) * self.parallel_links
        return Extent(groups * (self.leaves + self.spines), links, groups * self.leaves * self.hosts_per_leaf)


def check_fat_tree_pods(spec: FatTreePods) -> list[Problem]:
    """Name an odd number of ports, and more pods than ports."""
    found = []
    if spec.ports % 2:
        found.append(
            Problem("ports", f"should be even, such as {spec.ports + 1}: half of them lead up; not {spec.ports}")
        )
    if spec.pod_count > spec.ports:
        found.append(Problem("pods", f"should be {spec.ports} or less, as a core has {spec.ports} ports"))
    return found


def check_dragonfly_plus(spec: DragonflyPlus) -> list[Problem]:
    """Name more groups than each can be linked to."""
    if spec.group_count <= spec.max_groups:
        return []
    most = f"{spec.max_groups} or less, as a group has {spec.spines} × {spec.global_links} global links"
    return [Problem("groups", f"should be {most}, not {spec.groups}")]


def fat_tree_pods(spec: FatTreePods) -> Topology:
    """Build all edge switches, all aggregation switches, then the cores; aggregation a is linked to cores a·k/2 + …."""
    half, pods = spec.half, spec.pod_count
    edges = half * pods
    pairs = []
    for pod in range(pods):
        for aggregation in range(half):
            at = edges + pod * half + aggregation
            pairs += [(pod * half + edge, at) for edge in range(half)]
            pairs += [(at, 2 * edges + aggregation * half + core) for core in range(half)]
    rows = [list(range(edges)), list(range(edges, 2 * edges)), list(range(2 * edges, 2 * edges + half**2))]
    levels = [level for level, row in enumerate(rows) for _ in row]
    hosts_on = [spec.edge_hosts if level == 0 else 0 for level in levels]
    return make_topology(
        "fat_tree_pods", pairs, hosts_on, in_rows(rows), parallel_links=spec.parallel_links, levels=levels
    )


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
