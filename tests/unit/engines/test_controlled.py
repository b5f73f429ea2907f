"""What a lab with a controller reports, without any lab."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from testbed.base.errors import LabError
from testbed.base.messages import ControllerStatus, Deviation, FastPathEntries, RefusedSwitch, SwitchState
from testbed.base.model import Rule
from testbed.engines.lab.control.controller import describe_late_switches
from testbed.engines.ovs.check_paths import state_problems
from testbed.engines.ovs.check_tables import deviations
from testbed.fabric.openflow.rule_text import format_rule
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario

PLAN = make_plan(parse_scenario("topology: {kind: torus, sizes: [3, 3]}", "test.yaml"))
OTHER = make_plan(
    parse_scenario("topology: {kind: torus, sizes: [3, 3]}\nassignment: {kind: fixed, first_vlan: 500}", "test.yaml")
)


def dumped(*rules: Rule) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {f"s{number}": [] for number in range(1, 10)}
    for rule in rules:
        lines[f"s{rule.switch + 1}"].append(" " + format_rule(rule).replace(",actions", " actions"))
    return lines


def tags(rule: Rule) -> bool:
    return any(action == "push_vlan" for action, _ in rule.actions)


def lab(controller: str | None, flows: dict[str, list[str]], status: ControllerStatus | LabError | None = None) -> Any:
    def told() -> ControllerStatus:
        if isinstance(status, LabError):
            raise status
        assert status is not None
        return status

    facts = SimpleNamespace(controller=controller, fast_path=False)
    return SimpleNamespace(facts=facts, flows=lambda: flows, controller=told, shaping_problems=list, link_states=dict)


def status(**states: str) -> ControllerStatus:
    return ControllerStatus({name: SwitchState(state) for name, state in states.items()})


def test_a_run_without_a_controller_has_nothing_to_report():
    assert deviations(PLAN, lab(None, {})) == []


def test_a_switch_without_its_fast_path_is_a_warning():
    slow = lab(None, {})
    slow.facts.fast_path = True
    slow.short_cuts = lambda: FastPathEntries({}, {"s2": "a rule learns addresses"}, 1)
    assert deviations(PLAN, slow) == [Deviation(False, "the fast path of s2 was off: a rule learns addresses")]


def test_shaping_that_changed_voids_a_run():
    changed = lab(None, {})
    changed.shaping_problems = lambda: ["s1-eth1: asked for 1 bit/s, the kernel has 2 bit/s"]
    sentence = "shaping changed: s1-eth1: asked for 1 bit/s, the kernel has 2 bit/s"
    assert deviations(PLAN, changed) == [Deviation(True, sentence)]


def test_a_controller_that_kept_the_plan():
    assert deviations(PLAN, lab("switch_tagged", dumped(*PLAN.rules), status(s1="in step"))) == []


def test_rules_that_are_not_the_plans_void_a_run():
    found = deviations(PLAN, lab("switch_tagged", dumped(*PLAN.rules[2:]), status(s1="in step")))
    assert found == [Deviation(True, "2 rules differ from the plan's after the loads")]


def test_a_controller_that_does_not_come_to_rest_is_told():
    told = ControllerStatus({"s1": SwitchState("in step")}, in_step=1, phase="new tables", problem="none is proved")
    assert (
        describe_late_switches("x", told, 60)
        == 'the controller x is in the phase "new tables" after 60 s. none is proved'
    )


def test_an_ended_controller_and_lost_switches_are_warnings():
    everything = dumped(*PLAN.rules)
    assert deviations(PLAN, lab("switch_tagged", everything, LabError("the controller x ended"))) == [
        Deviation(False, "the controller x ended")
    ]
    assert deviations(PLAN, lab("switch_tagged", everything, status(s1="in step", s2="gone"))) == [
        Deviation(False, "1 switches are not in step with the controller: s2 (gone)")
    ]


def test_switches_that_are_late_are_named_with_their_reason():
    refused = SwitchState("not in step", problem="s3 refused: OpenFlow error 5, code 1")
    states = ControllerStatus(
        {"s1": SwitchState("in step"), "s2": SwitchState("not seen"), "s3": refused},
        refused=(RefusedSwitch("a switch at 127.0.0.1 speaks OpenFlow 1.0 and not 1.3"),),
    )
    assert describe_late_switches("switch_tagged", states, 2.5) == (
        "2 of 3 switches are not in step with the controller switch_tagged after 2.5 s: s2 (not seen), s3 (not in "
        "step: s3 refused: OpenFlow error 5, code 1). Refused: a switch at 127.0.0.1 speaks OpenFlow 1.0 and not 1.3"
    )
    many = status(**{f"s{number}": "not seen" for number in range(1, 7)})
    assert describe_late_switches("x", many, 1).endswith("s4 (not seen) and 2 more")


def between(first: Plan, then: Plan, moved: int) -> list[Rule]:
    """All rules of two plans, and the PVIDs of the first where fewer than `moved` hosts have the second's."""
    pvids = [next(rule for rule in plan.rules if tags(rule) and rule.switch == n) for n in range(9)
             for plan in [then if n < moved else first]]  # fmt: skip
    return [*pvids, *(rule for plan in (first, then) for rule in plan.rules if not tags(rule))]


def test_hosts_may_have_moved_or_not():
    for moved in (0, 4, 9):
        assert state_problems([PLAN, OTHER], dumped(*between(PLAN, OTHER, moved))) == []


def test_a_vlan_that_is_not_there_yet_is_found():
    rules = [rule for rule in PLAN.rules if not tags(rule)] + [rule for rule in OTHER.rules if tags(rule)]
    problems = state_problems([PLAN, OTHER], dumped(*rules))
    assert len(problems) == 9 * 8 + 9
    assert problems[0] == "h1→h2 takes none of its paths"
    assert "a broadcast of h9 does not reach every other host once" in problems


def test_what_takes_a_link_that_is_off_is_found():
    problems = state_problems([PLAN], dumped(*PLAN.rules), off=[0])
    assert any("→h2 takes s1→s2, which is off" in problem for problem in problems)
    assert any(problem.startswith("a broadcast of h1 takes s") for problem in problems)
