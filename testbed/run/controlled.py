"""Whether a controller kept the lab at its plan while loads ran."""

from __future__ import annotations

from testbed.emulate.client import LabClient
from testbed.errors import LabError
from testbed.failover.rules import backup_rules
from testbed.failover.tables import whole_tables
from testbed.model import LearningPlan, Rule, VlanPlan
from testbed.plan import Plan
from testbed.run.fidelity import Finding, Verdict
from testbed.run.learn import is_entry
from testbed.run.pathcheck import dumped_rules


def expected_rules(plan: Plan) -> set[Rule]:
    """What the lab's controller installs while nothing is dead: the plan's rules, and backups where it makes some."""
    expected = set(plan.rules)
    if plan.scenario.lab.controller == "segment_manager" and isinstance(plan.vlans, VlanPlan):
        tables = whole_tables(plan.topology, plan.routes, plan.vlans, plan.scenario.routing_kind)
        expected |= set(backup_rules(plan.topology, tables))
    return expected


def controller_findings(plan: Plan, lab: LabClient) -> list[Finding]:
    """What a run with a controller came to, beside its loads; nothing where the lab has none.

    Rules that are not the plan's make figures void. A controller that has ended, or switches that it does not
    reach, leave the rules as they were: a warning.
    """
    if lab.facts.controller is None:
        return []
    rules, problems = dumped_rules(plan.topology, lab.flows())
    if isinstance(plan.vlans, LearningPlan):  # which addresses are known is watched by what is flooded
        rules = [rule for rule in rules if not is_entry(rule)]
    changed = len(set(rules) ^ expected_rules(plan)) + len(problems)
    findings: list[Finding] = []
    if changed:
        findings.append((Verdict.INVALID, f"{changed} rules differ from the plan's after the loads"))
    try:
        status = lab.controller()
    except LabError as error:
        return [*findings, (Verdict.WARN, str(error))]
    late = [name for name, state in status.switches.items() if state.state != "in step"]
    if late:
        shown = ", ".join(f"{name} ({status.switches[name].state})" for name in late[:4])
        findings.append((Verdict.WARN, f"{len(late)} switches are not in step with the controller: {shown}"))
    return findings
