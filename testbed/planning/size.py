"""What planning a fabric takes in memory and time, foretold before it begins.

Fitted to plans of random and regular fabrics of 64 to 4,096 switches: within a fifth for memory; the time is that of an
idle machine with two cores, compiled code warm, within a factor of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Ints, Topology
from testbed.fabric.routing.turns import breadth_first_levels
from testbed.scenario import Scenario

# Routings that keep a channel for each tree and switch; all others keep the hops of each pair of switches.
BY_TREES = {"dor", "fat_tree", "tree", "direct", "stp", "north_last"}
_BYTES_A_TREE = 28  # and switch
# Of a pair of switches: tables of entries and proofs, each hop, and each virtual channel a switch has.
_BYTES_A_PAIR, _BYTES_A_HOP, _BYTES_A_CHANNEL = 55, 26, 4
# Of a pair where next hops depend on the destination alone, and static entries hold them.
_BYTES_A_NEXT_HOP, _SECONDS_A_NEXT_HOP = 48, 5e-7
_SECONDS_A_TREE = 1.2e-7
_SECONDS_A_PAIR, _SECONDS_A_CHANNEL = 6e-7, 8e-8
_SAMPLES = 8  # switches that hops are counted from
_LARGE, _LONG = 1 << 30, 15.0  # bytes and seconds from which on it is told


@dataclass(frozen=True, slots=True)
class Size:
    """How large a plan is."""

    source: str  # the scenario's file
    switches: int  # S
    pairs: int  # ordered pairs of switches with hosts
    memory: int  # bytes that planning takes, beyond the program itself
    seconds: float  # that it takes on an idle machine

    @property
    def is_large(self) -> bool:
        """Whether its user wants to know."""
        return self.memory > _LARGE or self.seconds > _LONG

    @property
    def sentence(self) -> str:
        """What planning will take."""
        return (
            f"planning {self.switches:,} switches and {self.pairs:,} pairs of them takes some "
            f"{gigabytes(self.memory)} of memory, and {_time(self.seconds)} on an idle machine"
        )


def size_of(scenario: Scenario, topology: Topology) -> Size:
    """How large the plan of a fabric will be."""
    source = scenario.source
    ends = np.unique(topology.host_switch)
    switches, pairs = topology.switch_count, len(ends) ** 2
    options = scenario.routing
    layers = int(getattr(options, "layers", 0) or 1)
    if scenario.routing_kind in BY_TREES and getattr(options, "ring", "") != "datelines":
        return Size(
            source, switches, pairs, _BYTES_A_TREE * len(ends) * switches, _SECONDS_A_TREE * len(ends) * switches
        )
    if not pairs:  # which is refused
        return Size(source, switches, 0, 0, 0.0)
    if getattr(options, "next_hop", "") == "destination" and scenario.assignment_kind == "static":
        return Size(source, switches, pairs, _BYTES_A_NEXT_HOP * pairs, _SECONDS_A_NEXT_HOP * pairs)
    channels = layers * len(topology.channel_source) / max(switches, 1)
    each = _BYTES_A_PAIR + _BYTES_A_HOP * _mean_hops(topology, ends) + _BYTES_A_CHANNEL * channels
    growth = max(1.0, len(ends) / 1024) ** 0.25  # caches get too small
    seconds = pairs * (_SECONDS_A_PAIR + _SECONDS_A_CHANNEL * channels) * growth
    return Size(source, switches, pairs, int(pairs * each), seconds)


def _mean_hops(topology: Topology, ends: Ints) -> float:
    """Mean hops of shortest paths from some switches."""
    roots = ends[np.linspace(0, len(ends) - 1, min(_SAMPLES, len(ends)), dtype=np.int64)]
    return float(np.mean([breadth_first_levels(topology, int(root))[ends].mean() for root in roots]))


def gigabytes(count: int) -> str:
    """A count of bytes as a sentence has it."""
    return f"{count / 1e9:.0f} GB" if count >= 10**10 else f"{count / 1e9:.1f} GB"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
