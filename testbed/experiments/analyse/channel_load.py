"""Lengths of paths; how traffic spreads over the channels, and the injection rate at which the bottleneck saturates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.errors import Problem, argument
from testbed.base.model import Floats, Ints, Longs, NextHops, Routes, Topology
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.next_hop_sets import expected_load
from testbed.fabric.routing.paths import (
    channel_load,
    destination_keys,
    hop_counts,
    hops_of_pairs,
    key_switches,
    source_keys,
)
from testbed.fabric.traffic import PatternError, flows
from testbed.fabric.verify.next_hop_choices import check_choices

ALL_TO_ALL = "all_to_all"


@dataclass(frozen=True, slots=True, eq=False)
class ChannelLoad:
    """One pattern on one fabric."""

    pattern: str  # its name
    flows: Floats  # (C,) flows on each channel, all layers together
    # (C,) what each channel carries, in units of the rate at which every host that sends injects: a host divides it
    # equally among its flows, so the sum of 1 / (flows of its source) over the channel's flows. Of a bundle, what each
    # member carries if all carry the same.
    demand: Floats
    sent: Floats  # (H,) what each host's link takes from it, in the same unit: 1 of hosts that send
    received: Floats  # (H,) what each host's link brings to it, likewise
    host_link: float  # rate of a host's link, as a share of that of a link between switches
    expected: bool = False  # whether loads are means over all choices of next hops, and so no whole numbers

    @property
    def saturation(self) -> float | None:
        """Injection rate at which the bottleneck link saturates, one of a host's included; None where nobody sends.

        A share of the rate of a link between switches: 1 / highest demand, for `all_to_all` (H - 1) / most flows on a
        channel, and never more than a host's link takes and brings: where all send to one, the rate of that host's
        link is shared by H - 1. No flow control or queue gets beyond it (Dally and Towles 2004, section 3.3.1).
        """
        highest = max(self._demands)
        return 1.0 / highest if highest else None

    def bottleneck(self, topology: Topology) -> str:
        """The link that saturates first, in words; of several the first, and one between switches before a host's."""
        channel, sender, receiver = self._demands
        if channel >= max(sender, receiver):
            return topology.channel_name(int(self.demand.argmax())) if channel else "no link"
        if receiver >= sender:
            return f"the link to {topology.host_name(int(self.received.argmax()))}"
        return f"the link from {topology.host_name(int(self.sent.argmax()))}"

    @property
    def _demands(self) -> tuple[float, float, float]:
        """Of the fullest link between switches, from a host, and to one, as shares of what it carries."""
        sender, receiver = (float(some.max(initial=0)) / self.host_link for some in (self.sent, self.received))
        return float(self.demand.max(initial=0)), sender, receiver

    @property
    def max(self) -> float:
        """Maximum channel load, in flows: a whole number but for expected loads."""
        highest = float(self.flows.max(initial=0))
        return round(highest, 6) if self.expected else int(highest)

    @property
    def mean(self) -> float:
        """Mean flows on a channel, those without any included."""
        return float(self.flows.mean()) if len(self.flows) else 0.0

    @property
    def idle_channels(self) -> int:
        """Channels without any flow."""
        return int((self.flows == 0).sum())


def pattern_problem(topology: Topology, pattern: str, seed: int) -> Problem | None:
    """What is wrong with a known pattern on this fabric, or None."""
    if pattern == ALL_TO_ALL:
        return None
    if topology.host_count < 2:
        return Problem(argument("pattern"), f'"{pattern}" needs two hosts or more and this topology has one')
    try:
        if flows(pattern, topology, seed):
            return None
    except PatternError as error:
        return Problem(argument("pattern"), str(error))
    sentence = f'"{pattern}" maps each of {topology.host_count} hosts to itself; use another pattern'
    return Problem(argument("pattern"), sentence)


