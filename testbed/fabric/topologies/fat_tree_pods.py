"""Fat tree by pods of switches with as many ports each (Al-Fares et al. 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, in_rows, make_topology


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
