"""Xpander: a lift of a complete graph, nearly the best expander (Valadarsky et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np
from annotated_types import Ge

from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, find_disconnected_pair, make_topology, on_nested_circles


@dataclass(frozen=True, slots=True)
class Xpander:
    """degree + 1 meta-nodes of `lift` switches; every two meta-nodes are joined by a random matching of theirs."""

    degree: Annotated[int, Ge(2)]  # links of each switch
    lift: Annotated[int, Ge(1)]  # switches of a meta-node
    seed: Annotated[int, Ge(0)] = 1  # of the matchings
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        switches = (self.degree + 1) * self.lift
        return Extent(switches, switches * self.degree // 2 * self.parallel_links, switches * self.hosts_per_switch)


def xpander(spec: Xpander) -> Topology:
    """Draw the matchings until all switches are connected; switch = lift · meta-node + number."""
    bits = np.random.PCG64(spec.seed)  # only raw bits are the same in all versions of numpy
    switches = (spec.degree + 1) * spec.lift
    while True:
        pairs = []
        for one, other in combinations(range(spec.degree + 1), 2):
            partner = np.argsort(bits.random_raw(spec.lift), kind="stable").tolist()
            pairs += [(one * spec.lift + place, other * spec.lift + partner[place]) for place in range(spec.lift)]
        if find_disconnected_pair(switches, np.array(pairs, dtype=np.int32)) is None:
            break
    return make_topology(
        "xpander",
        pairs,
        [spec.hosts_per_switch] * switches,
        on_nested_circles((spec.lift, spec.degree + 1)),
        parallel_links=spec.parallel_links,
    )