def load_of(
    topology: Topology,
    routes: Routes,
    pattern: str,
    seed: int,
    members: Longs | None = None,
    *,
    host_link: float = 1.0,
    expected: bool = False,
) -> ChannelLoad:
    """Put a pattern on the channels and on the hosts' links.

    `members` are the (C,) physical channels behind each, where links are aggregated; `host_link` as in Load.
    With `expected`, of routes with choices, it is the mean over all of them, else what the paths that were drawn carry.

    Raises:
        PatternError: the pattern needs another number of hosts.
        KeyError: no such pattern.
    """
    share_of, hosts = 1 if members is None else members, topology.host_count
    if expected and routes.choices is not None and _loops_nowhere(topology, routes):
        return _expected_load_of(topology, routes.choices, pattern, seed, share_of, host_link)
    if pattern == ALL_TO_ALL:  # 17 million flows of 4,096 hosts: counted by trees, not listed
        every = channel_load(topology, routes)
        each = np.full(hosts, float(hosts > 1))
        return ChannelLoad(pattern, every, every / max(hosts - 1, 1) / share_of, each, each, host_link)
    pairs = np.array(flows(pattern, topology, seed), dtype=np.int32).reshape(-1, 2)
    flow, channel = hops_of_pairs(topology, routes, pairs[:, 0], pairs[:, 1])
    channels = len(topology.channel_source)
    of_source = np.bincount(pairs[:, 0], minlength=hosts)
    share = 1.0 / of_source[pairs[:, 0]]
    demand = np.asarray(np.bincount(channel, weights=share[flow], minlength=channels), dtype=np.float64)
    received = np.asarray(np.bincount(pairs[:, 1], weights=share, minlength=hosts), dtype=np.float64)
    counted = np.bincount(channel, minlength=channels).astype(np.float64)
    return ChannelLoad(pattern, counted, demand / share_of, (of_source > 0).astype(np.float64), received, host_link)


def _loops_nowhere(topology: Topology, routes: Routes) -> bool:
    """Whether all choices come nearer to the destination, or at least never back: else no load can be told."""
    assert routes.choices is not None
    return not check_choices(topology, routes.choices).looping


def _expected_load_of(
    topology: Topology, hops: NextHops, pattern: str, seed: int, share_of: Longs | int, host_link: float
) -> ChannelLoad:
    """Likewise of sets of next hops: what is to be expected over all choices."""
    hosts, end = topology.host_count, np.searchsorted(hops.goal, topology.host_switch)
    shape = (len(hops.goal), len(hops.goal))
    if pattern == ALL_TO_ALL:
        on = np.bincount(end, minlength=len(hops.goal)).astype(np.float64)
        count: Floats = np.asarray(np.outer(on, on), dtype=np.float64)
        share: Floats = np.asarray(count / max(hosts - 1, 1), dtype=np.float64)
        sent: Floats = np.full(hosts, float(hosts > 1))
        received: Floats = sent
    else:
        pairs = np.array(flows(pattern, topology, seed), dtype=np.int32).reshape(-1, 2)
        of_source = np.bincount(pairs[:, 0], minlength=hosts)
        each = 1.0 / of_source[pairs[:, 0]]
        place = (end[pairs[:, 0]], end[pairs[:, 1]])
        count, share = np.zeros(shape), np.zeros(shape)
        np.add.at(count, place, 1.0)
        np.add.at(share, place, each)
        sent = (of_source > 0).astype(np.float64)
        received = np.bincount(pairs[:, 1], weights=each, minlength=hosts).astype(np.float64)
    flowing, demand = (expected_load(topology, hops, some) for some in (count, share))
    return ChannelLoad(pattern, flowing, demand / share_of, sent, received, host_link, expected=True)


@dataclass(frozen=True, slots=True)
class Hops:
    """Figures of all paths. A hop is a link between switches."""

    # over ordered pairs of different hosts, 0 for two hosts of one switch (Koibuchi et al. 2003, section 5).
    mean: float
    longest: int  # most hops
    # mean switches on a path over all H² ordered pairs of hosts, 1 for a host with itself and for two hosts of one
    # switch (Koibuchi et al. 2011, Table 11).
    mean_switches: float
    max_switches: int  # maximum of switches on a path
    mean_shortest: float  # as `mean`, if every pair went by the fewest links there are
    diameter: int  # fewest hops between the two switches with hosts that are farthest apart
    longer_pairs: int  # ordered pairs of hosts whose path has more hops than the shortest
    pairs: int  # ordered pairs of different hosts
    distribution: tuple[int, ...]  # number of those pairs whose path has 0, 1, 2, … hops


def shortest_hops(topology: Topology, roots: Ints) -> Ints:
    """(R, S) fewest hops between each root and each switch; -1 where no links lead."""
    from testbed.fabric.kernels import sssp

    start, leaving = leaving_channels(topology)
    return sssp.from_switches(roots, start, leaving, topology.channel_target)


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
