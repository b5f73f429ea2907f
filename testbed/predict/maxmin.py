"""Max-min fair goodput of flows that share channels: progressive filling (Bertsekas and Gallager, 6.5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.model import Floats
from testbed.predict.wires import Ways, Wires

_SATURATED = 1e-9


def fair_goodput(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways) -> Floats:
    """Goodput of each flow when all run at once and share every wire max-min fairly.

    Returns:
        (F,) goodput in bit/s. Acknowledgements take their share of the reverse path.
    """
    forward, backward = wires.costs(flows, ways)
    return _fill(forward + backward, wires.rates)


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
