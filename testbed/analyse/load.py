"""How a traffic pattern spreads over the channels, and the injection rate at which the bottleneck saturates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.errors import Problem
from testbed.model import Floats, Longs, Routes, Topology
from testbed.routing.paths import channel_load, hops_of_pairs
from testbed.traffic import PatternError, flows

ALL_TO_ALL = "all_to_all"


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """One pattern on one fabric.

    Attributes:
        pattern: its name.
        flows: (C,) flows on each channel, all layers together.
        demand: (C,) what each channel carries, in units of the rate at which every host that sends injects: a host
            divides it equally among its flows, so the sum of 1 / (flows of its source) over the channel's flows. Of a
            bundle, what each member carries if all carry the same.
    """

    pattern: str
    flows: Floats
    demand: Floats

    @property
    def saturation(self) -> float | None:
        """Injection rate at which the bottleneck channel saturates; None where no channel carries anything.

        A share of the rate of a link between switches: 1 / highest demand, for `all_to_all` (H - 1) / most flows on a
        channel. No flow control or queue gets beyond it (Dally and Towles 2004, section 3.3.1). Above 1 the hosts'
        own links, if no faster, are full before.
        """
        highest = float(self.demand.max(initial=0))
        return 1.0 / highest if highest else None

    @property
    def max(self) -> int:
        """Maximum channel load, in flows."""
        return int(self.flows.max(initial=0))

    @property
    def mean(self) -> float:
        """Mean flows on a channel, those without any included."""
        return float(self.flows.mean()) if len(self.flows) else 0.0

    @property
    def idle(self) -> int:
        """Channels without any flow."""
        return int((self.flows == 0).sum())


def pattern_problem(topology: Topology, pattern: str, seed: int) -> Problem | None:
    """What is wrong with a known pattern on this fabric, or None."""
    if pattern == ALL_TO_ALL:
        return None
    if topology.host_count < 2:
        return Problem("--pattern", f'"{pattern}" needs two hosts or more and this topology has one')
    try:
        if flows(pattern, topology, seed):
            return None
    except PatternError as error:
        return Problem("--pattern", str(error))
    return Problem("--pattern", f'"{pattern}" maps each of {topology.host_count} hosts to itself; use another pattern')


def load_of(topology: Topology, routes: Routes, pattern: str, seed: int, members: Longs | None = None) -> Load:
    """Put a pattern on the channels.

    Args:
        topology: the network.
        routes: its paths.
        pattern: name of the pattern.
        seed: of random patterns.
        members: (C,) physical channels behind each, where links are aggregated.

    Raises:
        PatternError: the pattern needs another number of hosts.
        KeyError: no such pattern.
    """
    share_of = 1 if members is None else members
    if pattern == ALL_TO_ALL:  # 17 million flows of 4,096 hosts: counted by trees, not listed
        every = channel_load(topology, routes)
        return Load(pattern, every, every / max(topology.host_count - 1, 1) / share_of)
    pairs = np.array(flows(pattern, topology, seed), dtype=np.int32).reshape(-1, 2)
    flow, channel = hops_of_pairs(topology, routes, pairs[:, 0], pairs[:, 1])
    channels = len(topology.channel_source)
    of_source = np.bincount(pairs[:, 0], minlength=topology.host_count)
    share = 1.0 / of_source[pairs[flow, 0]]
    demand = np.asarray(np.bincount(channel, weights=share, minlength=channels), dtype=np.float64)
    return Load(pattern, np.bincount(channel, minlength=channels).astype(np.float64), demand / share_of)
