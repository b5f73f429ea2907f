"""PolarFly: Erdős–Rényi polarity graphs, the most switches there are by degree at diameter 2 (Lakhotia et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, make_topology, on_circle
from testbed.fabric.topologies.slim_fly import check_prime_power, field, prime_power


@dataclass(frozen=True, slots=True)
class PolarFly:
    """q² + q + 1 switches, points of a projective plane, linked where their vectors are orthogonal.

    q is a power of a prime. Of the switches q + 1 are orthogonal to themselves and have q links, all others q + 1.
    """

    q: Annotated[int, Ge(2)]  # a power of a prime
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        switches = self.q**2 + self.q + 1
        return Extent(switches, self.q * (self.q + 1) ** 2 // 2 * self.parallel_links, switches * self.hosts_per_switch)


def check_polarfly(spec: PolarFly) -> list[Problem]:
    """Name a q that is not a power of a prime, with the nearest that are."""
    return check_prime_power(spec.q, 2)


def polarfly(spec: PolarFly) -> Topology:
    """Build the graph; switches in the order of their vectors (1, a, b), (0, 1, a), (0, 0, 1)."""
    q = spec.q
    numbers = field(*(prime_power(q) or (q, 1)))
    points = [(1, a, b) for a in range(q) for b in range(q)] + [(0, 1, a) for a in range(q)] + [(0, 0, 1)]
    vectors = np.array(points)
    pairs = []
    for place, point in enumerate(points):
        products = [numbers.times[part, vectors[:, axis]] for axis, part in enumerate(point)]
        dot = numbers.add[numbers.add[products[0], products[1]], products[2]]
        pairs += [(place, int(other)) for other in np.flatnonzero(dot == 0) if other > place]
    count = len(points)
    return make_topology(
        "polarfly", pairs, [spec.hosts_per_switch] * count, on_circle(count), parallel_links=spec.parallel_links
    )
