"""The entries that stand for a switch's rules, against the oracle, and what they must not stand for."""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest

from testbed.base.model import Rule, host_mac
from testbed.engines.ovs.check_paths import short_cut_problems
from testbed.engines.ovs.fast_programs import decode_entry, encode_entry
from testbed.fabric.openflow.flow_cache import NotUnderstoodError, entries
from testbed.fabric.openflow.flow_cache_entry import Entry
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.openflow.rule_text import format_group, format_rule
from testbed.fabric.openflow.tables import UNTAGGED
from testbed.planning import Plan, make_plan
from testbed.scenario import parse_scenario

_PLANS = {
    "fixed": "topology: {kind: torus, sizes: [3, 3]}",
    "renamed": "topology: {kind: torus, sizes: [3, 3]}\nassignment: {kind: renamed}",
    "openflow": "topology: {kind: torus, sizes: [4, 4]}\nrouting: {kind: dl}\nassignment: {kind: openflow}",
    "bundles": "topology: {kind: mesh, sizes: [3, 2], parallel_links: 2}\nlinks: {aggregate: true}",
}
_VLAN = 10


def _plan(text: str) -> Plan:
    return make_plan(parse_scenario(text, "test.yaml"))


def _rules(plan: Plan) -> dict[int, list[Rule]]:
    found: dict[int, list[Rule]] = defaultdict(list)
    for rule in plan.rules:
        found[rule.switch].append(rule)
    return found


def _ports(rules: list[Rule]) -> set[int]:
    named = {int(value) for rule in rules for name, value in rule.match if name == "in_port"}
    return named | {value for rule in rules for action, value in rule.actions if action == "output"}


@pytest.mark.parametrize("name", _PLANS)
def test_entries_are_what_the_oracle_makes_of_frames(name):
    plan = _plan(_PLANS[name])
    oracle = Oracle(plan.topology, plan.rules, plan.bundles, plan.groups)
    topology, wiring = plan.topology, plan.wiring
    found = {
        (switch, entry.in_port, entry.tag, entry.destination): (entry.out_port, entry.out_tag)
        for switch, rules in _rules(plan).items()
        for entry in entries(rules, _ports(rules))
    }
    for (switch, in_port, tag, address), way in found.items():
        assert oracle.at_switch(switch, in_port, tag, host_mac(0), address) == [((way[0],), way[1])]
    missing = 0
    for source, destination in itertools.permutations(range(topology.host_count), 2):
        walked = oracle.unicast(source, destination)
        switch, in_port, tag = int(topology.host_switch[source]), int(topology.host_port[source]), (UNTAGGED, 0)
        for members, tagged in zip(walked.members, walked.tags, strict=True):
            missing += (switch, in_port, tag, host_mac(destination)) not in found
            switch, in_port, tag = int(wiring.channel_target[members[0]]), int(wiring.out_port[members[0] ^ 1]), tagged
        assert (switch, in_port, tag, host_mac(destination)) in found
    assert (missing > 0) is (plan.bundles is not None)  # by a hash


def _switch(*more: Rule) -> list[Rule]:
    admit = Rule(0, 0, 300, (("in_port", 1), ("dl_vlan", UNTAGGED)), (("push_vlan", _VLAN), ("goto_table", 1)))
    entry = Rule(0, 1, 200, (("dl_vlan", _VLAN), ("dl_dst", host_mac(1))), (("output", 2),))
    return [admit, entry, *more]


def test_a_switch_of_two_rules_has_one_entry():
    assert entries(_switch(), (1, 2)) == [Entry(1, (UNTAGGED, 0), host_mac(1), 2, (_VLAN, 0))]


def test_a_rule_with_a_higher_priority_wins():
    drop = Rule(0, 1, 900, (("dl_dst", host_mac(1)),), ())
    assert entries(_switch(drop), (1, 2)) == []
    other = Rule(0, 1, 900, (("in_port", 1), ("dl_dst", host_mac(1))), (("pop_vlan", 0), ("output", 3)))
    assert entries(_switch(other), (1, 2, 3)) == [Entry(1, (UNTAGGED, 0), host_mac(1), 3, (UNTAGGED, 0))]


def test_nothing_is_sent_back_or_to_a_port_that_is_not_there():
    back = Rule(0, 1, 900, (("dl_dst", host_mac(1)),), (("output", 1),))
    assert entries(_switch(back), (1, 2)) == []
    assert entries(_switch(), (1,)) == []


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Rule(0, 0, 900, (("dl_src", host_mac(3)),), ()), "matches dl_src"),
        (Rule(0, 0, 900, (("dl_dst", host_mac(3)),), ()), "matches dl_dst"),
        (Rule(0, 0, 900, (("in_port", 1),), (("output", 2),)), "ends in output:2"),
        (Rule(0, 0, 900, (("in_port", 1),), (("learn_at_host", 0), ("goto_table", 1))), "learns addresses"),
        (Rule(0, 0, 900, (("in_port", 1),), (("resubmit", 0),)), "more than 8 times"),
        (Rule(0, 1, 200, (("dl_dst", host_mac(1)),), ()), "two rules of table 1 with priority 200"),
        (Rule(0, 1, 900, (("dl_dst", host_mac(1)),), (("goto_table", 2),)), "goto_table:2"),
    ],
)
def test_what_entries_cannot_stand_for_is_named(rule, reason):
    with pytest.raises(NotUnderstoodError, match=reason):
        entries(_switch(rule), (1, 2))


@pytest.mark.parametrize("tag", [(UNTAGGED, 0), (10, 0), (4094, 7)])
@pytest.mark.parametrize("out_tag", [(UNTAGGED, 0), (10, 0), (10, 3)])
def test_entries_can_be_written_and_read(tag, out_tag):
    entry = Entry(3, tag, host_mac(300), 7, out_tag)
    assert Entry.read(entry.line()) == entry
    found = decode_entry(*encode_entry(entry, 77, 1234))
    assert found == (77, tag, host_mac(300), 1234, out_tag)


def test_wrong_and_stale_entries_are_found():
    plan = _plan(_PLANS["fixed"])
    dumped: dict[str, list[str]] = defaultdict(list)
    lines: dict[str, list[str]] = {}
    for switch, rules in _rules(plan).items():
        name = plan.topology.switch_name(switch)
        dumped[name] = [format_rule(rule) for rule in rules]
        lines[name] = [entry.line() for entry in entries(rules, _ports(rules))]
    groups = {name: [format_group(group) for group in plan.groups] for name in dumped}
    assert short_cut_problems(plan, dumped, lines, groups) == []
    right = Entry.read(lines["s1"][0])
    wrong = right._replace(out_port=right.out_port + 1)
    (problem,) = short_cut_problems(plan, dumped, {"s1": [wrong.line()]})
    assert f"to port {wrong.out_port}" in problem
    assert f"its rules to port {right.out_port}" in problem
    stale = right._replace(destination=host_mac(99))
    (problem,) = short_cut_problems(plan, dumped, {"s1": [stale.line()]})
    assert host_mac(99) in problem
