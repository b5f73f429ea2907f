"""Any fabric with any number of parallel links: whichever members a hash chooses, every pair is delivered, no loop."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.model import Group, LearningPlan, Rule, Violation
from testbed.engines.ovs.check_paths import installed_problems
from testbed.fabric.openflow.compile import LearningOracle, bundle_rules, compile_groups, count_rules, learned_rules
from testbed.fabric.openflow.oracle import BROADCAST, Copy, Oracle
from testbed.fabric.openflow.rule_text import format_group, format_rule, parse_group, parse_rule
from testbed.fabric.openflow.tables import TABLES, Priority
from testbed.fabric.routing.paths import path
from testbed.fabric.verify.bundles import check_bundles
from testbed.planning import Plan, make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from tests.fabrics import fabrics, scenario_of

_ROUTED = {"fixed": "stp", "static": "stp", "renamed": "updown", "openflow": "dl"}


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    """A connected graph, one to four links a pair, one or two hosts a switch, any assignment."""
    count = draw(st.integers(2, 7))
    pairs = {(draw(st.integers(0, switch - 1)), switch) for switch in range(1, count)}
    every = [(a, b) for b in range(count) for a in range(b)]
    pairs |= set(draw(st.lists(st.sampled_from(every), max_size=6)))
    names = [f"x{switch}" for switch in range(count)]
    links = [[names[a], names[b]] for a, b in sorted(pairs) for _ in range(draw(st.integers(1, 4)))]
    assignment = draw(st.sampled_from(sorted(_ROUTED)))
    topology = {"kind": "graph", "switches": names, "links": links, "hosts_per_switch": draw(st.integers(1, 2))}
    return {"topology": topology, "routing": {"kind": _ROUTED[assignment]}, "assignment": {"kind": assignment}}


def without_planes(blocks: dict[str, Any]) -> dict[str, Any]:
    """The same fabric without what tells parallel links apart; rings then keep out of coordinate 0."""
    ties = {key: value for key, value in blocks.get("routing", {}).items() if key in ("kind", "ties")}
    return {**blocks, "routing": ties}


def aggregated(blocks: dict[str, Any]) -> Plan:
    return make_plan(scenario_of({**blocks, "links": {"aggregate": True}}))


any_plan = st.one_of(graphs(), fabrics().map(without_planes)).map(aggregated)


class OneMember(Oracle):
    """Each time a bundle is used, one member is drawn."""

    every_member = False
    draw: random.Random

    def _forward(self, switch: int, in_port: int, tag: tuple[int, int], destination_mac: str) -> list[Copy]:
        copies = super()._forward(switch, in_port, tag, destination_mac)
        return [((self.draw.choice(ports),), tag) for ports, tag in copies]


@given(any_plan, st.randoms(use_true_random=False))
def test_every_pair_is_delivered_whatever_members_are_chosen(plan, draw):
    assert plan.violations == ()
    oracle = OneMember(plan.topology, plan.rules, plan.bundles, plan.groups)
    oracle.draw = draw
    hosts = range(plan.topology.host_count)
    for source in hosts:
        for end in hosts:
            if source != end:
                found = oracle.unicast(source, end)
                assert found.received == {end: 1}
                assert found.channels == path(plan.topology, plan.routes, source, end)
        flood = oracle.broadcast(source)
        assert not flood.endless
        assert flood.received == {host: 1 for host in hosts if host != source}
        assert all(len(members) == 1 for members in flood.members)
        # At most one copy crosses a bundle, and none comes back by it.
        links = [channel // 2 for channel in flood.channels]
        assert len(links) == len(set(links))


@given(any_plan)
def test_the_walk_over_members_agrees_and_text_loses_nothing(plan):
    rules, groups = texts(plan)
    assert installed_problems(plan, rules, groups) == []
    assert {parse_rule(n, line) for n, name in enumerate(rules) for line in rules[name]} == set(plan.rules)
    assert {parse_group(n, line) for n, name in enumerate(groups) for line in groups[name]} == set(plan.groups)
    assert count_rules(plan.topology, plan.vlans, plan.bundles) == len(plan.rules)
    tables = {table.number: table for table in TABLES}
    for rule in plan.rules:
        assert {field for field, _ in rule.match} <= tables[rule.table].match_fields
        following = {value for action, value in rule.actions if action in ("goto_table", "resubmit")}
        assert following <= tables[rule.table].goto
        assert rule.priority in list(Priority)
    back = plan_from_json(plan_to_json(plan))
    assert (back.digest, back.rules, back.groups) == (plan.digest, plan.rules, plan.groups)


@given(graphs())
def test_learned_switches_send_as_planned_whatever_the_member(blocks):
    plan = aggregated(
        {**blocks, "routing": {"kind": "stp"}, "assignment": {"kind": "fixed", "registration": "learning"}}
    )
    assert plan.violations == ()
    assert isinstance(plan.vlans, LearningPlan)
    assert count_rules(plan.topology, plan.vlans, plan.bundles) == len(plan.rules)
    known = LearningOracle(plan.topology, plan.rules, plan.bundles, plan.groups)
    for host in range(plan.topology.host_count):
        for vlan in plan.vlans.vlan_ids.tolist():
            flood = known.send(host, BROADCAST, vlan)
            links = [channel // 2 for channel in flood.channels]
            assert len(links) == len(set(links))
    learned = learned_rules(plan.topology, plan.vlans, plan.bundles)
    for rule in learned:
        assert known._lookup(rule.switch, rule.table, {**dict(rule.match)}) == rule
    rules, groups = texts(plan, learned)
    assert installed_problems(plan, rules, groups) == []


def texts(plan: Plan, learned: Sequence[Rule] = ()) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    names = [plan.topology.switch_name(switch) for switch in range(plan.topology.switch_count)]
    rules: dict[str, list[str]] = {name: [] for name in names}
    groups: dict[str, list[str]] = {name: [] for name in names}
    for rule in (*plan.rules, *learned):
        rules[names[rule.switch]].append(format_rule(rule))
    for group in plan.groups:
        groups[names[group.switch]].append(format_group(group))
    return rules, groups


@cache
def sound() -> Plan:
    return aggregated({"topology": {"kind": "mesh", "sizes": [3, 2], "hosts_per_switch": 2, "parallel_links": 3}})


def found_by_proof(groups: tuple[Group, ...], rules: list[Rule]) -> list[Violation]:
    plan = sound()
    assert plan.bundles is not None
    return check_bundles(plan.topology, plan.bundles, groups, rules)


def parts() -> tuple[tuple[Group, ...], list[Rule]]:
    plan = sound()
    assert plan.bundles is not None
    return compile_groups(plan.bundles), bundle_rules(plan.bundles)


def test_the_sound_plan_has_no_fault():
    assert found_by_proof(*parts()) == []


numbers = st.integers(0, 10_000)


@given(numbers, st.sampled_from(["lacks", "foreign", "gone", "twice", "strange"]))
def test_a_wrong_group_is_found(number, fault):
    groups, rules = parts()
    place = number % len(groups)
    group = groups[place]
    planted = {
        "lacks": (dataclasses.replace(group, ports=group.ports[1:]),),
        "foreign": (dataclasses.replace(group, ports=(*group.ports[1:], 1)),),
        "gone": (),
        "twice": (group, group),
        "strange": (group, dataclasses.replace(group, number=999)),
    }[fault]
    (violation, *_) = found_by_proof((*groups[:place], *planted, *groups[place + 1 :]), rules)
    name = f"group {999 if fault == 'strange' else group.number} of s{group.switch + 1}"
    assert violation.invariant == "bundle"
    assert violation.witness
    assert (name in violation.sentence) or (fault == "gone" and "has no group" in violation.sentence)


@given(numbers, st.sampled_from(["gone", "other", "twice"]))
def test_a_wrong_arrival_is_found(number, fault):
    groups, rules = parts()
    arrivals = [rule for rule in rules if rule.priority == Priority.MEMBER]
    rule = arrivals[number % len(arrivals)]
    rest = [other for other in rules if other != rule]
    other = dataclasses.replace(rule, actions=(("set_in_port", 1), *rule.actions[1:]))
    (violation,) = found_by_proof(groups, rest + {"gone": [], "other": [other], "twice": [rule, rule]}[fault])
    assert violation.witness == (f"port {dict(rule.match)['in_port']} of s{rule.switch + 1}",)


@given(numbers, st.sampled_from([Priority.BUNDLE, Priority.SAME_BUNDLE]))
def test_a_wrong_way_out_is_found(number, rung):
    groups, rules = parts()
    chosen = [rule for rule in rules if rule.priority == rung]
    rule = chosen[number % len(chosen)]
    found = found_by_proof(groups, [other for other in rules if other != rule])
    wanted = "not handed to its group" if rung == Priority.BUNDLE else "may go back by another of its members"
    assert any(wanted in violation.sentence for violation in found)
    assert all(violation.witness[0].startswith(f"s{rule.switch + 1}→") for violation in found)


def test_members_that_are_not_parallel_are_found():
    plan = sound()
    bundles = plan.bundles
    assert bundles is not None
    start = bundles.start.copy()
    start[1] += 1  # the first link of the second pair is counted to the first
    wrong = dataclasses.replace(bundles, start=start)
    found = check_bundles(plan.topology, wrong, *parts())
    assert {violation.witness for violation in found} >= {("s1→s4",), ("s4→s1",)}
    short = dataclasses.replace(bundles, start=bundles.start[:-1])
    (violation,) = check_bundles(plan.topology, short, *parts())
    assert "do not partition the 21 links" in violation.sentence
    for place, more in ((0, 1), (-1, -1)):
        start = bundles.start.copy()
        start[place] += more  # a link of no bundle, the first or the last
        (violation,) = check_bundles(plan.topology, dataclasses.replace(bundles, start=start), *parts())
        assert "do not partition the 21 links" in violation.sentence


def _without_arrival(rules: dict[str, list[str]], groups: dict[str, list[str]]) -> None:
    del groups
    rules["s2"] = [line for line in rules["s2"] if not line.startswith("table=0,priority=600,in_port=4,")]


def _without_same_bundle(rules: dict[str, list[str]], groups: dict[str, list[str]]) -> None:
    del groups
    for name, lines in rules.items():
        rules[name] = [line for line in lines if "priority=500" not in line]


def _with_one_member(rules: dict[str, list[str]], groups: dict[str, list[str]]) -> None:
    del rules
    groups["s1"] = [line.partition(",bucket=bucket_id:2")[0] for line in groups["s1"]]


def _past_the_group(rules: dict[str, list[str]], groups: dict[str, list[str]]) -> None:
    del groups
    rules["s1"] = [line.replace("group:3", "output:3") for line in rules["s1"]]


def _without_groups(rules: dict[str, list[str]], groups: dict[str, list[str]]) -> None:
    del rules
    groups["s1"] = []


def _other_hash(rules: dict[str, list[str]], groups: dict[str, list[str]]) -> None:
    del rules
    groups["s1"] = [line.replace("tcp_src,", "") for line in groups["s1"]]


@pytest.mark.parametrize(
    ("plant", "sentence"),
    [
        (_without_arrival, "fares differently at s2 by the member of a bundle that it comes by"),
        (_without_same_bundle, "a broadcast of h1 circulates instead of every other host once"),
        (_with_one_member, "can take 2 of the 3 members of s1→s2"),
        (_past_the_group, "can take 1 of the 3 members of s1→s2"),
        (_without_groups, "h1→h3 takes no link instead of s1→s2"),
        (_other_hash, "s1 has a group that is not ours: not a group of this pipeline"),
    ],
)
def test_a_fault_of_running_switches_is_found(
    plant: Callable[[dict[str, list[str]], dict[str, list[str]]], None], sentence: str
) -> None:
    rules, groups = texts(sound())
    plant(rules, groups)
    problems = installed_problems(sound(), rules, groups)
    assert any(sentence in problem for problem in problems), problems[:5]
