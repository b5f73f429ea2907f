"""From one plan to the next on switches that are in use: make before break (Koibuchi et al. 2011, section 3.6)."""

from __future__ import annotations

from testbed.base.errors import InputError
from testbed.base.model import HostTaggedPlan, LocalPlan, Routes, Topology, VlanPlan
from testbed.fabric.transition.check import transition_deadlock, transition_problems
from testbed.fabric.transition.local_transition import local_successor, make_local_transition
from testbed.fabric.transition.member_steps import make_member_transition, member_transition_problems
from testbed.fabric.transition.steps import Step, Transition, make_transition, successor

__all__ = [
    "Step",
    "Transition",
    "local_successor",
    "make_local_transition",
    "make_member_transition",
    "make_transition",
    "member_transition_problems",
    "successor",
    "transition_between",
    "transition_deadlock",
    "transition_problems",
]


def transition_between(
    topology: Topology,
    old: tuple[Routes, VlanPlan | LocalPlan],
    new: tuple[Routes, VlanPlan | LocalPlan],
    *,
    on: tuple[int, ...] = (),
    off: tuple[int, ...] = (),
) -> Transition:
    """Work out the steps from one plan to another of its kind, whichever that is; see make_transition().

    Raises:
        InputError: there is no way without loss between VLANs of these kinds, or from one of these plans to the other.
    """
    (_, before), (_, after) = old, new
    hosts_tag = isinstance(before, HostTaggedPlan) or isinstance(after, HostTaggedPlan)
    if isinstance(before, VlanPlan) and isinstance(after, VlanPlan) and not hosts_tag:
        return make_transition(topology, before, after, on=on, off=off)
    if isinstance(before, LocalPlan) and isinstance(after, LocalPlan) and before.kind == after.kind == "renamed":
        return make_local_transition(topology, (old[0], before), (new[0], after), on=on, off=off)
    sentence = "a change of plans without loss needs the assignment fixed or renamed, the same before and afterwards"
    raise InputError.one("assignment.kind", sentence)
