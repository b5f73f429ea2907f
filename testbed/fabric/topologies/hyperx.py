"""HyperX, a grid whose rows are completely connected (Ahn et al. 2009, section 3); completely connected switches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np
from annotated_types import Ge

from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, make_topology, on_circle, on_nested_circles
from testbed.fabric.topologies.grid import Sizes


@dataclass(frozen=True, slots=True)
class HyperX:
    """`sizes` are the S of the paper, `parallel_links` its K, the same in all dimensions.

    Switches are numbered as in a mesh. A dimension of size 2 has one link, as there.
    """

    sizes: Sizes  # switches along each dimension
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        count = math.prod(self.sizes)
        links = sum(count * (size - 1) // 2 for size in self.sizes) * self.parallel_links
        return Extent(count, links, count * self.hosts_per_switch)


def hyperx(spec: HyperX) -> Topology:
    """Build each row of each dimension; the topology has no sizes, as it is no grid of neighbours."""
    count = math.prod(spec.sizes)
    number = np.arange(count).reshape(spec.sizes[::-1])
    pairs: list[tuple[int, int]] = []
    for dimension, size in enumerate(spec.sizes):
        rows = np.moveaxis(number, len(spec.sizes) - 1 - dimension, -1).reshape(-1, size)
        pairs += [pair for row in rows.tolist() for pair in combinations(row, 2)]
    return make_topology(
        "hyperx",
        sorted(pairs),
        [spec.hosts_per_switch] * count,
        on_nested_circles(spec.sizes),
        parallel_links=spec.parallel_links,
    )


@dataclass(frozen=True, slots=True)
class Complete:
    """A link between every two switches (Watanabe et al. 2009): a HyperX of one dimension, drawn as a circle."""

    switches: Annotated[int, Ge(2)]  # number of switches
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

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
