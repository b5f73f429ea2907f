"""Goodput of TCP Reno's flows that share channels, in equilibrium.

A flow that loses a share p of its segments and hears of it after the round-trip time T sends c / (T sqrt(p)) (Mathis et
al., The macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27(3), 1997). Losses of the channels on a
path add up, and each full channel delays by a full queue what passes it, acknowledgements too. So a flow over two full
channels gets 2 ^ -1.5 of one over one of them, where max-min fairness has them alike. The losses are the prices at
which no channel is overfull (Low and Lapsley, Optimization flow control, IEEE/ACM ToN 7(6), 1999).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.base.model import Floats
from testbed.dataplane.predict.shared_links import Ways, Wires

_FULL = 0.01  # a channel that lacks no more, as by a tag or an acknowledgement, has a queue
_ROUNDS, _STEPS = 20, 20_000
_CHANGE = 1e-9  # of a price in a step, relative, at which it has settled
_MIN_PRICE = 1e-15


def reno_goodput(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways) -> Floats:
    """Goodput of each TCP flow when all run at once, for long; queues hold the same number of frames everywhere.

    Arguments and result as for fair_goodput().
    """
    forward, backward = wires.costs(flows, ways)
    capacity = wires.rates
    unit = float(capacity.max())
    needs = np.concatenate([forward, backward]) * (unit / capacity)
    # Of channels that the same flows take in the same way only one has a queue; those that no flow takes are left out.
    needs, chosen = np.unique(needs, axis=1, return_index=True)
    used = needs.any(axis=0)
    needs, delay = needs[:, used], (unit / capacity)[chosen][used]
    data, whole = needs[: len(flows)] > 0, needs[: len(flows)] + needs[len(flows) :]
    passes = (whole > 0).astype(np.float64)
    round_trip = np.ones(len(flows))
    for _ in range(_ROUNDS):
        rate = _equilibrium(whole, data.astype(np.float64), round_trip)
        full = rate @ whole > 1 - _FULL
        before, round_trip = round_trip, passes @ (delay * full)
        if np.array_equal(before, round_trip):
            break
    return np.asarray(rate * unit / max(1.0, float((rate @ whole).max(initial=0.0))), dtype=np.float64)


def _equilibrium(cost: Floats, losing: Floats, round_trip: Floats) -> Floats:
    """(F,) rates at which the prices that flows meet fill channels and overfill none.

    `cost` (F, R) is the share of a channel for a unit of a flow's rate, `losing` (F, R) 1 where a flow can lose
    segments.
    """
    price = np.ones(cost.shape[1])
    for _ in range(_STEPS):
        rate = 1 / (round_trip * np.sqrt(np.maximum(losing @ price, _MIN_PRICE)))
        before, price = price, np.maximum(price * np.clip(rate @ cost, 0.5, 2.0), _MIN_PRICE)
        if np.abs(price - before).max() <= _CHANGE * price.max():
            break
    return np.asarray(rate, dtype=np.float64)
