"""Rates of a plan's links."""

from __future__ import annotations

import numpy as np

from testbed.model import Floats
from testbed.plan import Plan


def channel_rates(plan: Plan) -> float | Floats:
    """Real-world bit/s of a link between switches, or (C,) of each channel where they are not all alike."""
    rate = plan.scenario.links.rate
    if plan.bundles is None:
        return wire_rates(plan)
    sizes = plan.bundles.sizes
    if plan.speeds is None:
        return np.repeat(rate * sizes, 2).astype(np.float64)
    first = np.cumsum(sizes) - sizes
    return np.repeat(rate * np.add.reduceat(plan.speeds, first), 2)


def wire_rates(plan: Plan) -> float | Floats:
    """Real-world bit/s of a physical link between switches, or (physical C,) of each channel where speeds differ."""
    rate = plan.scenario.links.rate
    return rate if plan.speeds is None else rate * np.repeat(plan.speeds, 2)
