"""Rates of a plan's links, the shares of them that flows take, and a plan at another dilation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from testbed.model import Floats
from testbed.plan import Plan
from testbed.predict import Transport, Ways, Wires, fair_goodput, routed_ways


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


def wires_of(plan: Plan, wire: Transport) -> Wires:
    """The wires of a plan for frames of one kind, each bundle of links taken for one; real-world rates."""
    return Wires(plan.topology, wire, channel_rates(plan), plan.scenario.links.edge_rate, plan.vlans.tagged_trunks)


def member_wires(plan: Plan, wire: Transport) -> Wires:
    """As wires_of(), each member of a bundle by itself."""
    return Wires(plan.wiring, wire, wire_rates(plan), plan.scenario.links.edge_rate, plan.vlans.tagged_trunks)


def logical_ways(plan: Plan, pairs: Sequence[tuple[int, int]]) -> Ways:
    """Logical channels of each flow and of its acknowledgements."""
    return routed_ways(plan.topology, plan.routes, pairs)


def fair_rates(plan: Plan, pairs: Sequence[tuple[int, int]], wire: Transport) -> Floats:
    """(F,) max-min fair goodput of flows between hosts, bit/s (real world)."""
    return fair_goodput(wires_of(plan, wire), pairs, logical_ways(plan, pairs))


def imbalance(use: Sequence[float]) -> float | None:
    """Maximum over mean utilisation of link directions; None where nothing was used.

    1 = all alike; with C directions at most C.
    """
    total = sum(use)
    return max(use) * len(use) / total if total > 0 else None


def at_dilation(plan: Plan, dilation: float, **settings: Any) -> Plan:
    """Return the plan with another dilation, and other keys of its `lab` block, whatever its scenario says."""
    lab = replace(plan.scenario.lab, dilation=dilation, **settings)
    return replace(plan, scenario=replace(plan.scenario, lab=lab))
