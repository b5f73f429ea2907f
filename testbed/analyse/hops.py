"""How long the paths are, in both of the papers' ways to count, beside the shortest there could be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.model import Ints, Routes, Topology
from testbed.routing.common import leaving_channels
from testbed.routing.paths import destination_keys, hop_counts, key_switches, source_keys


@dataclass(frozen=True, slots=True)
class Hops:
    """Figures of all paths. A hop is a link between switches.

    Attributes:
        mean: over ordered pairs of different hosts, 0 for two hosts of one switch (Koibuchi et al. 2003, section 5).
        longest: most hops.
        mean_switches: mean switches on a path over all H² ordered pairs of hosts, 1 for a host with itself and for two
            hosts of one switch (Koibuchi et al. 2011, Table 11).
        max_switches: maximum of switches on a path.
        mean_shortest: as `mean`, if every pair went by the fewest links there are.
        diameter: fewest hops between the two switches with hosts that are farthest apart.
        longer_pairs: ordered pairs of hosts whose path has more hops than the shortest.
        pairs: ordered pairs of different hosts.
        distribution: number of those pairs whose path has 0, 1, 2, … hops.
    """

    mean: float
    longest: int
    mean_switches: float
    max_switches: int
    mean_shortest: float
    diameter: int
    longer_pairs: int
    pairs: int
    distribution: tuple[int, ...]


def shortest_hops(topology: Topology, roots: Ints) -> Ints:
    """(R, S) fewest hops between each root and each switch; -1 where no links lead."""
    from testbed.kernels import distances

    start, leaving = leaving_channels(topology)
    return distances.from_switches(roots, start, leaving, topology.channel_target)


def hops_of(topology: Topology, routes: Routes) -> Hops:
    """Count the hops of all paths. A pair that has no path counts nowhere; verification names it."""
    taken = hop_counts(topology, routes)
    shortest = shortest_hops(topology, routes.ends)[:, routes.ends]
    source_switch, end_switch = key_switches(routes)
    senders = np.bincount(source_keys(topology, routes), minlength=len(source_switch))
    receivers = np.bincount(destination_keys(topology, routes), minlength=len(end_switch))
    source_end, end_end = np.searchsorted(routes.ends, source_switch), np.searchsorted(routes.ends, end_switch)
    distribution = np.zeros(max(int(taken.max(initial=0)), 0) + 1)
    least_total, longer = 0, 0
    for key in np.flatnonzero(senders).tolist():  # a row at a time: a matrix of pairs is large
        row = taken[key]
        there = row >= 0
        weight = np.where(there, receivers, 0) * int(senders[key])
        distribution += np.bincount(np.maximum(row, 0), weights=weight, minlength=len(distribution))
        least = shortest[source_end[key], end_end]
        least_total += int(weight @ least.astype(np.int64))
        longer += int(weight[row > least].sum())
    every = np.arange(len(distribution))
    hosts, total = int(distribution.sum()), float(distribution @ every)
    pairs = hosts - topology.host_count
    distribution[0] -= topology.host_count  # hosts with themselves
    longest = int(np.flatnonzero(distribution > 0).max(initial=0))
    return Hops(
        mean=total / pairs if pairs else 0.0,
        longest=longest,
        mean_switches=1.0 + total / hosts,
        max_switches=1 + longest,
        mean_shortest=least_total / pairs if pairs else 0.0,
        diameter=int(shortest.max(initial=0)),
        longer_pairs=longer,
        pairs=pairs,
        distribution=tuple(int(count) for count in distribution[: longest + 1]),
    )
