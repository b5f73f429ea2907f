"""Switches that learn: taught before anything is checked, and watched for what they flood while loads run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from testbed.emulate.client import LabClient
from testbed.errors import LabError
from testbed.model import LearningPlan, Rule
from testbed.pipeline.compile import entry_rules
from testbed.pipeline.tables import FORWARDING, Priority
from testbed.plan import Plan
from testbed.run.fidelity import Finding, Verdict
from testbed.run.pathcheck import dumped_rules

_ROUNDS = 3


def teach(plan: Plan, lab: LabClient) -> str:
    """Run the learning procedure until every switch knows every address in every VLAN; nothing for other plans.

    Returns:
        how the frames were made; empty where nothing is learned.

    Raises:
        LabError: addresses are still unknown after three rounds.
    """
    if not isinstance(plan.vlans, LearningPlan):
        return ""
    unknown: list[str] = []
    for _ in range(_ROUNDS):
        way = lab.learn(plan.vlans.vlan_ids.tolist())
        unknown = unknown_addresses(plan, lab.flows())
        if not unknown:
            return way
    raise LabError(
        f"after {_ROUNDS} rounds of the learning procedure {len(unknown)} addresses are unknown or known wrongly: "
        f"{unknown[0]}"
    )


def unknown_addresses(plan: Plan, dumped: Mapping[str, Sequence[str]]) -> list[str]:
    """A sentence for each address that a switch does not know in a VLAN, or knows at another port.

    Args:
        plan: its switches learn.
        dumped: switch name → lines of `ovs-ofctl --no-stats --no-names dump-flows`.
    """
    assert isinstance(plan.vlans, LearningPlan)
    rules, problems = dumped_rules(plan.topology, dumped)
    known = {_place(rule): rule.actions for rule in rules if is_entry(rule)}
    return problems + [
        f"{plan.topology.switch_name(rule.switch)} does not know the way to {dict(rule.match)['dl_dst']} in VLAN "
        f"{dict(rule.match)['dl_vlan']}"
        for rule in entry_rules(plan.topology, plan.vlans)
        if known.get(_place(rule)) != rule.actions
    ]


def is_entry(rule: Rule) -> bool:
    """Whether a rule is the entry of an address, given or learned."""
    return (rule.table, rule.priority) == (FORWARDING.number, Priority.STATIC_ENTRY)


def _place(rule: Rule) -> tuple[object, ...]:
    return (rule.switch, frozenset(rule.match))


def flooded(plan: Plan, lab: LabClient) -> int:
    """Frames sent along a VLAN's tree so far, counted at every switch on it; 0 where nothing is learned."""
    return lab.frames().flooded if isinstance(plan.vlans, LearningPlan) else 0


def flood_findings(plan: Plan, before: int, after: int) -> list[Finding]:
    """A warning where frames were flooded while loads ran, unless hosts may ask for addresses by broadcasts.

    Args:
        plan: what ran.
        before: flooded() before the loads.
        after: flooded() after them.
    """
    if not isinstance(plan.vlans, LearningPlan) or after == before or plan.scenario.lab.arp == "broadcast":
        return []
    why = f"switches forget after {plan.vlans.ageing} s" if plan.vlans.ageing else "switches never forget here"
    return [
        (Verdict.WARN, f"frames were flooded {after - before} times while loads ran, at all switches together; {why}")
    ]
