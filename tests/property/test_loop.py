"""Links that go off and on by load: what decides, for any load; and the plans it moves between, on any fabric."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.base.errors import InputError
from testbed.base.model import VlanPlan
from testbed.experiments.regulate.choose_links import LinkChoice, list_power_levels, plan_without
from testbed.experiments.regulate.thresholds import Rule
from testbed.experiments.regulate.traffic import of_pattern
from testbed.fabric.routing.paths import path
from testbed.fabric.transition import make_transition, transition_deadlock, transition_problems
from testbed.planning import Plan, make_plan
from tests.fabrics import graph_of, scenario_of

shares = st.floats(0.01, 0.99)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    below, above = sorted(draw(st.lists(shares, min_size=2, max_size=2, unique=True)))
    rule = Rule(above, below, draw(st.floats(0.1, 2)), draw(st.floats(0, 20)))
    assert rule.problems() == []
    return rule


# How many times as much the busiest link carries on each rung as with all links on.
factors = st.lists(st.integers(100, 800), max_size=5).map(lambda more: [1.0, *(part / 100 for part in sorted(more))])
loads = st.lists(st.floats(0, 1), min_size=1, max_size=60)


def driven(rule: Rule, more: list[float], offered: list[float], takes: float, rung: int = 0) -> list[tuple[float, int]]:
    """(s, rung) from the start on, one look a period and nothing seen while a change goes on."""
    now, changed, found = 0.0, float("-inf"), [(0.0, rung)]
    for load in offered:
        now += rule.period
        wanted = rule.decide(rung, [load * factor for factor in more], now - changed)
        assert 0 <= wanted < len(more)
        if load * more[rung] > rule.on_above and more[rung] > 1:
            assert wanted == 0, "a rise is answered at the first look"
        if wanted != rung:
            now += takes
            rung, changed = wanted, now
            found.append((now, rung))
    return found


@given(rules(), factors, loads, st.floats(0, 5))
def test_links_go_off_only_after_the_time_of_rest(rule, more, offered, takes):
    found = driven(rule, more, offered, takes)
    for (changed, before), (now, after) in itertools.pairwise(found):
        if after > before and changed:
            assert now - takes - changed >= rule.hold - 1e-9


@given(rules(), factors, st.floats(0, 1), st.integers(0, 5))
def test_a_constant_load_never_makes_links_flap(rule, more, load, start):
    """Up once at the most, from where it was too much, and down once to where it stays."""
    start = min(start, len(more) - 1)
    looks = int(3 * rule.hold / rule.period) + 10
    rungs = [rung for _, rung in driven(rule, more, [load] * looks, 1.0, start)]
    assert len(rungs) <= 3
    downward = [after > before for before, after in itertools.pairwise(rungs)]
    assert downward == sorted(downward)
    if start and rule.off_below <= load * more[start] <= rule.on_above:
        assert rungs == [start]


@given(rules(), factors)
def test_an_idle_fabric_ends_on_fewest_links_and_a_full_on_all(rule, more):
    looks = int(2 * rule.hold / rule.period) + 4
    assert driven(rule, more, [0.0] * looks, 0.5)[-1][1] == len(more) - 1
    relieved = 0 if more[-1] > 1 else len(more) - 1
    assert driven(rule, more, [1.0] * looks, 0.5, len(more) - 1)[-1][1] == relieved


def test_links_that_would_relieve_nothing_stay_off():
    """Parallel links are shared by source: one source fills one of them, however many are on."""
    rule = Rule(hold=1.0)
    assert rule.decide(1, [0.9, 0.9], 10.0) == 1
    assert rule.decide(2, [0.9, 0.9 * (1 + 1e-12), 0.9 * (1 + 1e-12)], 0.0) == 2
    assert rule.decide(1, [0.45, 0.9], 0.0) == 0


Blocks = tuple[dict[str, Any], dict[str, Any]]

FABRICS: list[Blocks] = [
    ({"kind": "torus", "sizes": [3, 3]}, {"kind": "north_last"}),
    ({"kind": "torus", "sizes": [4, 4]}, {"kind": "updown", "selection": "tree"}),
    ({"kind": "torus", "sizes": [4, 2], "parallel_links": 3}, {"kind": "dor"}),
    ({"kind": "complete", "switches": 6, "hosts_per_switch": 2}, {"kind": "sr", "selection": "tree"}),
    ({"kind": "ring", "switches": 5, "parallel_links": 2}, {"kind": "north_last"}),
    ({"kind": "torus", "sizes": [3, 3]}, {"kind": "sr", "selection": "tree"}),
]


@cache
def rungs_of(number: int, flow_control: Literal["none", "pause"] = "none") -> tuple[Plan, list[LinkChoice]]:
    topology, routing = FABRICS[number]
    blocks = {"topology": topology, "routing": routing, "assignment": {"kind": "fixed"}}
    plan = make_plan(scenario_of(blocks))
    simulator = replace(plan.scenario.simulator, flow_control=flow_control)
    plan = replace(plan, scenario=replace(plan.scenario, simulator=simulator))
    return plan, list_power_levels(plan, of_pattern("all_to_all", plan.topology, 1))


@pytest.mark.parametrize("fabric", range(len(FABRICS)))
def test_each_rung_connects_all_is_proved_and_has_fewer_links(fabric):
    plan, rungs = rungs_of(fabric)
    assert len(rungs) > 1
    topology, hosts = plan.topology, range(plan.topology.host_count)
    assert rungs[0].off_links == ()
    assert rungs[0].plan is plan
    for before, rung in itertools.pairwise(rungs):
        assert {*before.off_links} < {*rung.off_links}
        assert rung.plan.violations == ()
        left = graph_of(topology)
        left.clear_edges()
        left.add_edges_from(topology.links[~rung.selection.off].tolist())
        assert nx.is_connected(left)
        taken = {hop // 2 for a in hosts for b in hosts for hop in path(topology, rung.plan.routes, a, b)}
        assert not taken & {*rung.off_links}
    # On the last one nothing more can go: each link is needed by the switches or by the routing.
    assert to_spare(rungs[-1]) == []


def to_spare(last: LinkChoice) -> list[int]:
    """Links beyond those that are off without which there would be paths as well."""
    found = []
    for link in range(last.plan.topology.link_count):
        off = last.selection.off.copy()
        if not off[link]:
            off[link] = True
            try:
                plan_without(last.plan, off)
            except InputError:
                continue
            found.append(link)
    return found


@settings(max_examples=settings().max_examples * 3 // 8, deadline=None)
@given(st.integers(0, len(FABRICS) - 1), st.data())
def test_from_each_rung_every_other_one_can_be_reached_safely(fabric, data):
    plan, rungs = rungs_of(fabric)
    one, two = (rungs[number] for number in data.draw(st.permutations(range(len(rungs))))[:2])
    assert isinstance(one.plan.vlans, VlanPlan)
    assert isinstance(two.plan.vlans, VlanPlan)
    on, off = (tuple(sorted({*a.off_links}.difference(b.off_links))) for a, b in ((one, two), (two, one)))
    way = make_transition(plan.topology, one.plan.vlans, two.plan.vlans, on=on, off=off)
    assert transition_problems(plan.topology, way, one.plan.routes, two.plan.routes, one.off_links) == []


def test_with_flow_control_no_two_rungs_close_a_cycle_together():
    plan, free = rungs_of(5)
    _, kept = rungs_of(5, "pause")

    def cycles(rungs: list[LinkChoice]) -> int:
        parts = [(rung.plan.routes, rung.plan.vlans) for rung in rungs if isinstance(rung.plan.vlans, VlanPlan)]
        pairs = itertools.combinations(parts, 2)
        return sum(bool(transition_deadlock(plan.topology, one, other)) for one, other in pairs)

    assert cycles(free) > 0
    assert cycles(kept) == 0
    assert 1 < len(kept) < len(free)
