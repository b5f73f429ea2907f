"""The comparison of dumped rules with the plan; lab tests do the same on running switches."""

from testbed.engines.ovs.check_paths import installed_problems
from testbed.fabric.openflow.rule_text import format_rule
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

PLAN = make_plan(parse_scenario("topology: {kind: torus, sizes: [3, 3]}", "test.yaml"))


def dumped() -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {f"s{number}": [] for number in range(1, 10)}
    for rule in PLAN.rules:
        lines[f"s{rule.switch + 1}"].append(" " + format_rule(rule).replace(",actions", " actions"))
    return lines


def test_the_plan_itself_has_no_problem():
    assert installed_problems(PLAN, dumped()) == []


def test_a_switch_without_rules():
    problems = installed_problems(PLAN, {**dumped(), "s5": []})
    assert sum("h5→" in problem for problem in problems) == 8
    assert any(problem == "a broadcast of h5 reaches no host instead of every other host once" for problem in problems)


def test_a_foreign_rule():
    lines = dumped()
    lines["s1"].append(" priority=1 actions=NORMAL")
    (problem,) = installed_problems(PLAN, lines)
    assert problem.startswith("s1 has a rule that is not ours: unexpected action 'NORMAL'")


def test_a_tag_left_on():
    lines = {name: [line.replace("pop_vlan,", "") for line in rules] for name, rules in dumped().items()}
    assert len(installed_problems(PLAN, lines)) == 9 * 8 + 9
