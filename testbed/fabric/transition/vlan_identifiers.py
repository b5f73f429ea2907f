"""Identifiers that mean one VLAN before a transition and another one afterwards: what walks of states do not find.

A walk follows a frame on the rules of one state. A frame that is under way while rules of its own VLAN change meets
some of the old ones and some of the new, so a broadcast can be doubled or lost although every state is sound. VLANs
with identifiers of their own are safe: no frame is in one of them while its rules change.
"""

from __future__ import annotations

from testbed.base.model import Bundles, LocalPlan, Topology, Violation, VlanPlan
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.tables import FORWARDING, UNTAGGED
from testbed.fabric.transition.steps import TRANSITION, Transition, place, same_vlan
from testbed.fabric.vlans.fixed import LAST_VLAN_ID

_MAX_SHOWN = 5


def identifier_problems(topology: Topology, transition: Transition, bundles: Bundles | None = None) -> list[Violation]:
    """VLANs whose frames would be forwarded otherwise while they are under way, and steps that end elsewhere."""
    old, new = transition.old, transition.new
    found: list[Violation] = []
    if isinstance(old, VlanPlan) and isinstance(new, VlanPlan):
        found = [_violation(sentence, "VLAN") for sentence in _other_trees(old, new)]
    elif isinstance(old, LocalPlan) and isinstance(new, LocalPlan):
        found = [_violation(sentence, "VLAN") for sentence in _other_tables(topology, old, new)]
    return found[:_MAX_SHOWN] or _check_end_state(topology, transition, bundles)


def _other_trees(old: VlanPlan, new: VlanPlan) -> list[str]:
    """A sentence for each identifier that is a VLAN with other links or hosts in the new plan."""
    number = {int(identifier): vlan for vlan, identifier in enumerate(old.vlan_ids.tolist())}
    highest = max(number, default=0)
    own = f"assignment.first_vlan={highest + 1}" if highest + new.vlan_count <= LAST_VLAN_ID else "some that are free"
    return [
        f"VLAN {identifier} has other links or hosts in the new plan, so frames under way in it would be lost or "
        f"doubled; give the new plan's VLANs identifiers of their own ({own}), or those of transition.successor()"
        for vlan, identifier in enumerate(new.vlan_ids.tolist())
        if identifier in number and not same_vlan(old, number[identifier], new, vlan)
    ]


def _other_tables(topology: Topology, old: LocalPlan, new: LocalPlan) -> list[str]:
    """A sentence for each VLAN of a switch that forwards some frame otherwise in the new plan."""
    before, after = ({place(rule): rule for rule in compile_rules(topology, plan)} for plan in (old, new))
    clash = {
        (rule.switch, int(dict(rule.match)["dl_vlan"]))
        for at, rule in before.items()
        if rule.table == FORWARDING.number and after.get(at, rule) != rule
    }
    return [
        f"{topology.switch_name(switch)} forwards {f'VLAN {number}' if number != UNTAGGED else 'untagged frames'} "
        "otherwise in the new plan, and frames may be under way; give its VLANs the identifiers of "
        "transition.local_successor()"
        for switch, number in sorted(clash)
    ]


def _check_end_state(topology: Topology, transition: Transition, bundles: Bundles | None) -> list[Violation]:
    """Whether the rules are those of the new plan after all steps."""
    rules = {place(rule): rule for rule in compile_rules(topology, transition.old, bundles)}
    for step in transition.steps:
        if step.rules:
            step.carried_out(rules, set())
    goal = {place(rule): rule for rule in compile_rules(topology, transition.new, bundles)}
    wrong = [(rules.get(at) or goal[at]).switch for at in rules.keys() | goal.keys() if rules.get(at) != goal.get(at)]
    if not wrong:
        return []
    name = topology.switch_name(min(wrong))
    return [_violation(f"after all steps {name} does not have the rules of the new plan", name)]


def _violation(sentence: str, witness: str) -> Violation:
    return Violation(TRANSITION, sentence, (witness,))
