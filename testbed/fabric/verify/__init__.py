"""Proofs about a plan, before anything is built. Nothing here trusts how the plan was made."""

from __future__ import annotations

import numpy as np

from testbed.base.model import HostTaggedPlan, Ints, LocalPlan, Routes, SwitchModel, Topology, Violation, VlanPlan
from testbed.fabric.verify.deadlock import DEADLOCK, check_routes, find_deadlock
from testbed.fabric.verify.delivery import check_delivery, check_tree_delivery, dependencies, walk
from testbed.fabric.verify.limits import check_limits, check_local_limits, check_model_tables
from testbed.fabric.verify.local_delivery import check_local_delivery
from testbed.fabric.verify.local_vlans import check_arrivals, check_flood, list_malformed
from testbed.fabric.verify.membership import check_entries, check_members, check_tagging, check_trees
from testbed.fabric.verify.next_hop_choices import check_choices, check_chosen
from testbed.fabric.verify.tree_routes import check_tree_routes
from testbed.fabric.vlans.mac_entries import entries_of

__all__ = ["DEADLOCK", "verify"]


def verify(
    topology: Topology, routes: Routes, vlans: VlanPlan | LocalPlan, model: SwitchModel | None
) -> tuple[Violation, ...]:
    """Check every invariant of an assignment; an empty tuple means that all hold."""
    found = check_routes(topology, routes)
    if isinstance(vlans, LocalPlan):
        more, taken = _local(topology, routes, vlans, model)
    else:
        more, taken = _check_vlans(topology, routes, vlans, model)
    found += more
    if routes.choices is not None:
        # The drawn paths are among the choices, so a cycle of theirs is one of these.
        found = [violation for violation in found if violation.invariant != DEADLOCK]
        found += check_choices(topology, routes.choices).violations
        found += check_chosen(topology, routes, routes.choices)
    if not any(violation.invariant == DEADLOCK for violation in found):
        found += find_deadlock(topology, taken, routes.layers)
    return tuple(found)


def _check_vlans(
    topology: Topology, routes: Routes, vlans: VlanPlan, model: SwitchModel | None
) -> tuple[list[Violation], Ints]:
    """What is wrong with VLANs of the whole fabric, and (D, 2) the dependencies of channels they make."""
    found = [
        *check_limits(topology, vlans, model),
        *check_members(topology, vlans),
        *check_tagging(topology, vlans),
        *check_trees(topology, vlans),
    ]
    if vlans.entries is None and not isinstance(vlans, HostTaggedPlan):
        delivery, taken = check_tree_delivery(topology, routes, vlans)
    else:
        entries = entries_of(topology, vlans)
        found += check_entries(topology, vlans, entries)
        steps = walk(topology, vlans, entries)
        delivery, taken = check_delivery(topology, routes, steps), dependencies(topology, steps)
    return found + delivery, taken


def _local(
    topology: Topology, routes: Routes, plan: LocalPlan, model: SwitchModel | None
) -> tuple[list[Violation], Ints]:
    """Likewise for what means something inside one switch only."""
    if plan.kind == "model":  # there is nothing but the routes, of which check_routes() follows the paths
        found = check_model_tables(plan, model)
        if routes.paths is None:
            found += check_tree_routes(topology, routes)
        return found, np.zeros((0, 2), dtype=np.int32)
    found = list_malformed(topology, plan, routes.layers)
    if found:
        return found, np.zeros((0, 2), dtype=np.int32)
    arrivals, working = check_arrivals(topology, plan)
    delivery, taken = check_local_delivery(topology, routes, plan, working)
    return [*check_local_limits(topology, plan, model), *arrivals, *check_flood(topology, plan), *delivery], taken
