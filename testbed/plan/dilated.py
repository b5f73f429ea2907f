"""A plan at a dilation: the fabric is the same, only the lab is slower."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from testbed.plan import Plan


def at_dilation(plan: Plan, dilation: float, **settings: Any) -> Plan:
    """Return the plan with another dilation, and other keys of its `lab` block, whatever its scenario says."""
    lab = replace(plan.scenario.lab, dilation=dilation, **settings)
    return replace(plan, scenario=replace(plan.scenario, lab=lab))
