"""Old, backup and new tables that are in use together: every cycle of channels is named, by a graph of the test's own.

Paths are followed on the rules themselves, so nothing of what the program knows of dependencies is used.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.base.model import Rule, Topology, VlanPlan
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.transition.steps import place
from testbed.planning import Plan, make_plan
from testbed.planning.failover.coexistence import shared_cycles
from testbed.planning.failover.diversion import Diversion, divert
from testbed.planning.failover.failed_elements import FailedElements, failed_elements
from testbed.planning.failover.rules import backup_pvids, backup_rules, path_rules
from testbed.planning.failover.tables import Tables, recovered_tables, routings, whole_tables
from testbed.planning.failures import failure_outlooks, shared_cycle_sentences
from tests.fabrics import scenario_of

Edges = set[tuple[int, int]]
FABRICS: list[dict[str, Any]] = [
    {"topology": {"kind": "ring", "switches": 5}, "routing": {"kind": "stp"}},
    {"topology": {"kind": "ring", "switches": 6}},
    {"topology": {"kind": "mesh", "sizes": [3, 3]}},
    {"topology": {"kind": "complete", "switches": 4}},
    {"topology": {"kind": "torus", "sizes": [3, 3]}},
]


@cache
def made(number: int) -> tuple[Plan, Tables]:
    plan = make_plan(scenario_of(FABRICS[number]))
    assert isinstance(plan.vlans, VlanPlan)
    return plan, whole_tables(plan.topology, plan.routes, plan.vlans, plan.scenario.routing_kind)


def edges_of(topology: Topology, rules: list[Rule], senders: list[int]) -> Edges:
    """Channels that some frame of these hosts takes one after the other."""
    oracle = Oracle(topology, rules)
    found: Edges = set()
    for source in senders:
        for end in range(topology.host_count):
            if source != end:
                way = oracle.unicast(source, end)
                if set(way.received) <= {end}:  # what is cut off is dropped
                    found |= set(pairwise(way.channels))
    return found


def cyclic(edges: Edges, without: set[int]) -> bool:
    graph: dict[int, set[int]] = {}
    for before, after in edges:
        if not {before, after} & without:
            graph.setdefault(before, set()).add(after)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return True
    return False


def sets_of(topology: Topology, now: Tables, diversion: Diversion, after: Tables) -> dict[str, Edges]:
    """Dependencies of each of the tables, as rules lead frames."""
    everyone = list(range(topology.host_count))
    beside = [*backup_rules(topology, now)]
    found = {"old": edges_of(topology, [*path_rules(topology, now), *beside], everyone), "backup": set(), "new": set()}
    for number in {*diversion.backup.tolist()} - {-1}:
        pvids = {place(rule): rule for rule in backup_pvids(topology, now)[number]}
        rules = [pvids.get(place(rule), rule) for rule in (*path_rules(topology, now), *beside)]
        found["backup"] |= edges_of(topology, rules, everyone)
    if after is not now:
        found["new"] = edges_of(topology, [*path_rules(topology, after)], everyone)
    return found


def compare(topology: Topology, now: Tables, failed: FailedElements, after: Tables) -> int:
    """The program's cycles beside those of the test; returns how many there are."""
    diversion = divert(topology, now, failed)
    named = shared_cycles(topology, now, diversion, after, failed.links)
    sets = sets_of(topology, now, diversion, after)
    dead = {channel for link in np.flatnonzero(failed.links).tolist() for channel in (2 * link, 2 * link + 1)}
    for paths in (("old", "backup"), ("old", "new"), ("backup", "new")):
        both = sets[paths[0]] | sets[paths[1]]
        told = [cycle for cycle in named if cycle.paths == paths]
        assert bool(told) == (all(sets[one] for one in paths) and cyclic(both, set()))
        assert all(bool(cycle.dead) == (not cyclic(both, dead)) for cycle in told)
    assert bool(named) == cyclic(sets["old"] | sets["backup"] | sets["new"], set())
    assert any(not cycle.dead for cycle in named) == cyclic(sets["old"] | sets["backup"] | sets["new"], dead)
    return len(named)


