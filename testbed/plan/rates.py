"""Rates of a plan's links, the shares of them that flows take, and a plan at another dilation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from testbed.model import Floats
from testbed.plan import Plan
from testbed.predict.frames import Transport
from testbed.predict.maxmin import Ways
from testbed.routing.paths import path


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


def logical_ways(plan: Plan, pairs: Sequence[tuple[int, int]]) -> Ways:
    """Logical channels of each flow and of its acknowledgements."""
    return [
        (path(plan.topology, plan.routes, source, end), path(plan.topology, plan.routes, end, source))
        for source, end in pairs
    ]


def shares_by_members(plan: Plan, ways: Ways, goodput: Floats, wire: Transport) -> Floats:
    """(physical C,) predicted share of each member's rate, acknowledgements included."""
    tagged, share = plan.vlans.tagged_trunks, np.zeros(len(plan.wiring.channel_source))
    for (there, back), rate in zip(ways, goodput, strict=True):
        share[list(there)] += rate * wire.cost(tagged=tagged)
        share[list(back)] += rate * wire.reverse_cost(tagged=tagged)
    return np.asarray(share / wire_rates(plan), dtype=np.float64)


def imbalance(use: Sequence[float]) -> float | None:
    """Use of the fullest link direction over that of the average one; None where nothing was used.

    1 = all alike; with C directions at most C.
    """
    total = sum(use)
    return max(use) * len(use) / total if total > 0 else None


def at_dilation(plan: Plan, dilation: float, **settings: Any) -> Plan:
    """Return the plan with another dilation, and other keys of its `lab` block, whatever its scenario says."""
    lab = replace(plan.scenario.lab, dilation=dilation, **settings)
    return replace(plan, scenario=replace(plan.scenario, lab=lab))
