"""The ways to carry routes by VLANs, as one table that can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.base.model import LocalPlan, Routes, Topology, VlanPlan
from testbed.fabric.vlans import fixed, host_tagged, openflow, renamed, static_fdb, without_tables


@dataclass(frozen=True, slots=True)
class AssignmentKind:
    """One entry of the table."""

    options: type[Any]  # dataclass of its options
    assign: Callable[[Topology, Routes, Any], VlanPlan | LocalPlan]  # makes the plan of VLANs from topology and routes
    summary: str  # one line for `testbed list`


ASSIGNMENTS: dict[str, AssignmentKind] = {
    "fixed": AssignmentKind(fixed.FixedOptions, fixed.assign_fixed, "one VLAN a distinct source tree, PVID a host"),
    "host_tagged": AssignmentKind(
        host_tagged.HostTaggedOptions,
        host_tagged.assign_host_tagged,
        "hosts tag: an 802.1Q interface a VLAN, chosen by destination",
    ),
    "renamed": AssignmentKind(
        renamed.RenamedOptions, renamed.assign_renamed, "VLANs inside each switch, PVID a port, untagged links"
    ),
    "static": AssignmentKind(static_fdb.StaticOptions, static_fdb.assign_static, "static MAC entries alone, no VLANs"),
    "openflow": AssignmentKind(
        openflow.OpenFlowOptions,
        openflow.assign_openflow,
        "in-port, priority and destination; layers as 802.1Q priorities",
    ),
    "model": AssignmentKind(
        without_tables.ModelOptions, without_tables.assign_model, "no tables: for the simulator and the analysis alone"
    ),
}