@st.composite
def events(draw: st.DrawFn) -> tuple[int, list[FailedElements]]:
    number = draw(st.integers(0, len(FABRICS) - 1))
    topology = made(number)[0].topology
    links = st.lists(st.integers(0, topology.link_count - 1), max_size=2, unique=True)
    switches = st.lists(st.integers(0, topology.switch_count - 1), max_size=1)
    found = [failed_elements(topology, draw(links), [], draw(switches)) for _ in range(2)]
    return number, [*found, failed_elements(topology)]


@settings(deadline=None, max_examples=20)
@given(events())
def test_every_cycle_of_tables_that_are_in_use_together_is_named(case: tuple[int, list[FailedElements]]):
    number, states = case
    plan, whole = made(number)
    topology, now = plan.topology, whole
    ways = routings(topology, plan.scenario.routing_kind, plan.scenario.routing)
    for failed in states:
        after = recovered_tables(topology, whole, now, failed, ways)
        compare(topology, now, failed, after)
        now = after


def test_a_repair_that_closes_a_cycle_with_the_old_is_named():
    plan, whole = made(0)
    topology = plan.topology
    ways = routings(topology, plan.scenario.routing_kind, plan.scenario.routing)
    failed = failed_elements(topology, [0])
    damaged = recovered_tables(topology, whole, whole, failed, ways)
    assert compare(topology, whole, failed, damaged)
    assert compare(topology, damaged, failed_elements(topology), whole) == 1


@pytest.mark.parametrize("control", ["pause", "none"])
def test_plan_and_outlook_name_the_cycle_of_a_repair(control: str):
    blocks = (
        "topology: {kind: ring, switches: 6}\nrouting: {kind: stp}\nengine: realtime\n"
        f"simulator: {{flow_control: {control}}}\nlab: {{controller: segment_manager, dilation: 20}}\n"
        "workloads:\n- kind: probe\n  failures: ['at 1s: down s1-s2', 'at 2s: up s1-s2']"
    )
    plan = make_plan(scenario_of(blocks))
    down, up = failure_outlooks(plan)[0]
    cycle = "the channel dependency graph has a cycle: s1→s2 waits for s2→s3 waits for s3→s4 waits for s4→s5"
    (told,) = up.as_dict(plan.topology)["deadlock"]
    assert told.startswith(f"frames on old and new paths together: {cycle}")
    assert "comes back" not in told
    assert [one.words for one in down.cycles] == ["old and backup", "old and new"]
    assert all(one.sentence.endswith("; only if s1→s2, which is dead, comes back before the new tables are in")
               for one in down.cycles)  # fmt: skip
    assert (
        sum(sentence.startswith("load 1, at 2 s: up s1-s2: frames on old") for sentence in shared_cycle_sentences(plan))
        == 1
    )


def test_three_tables_are_named_where_no_two_close_a_cycle(monkeypatch: pytest.MonkeyPatch):
    plan, whole = made(0)
    topology = plan.topology
    new = replace(whole, routing="another")
    taken = {id(whole): [(0, 2)], id(new): [(4, 0)]}
    where = "testbed.planning.failover.coexistence"
    monkeypatch.setattr(f"{where}._dependencies", lambda topology, tables: np.array(taken[id(tables)], dtype=np.int32))
    monkeypatch.setattr(f"{where}._of_backups", lambda *_: np.array([(2, 4)], dtype=np.int32))
    nobody = np.zeros((topology.host_count, topology.host_count), dtype=bool)
    moved = Diversion(nobody, np.zeros(topology.host_count, dtype=np.int32), nobody)
    (told,) = shared_cycles(topology, whole, moved, new, whole.dead)
    assert told.sentence.startswith("frames on old, backup and new paths together: the channel dependency graph has a")
    taken[id(new)] = [(4, 6)]
    assert not shared_cycles(topology, whole, moved, new, whole.dead)


def test_tables_that_stay_are_not_new_ones():
    plan, whole = made(0)
    none = np.full(plan.topology.host_count, -1, dtype=np.int32)
    nobody = np.zeros((plan.topology.host_count, plan.topology.host_count), dtype=bool)
    assert not shared_cycles(plan.topology, whole, Diversion(nobody, none, nobody), whole, whole.dead)
