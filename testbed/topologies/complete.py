"""Completely connected switches (Watanabe et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

from annotated_types import Ge

from testbed.model import Topology
from testbed.topologies.build import Extent, make_topology, on_circle


@dataclass(frozen=True, slots=True)
class Complete:
    """A link between every two switches."""

    switches: Annotated[int, Ge(2)]
    hosts_per_switch: Annotated[int, Ge(0)] = 1
    parallel_links: Annotated[int, Ge(1)] = 1

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        pairs = self.switches * (self.switches - 1) // 2
        return Extent(self.switches, pairs * self.parallel_links, self.switches * self.hosts_per_switch)


def complete(spec: Complete) -> Topology:
    """Build all pairs."""
    return make_topology(
        "complete",
        list(combinations(range(spec.switches), 2)),
        [spec.hosts_per_switch] * spec.switches,
        on_circle(spec.switches),
        parallel_links=spec.parallel_links,
    )
