"""Whatever dies, backup paths and new tables reach all that can be reached, walked on the rules themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.base.model import Bools, Rule, Topology, VlanPlan
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.transition.steps import place
from testbed.planning import Plan, make_plan
from testbed.planning.failover.diversion import divert
from testbed.planning.failover.failed_elements import FailedElements, cut_off, failed_elements
from testbed.planning.failover.rules import backup_pvids, backup_rules, path_rules
from testbed.planning.failover.tables import Tables, prove, recovered_tables, routings, whole_tables
from tests.fabrics import scenario_of

FABRICS: list[dict[str, Any]] = [
    {"topology": {"kind": "torus", "sizes": [4, 4]}},
    {"topology": {"kind": "mesh", "sizes": [3, 3]}},
    {"topology": {"kind": "complete", "switches": 5, "hosts_per_switch": 2}, "assignment": {"kind": "fixed"}},
    {"topology": {"kind": "tree", "switches": 7, "arity": 2}},
    {"topology": {"kind": "ring", "switches": 5}},
    {
        "topology": {"kind": "random", "switches": 10, "degree": 3, "seed": 4},
        "routing": {"kind": "sr", "selection": "tree"},
        "assignment": {"kind": "fixed"},
    },
    {"topology": {"kind": "torus", "sizes": [3, 3], "parallel_links": 2}},
]


@cache
def made(number: int) -> tuple[Plan, Tables]:
    plan = make_plan(scenario_of(FABRICS[number]))
    assert isinstance(plan.vlans, VlanPlan)
    return plan, whole_tables(plan.topology, plan.routes, plan.vlans, plan.scenario.routing_kind)


def recover(plan: Plan, whole: Tables, now: Tables, failed: FailedElements) -> Tables:
    ways = routings(plan.topology, plan.scenario.routing_kind, plan.scenario.routing)
    return recovered_tables(plan.topology, whole, now, failed, ways)


def not_delivered(topology: Topology, rules: list[Rule], failed: FailedElements) -> Bools:
    """(H, H) True for pairs whose frame does not arrive over what is alive; fails on loops and second copies."""
    oracle = Oracle(topology, rules)
    lost = np.zeros((topology.host_count, topology.host_count), dtype=bool)
    for source in range(topology.host_count):
        for end in range(topology.host_count):
            if source == end:
                continue
            way = oracle.unicast(source, end)
            assert not way.endless
            assert set(way.received) <= {end}
            dead = [channel for channel in way.channels if failed.links[channel // 2]]
            lost[source, end] = way.received != {end: 1} or bool(dead) or failed.hosts[source] or failed.hosts[end]
        flood = oracle.broadcast(source)
        assert not flood.endless
        assert all(count == 1 for count in flood.received.values())
    return lost


def replaced(rules: tuple[Rule, ...], others: list[Rule]) -> list[Rule]:
    of_place = {place(rule): rule for rule in others}
    return [of_place.get(place(rule), rule) for rule in rules]


@st.composite
def damages(draw: st.DrawFn) -> tuple[int, FailedElements, FailedElements]:
    number = draw(st.integers(0, len(FABRICS) - 1))
    topology = made(number)[0].topology
    links = draw(st.lists(st.integers(0, topology.link_count - 1), max_size=3, unique=True))
    switches = draw(st.lists(st.integers(0, topology.switch_count - 1), max_size=1))
    hosts = draw(st.lists(st.integers(0, topology.host_count - 1), max_size=1))
    second = draw(st.lists(st.integers(0, topology.link_count - 1), max_size=2))
    return (
        number,
        failed_elements(topology, links, hosts, switches),
        failed_elements(topology, [*links, *second], [], switches),
    )


@settings(deadline=None, max_examples=settings().max_examples * 3 // 8)
@given(damages())
def test_every_pair_that_is_connected_is_delivered_or_named(case: tuple[int, FailedElements, FailedElements]):
    number, first, second = case
    plan, whole = made(number)
    topology, now = plan.topology, whole
    for failed in (first, second, failed_elements(topology)):
        diversion = divert(topology, now, failed)
        moved = [backup_pvids(topology, now)[b][host] for host, b in enumerate(diversion.backup.tolist()) if b >= 0]
        rules = replaced((*path_rules(topology, now), *backup_rules(topology, now)), moved)
        beyond = cut_off(topology, failed) | diversion.waiting
        beyond |= cut_off(topology, replace(failed, links=now.dead | failed.links))  # what is back needs new tables
        assert (not_delivered(topology, rules, failed) == beyond).all()
        after = recover(plan, whole, now, failed)
        assert not prove(topology, after)
        rules = [*path_rules(topology, after), *backup_rules(topology, after)]
        assert (not_delivered(topology, rules, failed) == cut_off(topology, failed)).all()
        both = {int(v) for v in now.vlans.vlan_ids} | {int(v) for v in now.backups.vlan_ids}
        assert not both & {int(v) for v in after.backups.vlan_ids} - {int(v) for v in now.backups.vlan_ids}
        now = after
    # Nothing is dead any more.
    assert now is whole


@pytest.mark.parametrize("number", range(len(FABRICS)))
def test_some_backup_spares_each_link_and_switch_that_can_be(number: int):
    plan, whole = made(number)
    topology = plan.topology
    assert not prove(topology, whole)
    for link in range(topology.link_count):
        assert not divert(topology, whole, failed_elements(topology, [link])).waiting.any()
    for switch in range(topology.switch_count):
        failed = failed_elements(topology, switches=[switch])
        others = np.arange(topology.switch_count) != switch
        apart = cut_off(topology, failed) & others[topology.host_switch] & others[topology.host_switch][:, None]
        if not apart.any():
            assert not divert(topology, whole, failed).waiting.any()


def test_proofs_find_planted_faults():
    plan, whole = made(0)
    topology = plan.topology
    tagged = whole.vlans.tagged_links.copy()
    tagged[0, np.flatnonzero(tagged[0])[0]] = False
    assert prove(topology, replace(whole, vlans=replace(whole.vlans, tagged_links=tagged)))
    looped = whole.backups.tagged_links.copy()
    looped[1, np.flatnonzero(~looped[1])[0]] = True
    assert prove(topology, replace(whole, backups=replace(whole.backups, tagged_links=looped)))
    dead = whole.dead.copy()
    dead[3] = True
    assert any(violation.invariant == "dead link" for violation in prove(topology, replace(whole, dead=dead)))
