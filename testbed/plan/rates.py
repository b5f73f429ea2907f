"""Rates of a plan's links."""

from __future__ import annotations

import numpy as np

from testbed.model import Floats
from testbed.plan import Plan


def channel_rates(plan: Plan) -> float | Floats:
    """Real-world bit/s of a link between switches, or (C,) of each channel where links are aggregated."""
    rate = plan.scenario.links.rate
    return rate if plan.bundles is None else np.repeat(rate * plan.bundles.sizes, 2).astype(np.float64)
