"""Hosts that tag: the VLAN of each pair holds its path, frames take it by rules and by tables, and faults show."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.base.model import HostTaggedPlan, host_mac
from testbed.dataplane.switch_tables import switch_tables
from testbed.engines.realtime.check_paths import walk
from testbed.fabric.openflow.compile import compile_rules, count_rules
from testbed.fabric.openflow.oracle import BROADCAST, Oracle
from testbed.fabric.openflow.tables import UNTAGGED
from testbed.fabric.routing.paths import path
from testbed.fabric.verify import verify
from testbed.planning import Plan, make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from tests.fabrics import fabrics, scenario_of

HOST_TAGGED = {"assignment": {"kind": "host_tagged"}}


def plan_of(kind: str, routing: dict[str, Any] | None = None, assignment: Any = None, **topology: Any) -> Plan:
    blocks = {"topology": {"kind": kind, **topology}, "assignment": assignment or {"kind": "host_tagged"}}
    return make_plan(scenario_of(blocks if routing is None else blocks | {"routing": routing}))


def pairs(plan: Plan) -> list[tuple[int, int]]:
    hosts = range(plan.topology.host_count)
    return [(source, end) for source in hosts for end in hosts if source != end]


def misled(plan: Plan, vlans: HostTaggedPlan) -> set[tuple[int, int]]:
    """Pairs whose frame, sent as the plan has it, does not arrive once, as the receiver takes it, along its path."""
    oracle, found = Oracle(plan.topology, compile_rules(plan.topology, vlans)), set()
    for source, end in pairs(plan):
        tag = vlans.host_tag(source, end)
        sent = oracle.send(source, host_mac(end), UNTAGGED if tag is None else tag)
        as_taken = sent.tagged == ((end,) if vlans.takes_tags(end) else ())
        if sent.received != {end: 1} or sent.channels != path(plan.topology, plan.routes, source, end) or not as_taken:
            found.add((source, end))
    return found


@settings(max_examples=12)
@given(fabrics())
def test_frames_that_hosts_tag_take_the_path_of_their_pair(blocks):
    plan = make_plan(scenario_of(blocks | HOST_TAGGED))
    assert isinstance(plan.vlans, HostTaggedPlan)
    assert plan.violations == ()
    assert misled(plan, plan.vlans) == set()
    assert count_rules(plan.topology, plan.vlans) == len(plan.rules)
    tables = switch_tables(plan.topology, plan.vlans, None)
    for source, end in pairs(plan):
        taken, arrives = walk(tables, plan.topology, source, end, plan.vlans.host_tag(source, end))
        assert (tuple(taken), arrives) == (path(plan.topology, plan.routes, source, end), end)
        assert walk(tables, plan.topology, source, end) == ([], -1)


@settings(max_examples=8)
@given(fabrics())
def test_broadcasts_reach_all_others_once_in_each_vlan(blocks):
    plan = make_plan(scenario_of(blocks | HOST_TAGGED))
    oracle, everyone = Oracle(plan.topology, plan.rules), set(range(plan.topology.host_count))
    for vlan in plan.vlans.vlan_ids.tolist():
        sent = oracle.send(0, BROADCAST, vlan)
        assert sent.received == dict.fromkeys(everyone - {0}, 1)
        assert (set(sent.tagged), sent.endless) == (everyone - {0}, False)
    assert oracle.broadcast(0).received == {}


@settings(max_examples=10)
@given(fabrics())
def test_a_plan_of_hosts_that_tag_survives_json(blocks):
    plan = make_plan(scenario_of(blocks | HOST_TAGGED))
    back = plan_from_json(plan_to_json(plan))
    assert (back.digest, back.rules) == (plan.digest, plan.rules)
    assert verify(back.topology, back.routes, back.vlans, None) == ()


@pytest.mark.parametrize("routing", ["updown", "sr", "tbtp", "stp", "lturn"])
def test_paths_from_one_source_may_be_in_several_trees(routing):
    plan = plan_of("random", switches=10, degree=4, seed=3, routing={"kind": routing})
    assert isinstance(plan.vlans, HostTaggedPlan)
    assert plan.violations == ()
    assert misled(plan, plan.vlans) == set()
    several = [len(np.unique(np.delete(row, host))) > 1 for host, row in enumerate(plan.vlans.pair_vlan)]
    assert any(several) == (routing != "stp")


def mesh(**assignment: object) -> tuple[Plan, HostTaggedPlan]:
    plan = plan_of("mesh", sizes=[3, 3], assignment={"kind": "host_tagged", **assignment})
    assert isinstance(plan.vlans, HostTaggedPlan)
    return plan, plan.vlans


def with_other_vlan(vlans: HostTaggedPlan, number: int) -> HostTaggedPlan:
    pair_vlan = vlans.pair_vlan.copy()
    source, end = np.argwhere(~np.eye(len(pair_vlan), dtype=bool))[number % (len(pair_vlan) * (len(pair_vlan) - 1))]
    pair_vlan[source, end] = (pair_vlan[source, end] + 1) % vlans.vlan_count
    return dataclasses.replace(vlans, pair_vlan=pair_vlan)


def without_member(vlans: HostTaggedPlan, number: int) -> HostTaggedPlan:
    tagged = np.array(vlans.tagged_hosts)
    host = number % tagged.shape[1]
    used = np.unique(np.delete(vlans.pair_vlan[host], host))
    tagged[used[number % len(used)], host] = False
    return dataclasses.replace(vlans, tagged_hosts=tagged)


def untagged_member(vlans: HostTaggedPlan, number: int) -> HostTaggedPlan:
    untagged = np.array(np.broadcast_to(vlans.untagged_hosts, vlans.tagged_hosts.shape))
    untagged[number % vlans.vlan_count, number % untagged.shape[1]] = True
    return dataclasses.replace(vlans, untagged_hosts=untagged)


def without_link(vlans: HostTaggedPlan, number: int) -> HostTaggedPlan:
    links = vlans.tagged_links.copy()
    inside = np.argwhere(links)
    vlan, link = inside[number % len(inside)]
    links[vlan, link] = False
    return dataclasses.replace(vlans, tagged_links=links)


@pytest.mark.parametrize(
    ("fault", "invariants"),
    [
        (without_member, {"tagging"}),
        (untagged_member, {"tagging"}),
        (without_link, {"tree"}),
    ],
)
@given(number=st.integers(0, 10_000))
@settings(max_examples=8)
def test_planted_faults_are_named(fault: Callable[[HostTaggedPlan, int], HostTaggedPlan], invariants, number):
    plan, vlans = mesh()
    broken = fault(vlans, number)
    assert invariants <= {violation.invariant for violation in verify(plan.topology, plan.routes, broken, None)}


@given(number=st.integers(0, 10_000))
@settings(max_examples=12)
def test_a_pair_in_another_vlan_is_named_where_its_path_changes(number):
    plan, vlans = mesh()
    broken = with_other_vlan(vlans, number)
    named = {v.invariant for v in verify(plan.topology, plan.routes, broken, None)} & {"path", "delivery"}
    assert bool(named) == bool(misled(plan, broken))


def test_a_host_without_tags_keeps_a_port_with_a_pvid():
    plan, vlans = mesh(untagged=["h5"])
    assert plan.violations == ()
    assert misled(plan, vlans) == set()
    assert vlans.host_tag(4, 0) is None
    assert not vlans.takes_tags(4)
    assert vlans.host_tag(0, 4) is not None
    other = dataclasses.replace(vlans, pvid=(vlans.pvid + 1) % vlans.vlan_count)
    assert "tagging" in {violation.invariant for violation in verify(plan.topology, plan.routes, other, None)}
