"""When hosts make packets, where they send them, and along which virtual channels.

Each host draws from a stream of random numbers of its own, a packet's gap and then its destination, so what it
asks for is the same whatever the fabric does with it.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from testbed.base.jit import jit, jit_inner
from testbed.base.model import Ints
from testbed.dataplane.kernels.flits_state import UNIFORM, FlitFabric, Randoms

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


class InFlight(Protocol):
    """Packets in the network, as of State."""

    @property
    def step(self) -> Ints:
        """(Q,) hops a packet has asked for."""

    @property
    def hops(self) -> Ints:
        """(Q,) hops of its path."""

    @property
    def way(self) -> Ints:
        """(Q, longest path) its path."""

    @property
    def goal(self) -> Ints:
        """(Q,) the host it goes to."""


@jit_inner
def mix_bits(bits: np.uint64) -> np.uint64:
    """64 bits of which each depends on all that are given (the finalizer of SplitMix64)."""
    bits = (bits ^ (bits >> _30)) * _FIRST
    bits = (bits ^ (bits >> _27)) * _SECOND
    return bits ^ (bits >> _31)


@jit
def draw(random: Randoms, host: int) -> np.uint64:
    """The next 64 random bits of a host (SplitMix64; Steele, Lea, Flood 2014)."""
    random[host] += _STEP
    return mix_bits(random[host])


@jit
def gap(random: Randoms, host: int, chance: float) -> int:
    """Clocks to the next packet, 1 or more, if each clock has a chance to make one (Bernoulli process)."""
    share = np.float64(draw(random, host) >> _11) * 2.0**-53
    if chance >= 1.0:
        return 1
    return 1 + int(math.log1p(-share) / math.log1p(-chance))


@jit
def destination(fabric: FlitFabric, random: Randoms, host: int) -> int:
    """Where a host's next packet goes."""
    if fabric.target[host] != UNIFORM:
        return int(fabric.target[host])
    other = int(np.int64(draw(random, host) % np.uint64(fabric.hosts - 1)))
    return other + 1 if other >= host else other


@jit_inner
def lay_path(fabric: FlitFabric, state: InFlight, packet: int, source: int, goal: int) -> None:
    """Write the virtual channels of a packet's path into `way`."""
    state.goal[packet] = goal
    state.step[packet] = 0
    if len(fabric.start):
        pair = fabric.key[source] * fabric.ends + fabric.key[goal]
        first = fabric.start[pair]
        count = fabric.start[pair + 1] - first
        for index in range(count):
            state.way[packet, index] = fabric.hop[first + index]
        state.hops[packet] = count
        return
    tree = fabric.tree[fabric.key[source] if fabric.from_source else fabric.key[goal]]
    at = fabric.switch[goal] if fabric.from_source else fabric.switch[source]
    root = fabric.root[fabric.key[source] if fabric.from_source else fabric.key[goal]]
    count = 0
    while at != root:
        state.way[packet, count] = tree[at]
        at = fabric.nearer[tree[at]]
        count += 1
    if fabric.from_source:
        for index in range(count // 2):
            other = count - 1 - index
            state.way[packet, index], state.way[packet, other] = state.way[packet, other], state.way[packet, index]
    state.hops[packet] = count
