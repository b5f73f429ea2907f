"""From one plan to another: every state delivers every pair, and planted faults are found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.base.errors import InputError
from testbed.base.model import LocalPlan, Routes, VlanPlan
from testbed.experiments.regulate.choose_links import LinkChoice, kept_links, list_power_levels, plan_without
from testbed.experiments.regulate.traffic import of_pattern
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.power.select import subfabric_without
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.transition import (
    Step,
    Transition,
    make_member_transition,
    make_transition,
    member_transition_problems,
    successor,
    transition_between,
    transition_deadlock,
    transition_problems,
)
from testbed.fabric.vlans.fixed import assign_fixed
from testbed.planning import Plan, make_plan
from tests.fabrics import scenario_of

FABRICS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "torus", "sizes": [3, 3]}, {"kind": "north_last"}),
    ({"kind": "torus", "sizes": [4, 4]}, {"kind": "updown", "selection": "tree"}),
    ({"kind": "complete", "switches": 6, "hosts_per_switch": 2}, {"kind": "sr", "selection": "tree"}),
    ({"kind": "ring", "switches": 5}, {"kind": "stp"}),
]


def planned(blocks: tuple[dict[str, Any], dict[str, Any]]) -> Plan:
    topology, routing = blocks
    return make_plan(scenario_of({"topology": topology, "routing": routing, "assignment": {"kind": "fixed"}}))


def fixed(plan: Plan) -> VlanPlan:
    assert isinstance(plan.vlans, VlanPlan)
    return plan.vlans


def without(plan: Plan, links: list[int]) -> tuple[Routes, VlanPlan] | None:
    """The plan of the fabric without some links, or None where there is none."""
    off = np.zeros(plan.topology.link_count, dtype=bool)
    off[links] = True
    part = subfabric_without(plan.topology, off)
    if part is None:
        return None
    try:
        routes = part.to_whole(ROUTINGS[plan.scenario.routing_kind].route(part.topology, plan.scenario.routing))
    except InputError:
        return None
    vlans = successor(fixed(plan), assign_fixed(plan.topology, routes, plan.scenario.assignment))
    return routes, vlans


@st.composite
def transitions(draw: st.DrawFn) -> tuple[Plan, Routes, Transition, list[int]]:
    plan = planned(draw(st.sampled_from(FABRICS)))
    links = draw(st.lists(st.integers(0, plan.topology.link_count - 1), min_size=1, max_size=4, unique=True))
    found = without(plan, links)
    if found is None:
        links = [draw(st.integers(0, plan.topology.link_count - 1))]
        found = without(plan, links)
    assert found is not None  # each of these fabrics can spare any one link
    routes, vlans = found
    return plan, routes, make_transition(plan.topology, fixed(plan), vlans, off=tuple(links)), links


@settings(deadline=None, max_examples=settings().max_examples // 4)  # each proves every state of two changes
@given(transitions())
def test_links_go_off_and_on_and_every_state_delivers_every_pair(case: tuple[Plan, Routes, Transition, list[int]]):
    plan, routes, transition, links = case
    topology = plan.topology
    assert not transition_problems(topology, transition, plan.routes, routes)
    assert isinstance(transition.new, VlanPlan)
    back = make_transition(topology, transition.new, fixed(plan), on=tuple(links))
    assert not transition_problems(topology, back, routes, plan.routes, down=links)
    assert apply([*compile_rules(topology, fixed(plan))], transition.steps) == set(
        compile_rules(topology, transition.new)
    )


@settings(deadline=None, max_examples=40)
@given(transitions(), st.data())
def test_what_was_begun_can_be_undone_from_any_step(
    case: tuple[Plan, Routes, Transition, list[int]], data: st.DataObject
):
    plan, _, transition, _ = case
    before = set(compile_rules(plan.topology, fixed(plan)))
    count = data.draw(st.integers(0, len(transition.steps)))
    midway = apply([*before], transition.steps[:count])
    assert apply([*midway], transition.undo(count)) == before


def apply(rules: list[Any], steps: tuple[Step, ...]) -> set[Any]:
    """The rules after some steps; what is removed must be there, what is added must not."""
    there = set(rules)
    for step in steps:
        if step.action == "add":
            assert not there & set(step.rules)
            there |= set(step.rules)
        elif step.action == "remove":
            assert there >= set(step.rules)
            there -= set(step.rules)
        elif step.action == "move":
            assert there >= set(step.replaced)
            there = there - set(step.replaced) | set(step.rules)
    return there


def ring_without_first_link() -> tuple[Plan, Routes, Transition]:
    plan = planned(({"kind": "torus", "sizes": [4, 4]}, {"kind": "updown", "selection": "tree"}))
    found = without(plan, [5])
    assert found is not None
    return plan, found[0], make_transition(plan.topology, fixed(plan), found[1], off=(5,))


def order(transition: Transition, *actions: str) -> Transition:
    steps = {step.action: step for step in transition.steps}
    return replace(transition, steps=tuple(steps[action] for action in actions))  # type: ignore[index]


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        (("links off", "add", "move", "drain", "remove"), "which is off"),
        (("move", "drain", "add", "remove", "links off"), "does not take its path"),
        (("add", "remove", "move", "drain", "links off"), "does not take its path"),
        (("add", "move", "remove", "drain", "links off"), "does not take its path"),  # frames are still under way
    ],
)
def test_steps_in_a_wrong_order_are_found(actions: tuple[str, ...], told: str):
    plan, routes, transition = ring_without_first_link()
    assert not transition_problems(plan.topology, transition, plan.routes, routes)
    wrong = order(transition, *actions)
    problems = transition_problems(plan.topology, wrong, plan.routes, routes)
    assert any(told in problem.sentence for problem in problems)


def test_new_vlans_with_identifiers_of_other_old_ones_are_found():
    plan, routes, _ = ring_without_first_link()
    topology = plan.topology
    clashing = assign_fixed(topology, routes, plan.scenario.assignment)  # its identifiers begin where the old do
    assert set(clashing.vlan_ids) & set(fixed(plan).vlan_ids)
    transition = make_transition(topology, fixed(plan), clashing, off=(5,))
    assert transition_problems(topology, transition, plan.routes, routes)


def test_vlans_that_stay_as_they_are_keep_their_identifier():
    plan = planned(({"kind": "mesh", "sizes": [4, 4]}, {"kind": "north_last"}))
    found = without(plan, [4])
    assert found is not None
    kept = set(found[1].vlan_ids.tolist()) & set(fixed(plan).vlan_ids.tolist())
    assert kept
    for identifier in kept:
        old = fixed(plan).tagged_links[fixed(plan).vlan_ids.tolist().index(identifier)]
        new = found[1].tagged_links[found[1].vlan_ids.tolist().index(identifier)]
        assert (old == new).all()


def test_too_few_identifiers_for_both_plans_are_told():
    plan = planned(FABRICS[1])
    old = replace(fixed(plan), vlan_ids=np.arange(4094 - fixed(plan).vlan_count + 1, 4095, dtype=np.int32))
    found = without(plan, [3])
    assert found is not None
    high = replace(found[1], vlan_ids=np.arange(4095 - found[1].vlan_count, 4095, dtype=np.int32))
    with pytest.raises(InputError, match="together need more VLANs"):
        successor(old, high)


def test_old_and_new_paths_that_close_a_cycle_are_reported():
    """Up*/down* trees of the whole torus and of one without a link are each acyclic, and not always together."""
    plan = planned(({"kind": "torus", "sizes": [4, 4]}, {"kind": "updown", "selection": "tree"}))
    cycles = []
    for link in range(plan.topology.link_count):
        found = without(plan, [link])
        assert found is not None
        cycles += transition_deadlock(plan.topology, (plan.routes, fixed(plan)), found)
    assert cycles
    assert all("frames on old and new paths together" in cycle.sentence for cycle in cycles)
    assert not transition_deadlock(plan.topology, (plan.routes, fixed(plan)), (plan.routes, fixed(plan)))


LOCAL: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "torus", "sizes": [3, 3]}, {"kind": "north_last"}),
    ({"kind": "mesh", "sizes": [3, 3], "hosts_per_switch": 2}, {"kind": "updown"}),
    ({"kind": "torus", "sizes": [4, 2], "parallel_links": 2}, {"kind": "dor"}),
    ({"kind": "complete", "switches": 5, "hosts_per_switch": 2}, {"kind": "sr", "selection": "tree"}),
]


@cache
def local_rungs(number: int, flood: str = "tree") -> tuple[Plan, list[LinkChoice]]:
    topology, routing = LOCAL[number]
    assignment = {"kind": "renamed", "flood": flood}
    plan = make_plan(scenario_of({"topology": topology, "routing": routing, "assignment": assignment}))
    return plan, list_power_levels(plan, of_pattern("all_to_all", plan.topology, 1))


def between(one: LinkChoice, two: LinkChoice) -> tuple[Transition, list[str]]:
    """The way from one to another, and what is wrong with it."""
    topology = one.plan.topology
    on, off = (tuple(sorted({*a.off_links}.difference(b.off_links))) for a, b in ((one, two), (two, one)))
    old, new = ((rung.plan.routes, rung.plan.vlans) for rung in (one, two))
    way = transition_between(topology, old, new, on=on, off=off)
    return way, [found.sentence for found in transition_problems(topology, way, old[0], new[0], one.off_links)]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, len(LOCAL) - 1), st.sampled_from(["tree", "none"]), st.data())
def test_vlans_of_one_switch_change_by_port_and_nothing_is_lost(number: int, flood: str, data: st.DataObject):
    plan, rungs = local_rungs(number, flood)
    one, two = (rungs[rung] for rung in data.draw(st.permutations(range(len(rungs))))[:2])
    way, problems = between(one, two)
    assert problems == []
    keep = kept_links(plan)
    assert keep is not None
    assert not {*one.off_links, *two.off_links}.intersection(np.flatnonzero(keep).tolist())
    before, after = (set(compile_rules(plan.topology, vlans)) for vlans in (way.old, way.new))
    assert apply([*before], way.steps) == after
    count = data.draw(st.integers(0, len(way.steps)))
    assert apply([*apply([*before], way.steps[:count])], way.undo(count)) == before


@pytest.mark.parametrize("number", range(len(LOCAL)))
def test_ports_in_another_order_lose_frames_as_the_proof_tells(number: int):
    _, rungs = local_rungs(number)
    way, problems = between(rungs[0], rungs[-1])
    assert problems == []
    moves = [step for step in way.steps[: [step.action for step in way.steps].index("drain")] if step.action == "move"]
    assert len(moves) > 1
    others = [step for step in way.steps if step not in moves]
    at = next(place for place, step in enumerate(others) if step.action == "drain")
    wrong = {
        "the other way round": [*others[:at], *reversed(moves), *others[at:]],
        "all in one step": [*others[:at], joined(moves), *others[at:]],
        "old rules gone too early": [others[0], next(s for s in others if s.action == "remove"), *moves],
    }
    for what, steps in wrong.items():
        changed = replace(way, steps=tuple(steps))
        plans = rungs[0].plan, rungs[-1].plan
        assert transition_problems(plans[0].topology, changed, plans[0].routes, plans[1].routes), what


def joined(moves: list[Step]) -> Step:
    rules, replaced = (tuple(rule for move in moves for rule in of(move)) for of in (_rules, _replaced))
    return Step("move", rules, replaced=replaced)


def _rules(step: Step) -> tuple[Any, ...]:
    return step.rules


def _replaced(step: Step) -> tuple[Any, ...]:
    return step.replaced


def test_a_link_of_untagged_broadcasts_stays_on():
    plan, _ = local_rungs(0)
    keep = kept_links(plan)
    assert keep is not None
    off = np.zeros(plan.topology.link_count, dtype=bool)
    off[np.flatnonzero(keep)[0]] = True
    with pytest.raises(InputError, match=r"s1–s\d carries broadcasts, which no tag between switches keeps apart"):
        plan_without(plan, off)


def test_new_local_vlans_have_their_own_identifiers_and_old_stay():
    plan, rungs = local_rungs(1)
    sets = [identifiers(rung.plan.vlans) for rung in rungs]
    rules = [set(compile_rules(plan.topology, rung.plan.vlans)) for rung in rungs]
    kept = sets[0] & sets[1]
    assert kept
    for switch, number in kept:
        of_vlan = [{r for r in found if r.switch == switch and ("dl_vlan", number) in r.match} for found in rules[:2]]
        assert of_vlan[0] == of_vlan[1]


def identifiers(vlans: VlanPlan | LocalPlan) -> set[tuple[int, int]]:
    assert isinstance(vlans, LocalPlan)
    return set(zip(vlans.vlan_switch.tolist(), vlans.vlan_id.tolist(), strict=True))


def test_paths_that_wait_for_each_other_have_no_way():
    blocks = {"topology": {"kind": "ring", "switches": 5}, "routing": {"kind": "dor", "ring": "shortest"}}
    plan = make_plan(scenario_of({**blocks, "expect": "deadlock", "assignment": {"kind": "renamed"}}))
    here = (plan.routes, plan.vlans)
    with pytest.raises(InputError, match="its paths wait for each other in a cycle, through port"):
        transition_between(plan.topology, here, here)


BUNDLED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"kind": "ring", "switches": 4, "parallel_links": 3}, {"kind": "north_last"}),
    ({"kind": "torus", "sizes": [3, 3], "parallel_links": 2}, {"kind": "updown", "selection": "tree"}),
    ({"kind": "complete", "switches": 5, "parallel_links": 2}, {"kind": "sr", "selection": "tree"}),
]


@st.composite
def member_changes(draw: st.DrawFn) -> tuple[Plan, Plan, set[int], set[int]]:
    """A plan with bundles, that without some of them, and physical links that are off with the first and the second.

    Some of those off under both plans are the same; each bundle that paths take has a link that is on.
    """
    topology, routing = draw(st.sampled_from(BUNDLED))
    links = {"aggregate": True}
    plan = make_plan(
        scenario_of({"topology": topology, "routing": routing, "links": links, "assignment": {"kind": "fixed"}})
    )
    assert plan.bundles is not None
    gone = np.zeros(plan.topology.link_count, dtype=bool)
    for link in draw(st.lists(st.integers(0, len(gone) - 1), max_size=2, unique=True)):
        gone[link] = True
        if subfabric_without(plan.topology, gone) is None:
            gone[link] = False
    fewer = plan_without(plan, gone) if gone.any() else plan
    sides = []
    for dark in (np.zeros_like(gone), gone):
        off = set()
        for link, size in enumerate(plan.bundles.sizes.tolist()):
            left = size if dark[link] else draw(st.integers(0, size - 1))
            numbers = draw(st.permutations(range(size)))[:left]
            off |= {int(plan.bundles.start[link]) + number for number in numbers}
        sides.append(off)
    return plan, fewer, sides[0], sides[1]


def _between(old: Plan, new: Plan, before: set[int], after: set[int]) -> Transition:
    assert old.bundles is not None
    return make_member_transition(
        old.topology, old.bundles, fixed(old), fixed(new), on=before - after, off=after - before
    )


def _problems(old: Plan, new: Plan, transition: Transition, before: set[int]) -> list[Any]:
    assert old.bundles is not None
    return member_transition_problems(old.topology, old.bundles, transition, old.routes, new.routes, before)


@settings(deadline=None, max_examples=30)
@given(member_changes())
def test_links_of_bundles_go_off_and_on_and_off_ones_carry_none(case):
    plan, fewer, before, after = case
    for old, new, was, will in ((plan, fewer, before, after), (fewer, plan, after, before)):
        transition = _between(old, new, was, will)
        assert _problems(old, new, transition, was) == []
        off = set(was)
        for step in transition.steps:
            if step.action in ("links on", "links off"):
                step.carried_out({}, off)
        assert off == will
        # Undone from any step, hashes and links are what they were.
        for count in range(len(transition.steps) + 1):
            off, out = set(was), set(was)
            for step in (*transition.steps[:count], *transition.undo(count)):
                for action, links in (("links", off), ("members", out)):
                    if step.action in (f"{action} on", f"{action} in"):
                        links -= set(step.links)
                    elif step.action in (f"{action} off", f"{action} out"):
                        links |= set(step.links)
            assert (off, out) == (was, was)


@settings(deadline=None, max_examples=30)
@given(member_changes(), st.data())
def test_a_step_of_a_bundle_left_out_or_too_early_is_found(case, data):
    plan, fewer, before, after = case
    transition = _between(plan, fewer, before, after)
    steps = [*transition.steps]
    members = [number for number, step in enumerate(steps) if step.action in ("members in", "members out")]
    if not members:
        return
    number = data.draw(st.sampled_from(members))
    step = steps[number]
    if step.action == "members in":
        # Before the links are on.
        first = next(place for place, other in enumerate(steps) if other.action == "links on")
        wrong = [*steps[:first], step, *(other for other in steps[first:] if other is not step)]
        told = "a hash still chooses a link that is off"
    elif data.draw(st.booleans()):
        wrong = [other for other in steps if other is not step]
        told = "a hash still chooses a link that is off"
    else:
        wrong = [*steps[: number + 1], *steps[number + 2 :]]  # without the wait
        told = "frames may be in the queues of"
    found = _problems(plan, fewer, replace(transition, steps=tuple(wrong)), before)
    assert any(told in problem.sentence for problem in found)


def test_paths_over_a_bundle_without_carrying_links_are_found():
    topology, routing = BUNDLED[0]
    plan = make_plan(
        scenario_of(
            {"topology": topology, "routing": routing, "links": {"aggregate": True}, "assignment": {"kind": "fixed"}}
        )
    )
    found = _problems(plan, plan, _between(plan, plan, set(), {0, 1, 2}), set())
    assert "which is off" in found[0].sentence
    assert _problems(plan, plan, _between(plan, plan, set(), {0, 1}), set()) == []
