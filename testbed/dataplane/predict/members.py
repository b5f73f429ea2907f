"""Max-min fair goodput; over aggregated links a hash decides which member a flow takes, and so what the flow gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bundles, Floats, Longs
from testbed.dataplane.predict.shared_links import Ways, Wires

_DRAWS = 100
_INTERVAL = (5, 95)  # percentiles


@dataclass(frozen=True, slots=True)
class Spread:
    """What a hash can be expected to make of a load."""

    # mean goodput of the flows, as a share of what they would get if each bundle were one link of the rate of all its
    # members; mean over draws
    mean: float
    low: float  # its 5th percentile
    high: float  # its 95th percentile


def on_members(bundles: Bundles, ways: Ways, number: Longs) -> Ways:
    """Physical channels of flows over logical ones.

    `number` (F, 2, largest bundle + 1) is the member that a flow takes in a bundle of each size, there and back.
    """

    def choose_members(flow: int, back: int, channels: Sequence[int]) -> list[int]:
        taken = []
        for channel in channels:
            members = bundles.channels(channel)
            taken.append(members[int(number[flow, back, len(members)])])
        return taken

    return [(choose_members(flow, 0, there), choose_members(flow, 1, back)) for flow, (there, back) in enumerate(ways)]


def draw_members(flows: int, largest: int, seed: int) -> Longs:
    """Draw what a hash might choose; see on_members().

    As Open vSwitch does it, each member number has a score for each flow, the same in all bundles, and the highest of
    a bundle wins (rendezvous hashing); so a flow takes one number in all bundles of a size.
    """
    score = np.random.PCG64(seed).random_raw(flows * 2 * largest).reshape(flows, 2, largest)
    number = np.zeros((flows, 2, largest + 1), dtype=np.int64)
    for size in range(1, largest + 1):
        number[:, :, size] = score[:, :, :size].argmax(axis=2)
    return number


def expected_spread(
    bundles: Bundles, wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways, even: Floats, *, seed: int = 1
) -> Spread:
    """Put flows on members at random, many times.

    `even` is the (F,) fair goodput if each bundle were one link of the rate of all its members, in bit/s.
    """
    largest = int(bundles.sizes.max())
    shares = []
    for draw in range(_DRAWS):
        physical = on_members(bundles, ways, draw_members(len(flows), largest, seed + draw))
        found = fair_goodput(wires, flows, physical)
        shares.append(float(found.mean() / even.mean()))
    low, high = np.percentile(shares, _INTERVAL)
    return Spread(float(np.mean(shares)), float(low), float(high))


_SATURATED = 1e-9


def fair_goodput(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways) -> Floats:
    """Goodput of each flow when all run at once and share every wire max-min fairly.

    Returns:
        (F,) goodput in bit/s. Acknowledgements take their share of the reverse path.
    """
    forward, backward = wires.costs(flows, ways)
    return _fill(forward + backward, wires.rates)


def proportional_goodput(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways, amounts: Floats) -> Floats:
    """Goodput of each flow when all run at once at rates in the ratio of some amounts, and fill the fullest wire.

    Args:
        wires: that they share.
        flows: their hosts.
        ways: their channels.
        amounts: (F,) above 0.

    Returns:
        (F,) goodput in bit/s. Acknowledgements take their share of the reverse path.
    """
    load = amounts @ np.add(*wires.costs(flows, ways))
    used = load > 0
    return np.asarray(amounts * (wires.rates[used] / load[used]).min(), dtype=np.float64)


def _fill(cost: Floats, capacity: Floats) -> Floats:
    """Raise all rates together; freeze the flows of each resource as it saturates."""
    rate = np.zeros(len(cost))
    rising = np.ones(len(cost), dtype=bool)
    while rising.any():
        left = capacity - rate @ cost
        demand = cost[rising].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(demand > 0, left / demand, np.inf)
        step = room.min()
        rate[rising] += step
        full = room <= step * (1 + _SATURATED) + _SATURATED
        rising &= ~(cost[:, full] > 0).any(axis=1)
    return rate
