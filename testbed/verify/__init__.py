"""Proofs about a plan, before anything is built. Nothing here trusts how the plan was made."""

from __future__ import annotations

from testbed.model import Routes, SwitchModel, Topology, Violation, VlanPlan
from testbed.verify.deadlock import DEADLOCK, find_deadlock
from testbed.verify.delivery import check_delivery, walk
from testbed.verify.limits import check_limits
from testbed.verify.membership import check_entries, check_members, check_trees

__all__ = ["DEADLOCK", "verify"]


def verify(topology: Topology, routes: Routes, vlans: VlanPlan, model: SwitchModel | None) -> tuple[Violation, ...]:
    """Check every invariant of a fixed assignment; an empty tuple means that all hold.

    Args:
        topology: the network.
        routes: the paths that were asked for.
        vlans: the 802.1Q configuration that claims to carry them out.
        model: limits to respect, or None.
    """
    found = [
        *check_limits(topology, vlans, model),
        *check_members(topology, vlans),
        *check_trees(topology, vlans),
        *check_entries(topology, vlans),
    ]
    steps = walk(topology, vlans)
    found += check_delivery(topology, routes, steps)
    found += find_deadlock(topology, steps)
    return tuple(found)
