"""The ways to carry routes by VLANs, as one table that can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.model import Routes, Topology, VlanPlan
from testbed.vlans import fixed


@dataclass(frozen=True, slots=True)
class AssignmentKind:
    """One entry of the table.

    Attributes:
        options: dataclass of its options.
        assign: makes the VLAN plan from topology and routes.
        summary: one line for `testbed list`.
    """

    options: type[Any]
    assign: Callable[[Topology, Routes, Any], VlanPlan]
    summary: str


ASSIGNMENTS: dict[str, AssignmentKind] = {
    "fixed": AssignmentKind(fixed.FixedOptions, fixed.assign_fixed, "one VLAN a distinct source tree, PVID a host"),
}
