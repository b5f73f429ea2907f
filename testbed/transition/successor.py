"""VLAN identifiers for a plan that follows another: both can be installed at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from testbed.errors import InputError
from testbed.model import Bools, VlanPlan
from testbed.vlans.fixed import LAST_VLAN_ID


def successor(old: VlanPlan, new: VlanPlan, later: VlanPlan | None = None) -> VlanPlan:
    """The new VLANs with identifiers that do not clash with the old ones.

    A VLAN with the links and hosts of an old one is that VLAN, and keeps its identifier: its frames take the same
    ways before and after. All others get the lowest identifiers free, from the lowest old one on; those of a plan that
    is to be installed `later` are not free either.

    Raises:
        InputError: old and new together need more identifiers than 802.1Q has.
    """
    known = {_key(old, vlan): int(old.vlan_ids[vlan]) for vlan in range(old.vlan_count)}
    first = int(min(old.vlan_ids.min(), new.vlan_ids.min()))
    taken = set(old.vlan_ids.tolist())
    if later is not None:
        taken |= set(later.vlan_ids.tolist())
    free = (number for number in range(first, LAST_VLAN_ID + 1) if number not in taken)
    ids = []
    for vlan in range(new.vlan_count):
        identifier = known.pop(_key(new, vlan), None)
        if identifier is None:
            identifier = next(free, None)
        if identifier is None:
            raise InputError.one(
                "assignment.first_vlan",
                f"old and new paths together need more VLANs than there are from {first} to {LAST_VLAN_ID}; "
                "start lower",
            )
        ids.append(identifier)
    return replace(new, vlan_ids=np.array(ids, dtype=np.int32))


def _key(plan: VlanPlan, vlan: int) -> tuple[bytes, bytes]:
    members: Bools = plan.untagged_hosts[vlan]
    return plan.tagged_links[vlan].tobytes(), np.broadcast_to(members, plan.pvid.shape).tobytes()
