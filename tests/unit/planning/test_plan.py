from __future__ import annotations

import dataclasses
import json

import pytest

from testbed.base.errors import InputError, VerificationError
from testbed.base.model import Violation
from testbed.fabric.routing.paths import path
from testbed.fabric.verify import DEADLOCK, verify
from testbed.planning import make_plan
from testbed.planning.store import SCHEMA_VERSION, plan_from_json, plan_to_json
from testbed.planning.summary import summary
from tests.fabrics import plan_of, scenario_of

CYCLIC = "topology: {kind: ring, switches: 5}\nrouting: {ring: shortest}\n"


def test_summary_is_json_and_has_what_programs_ask_for():
    figures = json.loads(json.dumps(summary(plan_of("mesh", sizes=[3, 2], parallel_links=2))))
    assert set(figures) >= {
        "switches", "switch_links", "hosts", "vlans", "rules", "mean_switches_on_path", "max_channel_load",
        "deadlock_free", "digest",
    }  # fmt: skip
    assert (figures["switches"], figures["switch_links"], figures["hosts"]) == (6, 14, 6)
    assert figures["unused_channels"] == 28 - 24  # a source uses one of two parallel links, and a path its own row


def test_a_broken_plan_is_stopped_and_every_violation_shown():
    plan = plan_of("mesh", sizes=[2])
    plan.require_proof()
    broken = dataclasses.replace(plan, violations=(Violation("tree", "one"), Violation("path", "two")))
    with pytest.raises(VerificationError) as error:
        broken.require_proof()
    assert str(error.value) == "test.yaml: verification failed, nothing was built\n  tree: one\n  path: two"


def test_a_declared_deadlock_is_let_through_but_nothing_else():
    plan = make_plan(scenario_of(CYCLIC + "expect: deadlock"))
    assert not plan.deadlock_free
    plan.require_proof()
    worse = dataclasses.replace(plan, violations=(*plan.violations, Violation("tree", "one")))
    with pytest.raises(VerificationError, match=r"tree: one$"):
        worse.require_proof()


def test_an_undeclared_deadlock_says_how_to_declare_it():
    with pytest.raises(VerificationError, match=f"{DEADLOCK}: (.|\n)*declares it with expect: deadlock$"):
        make_plan(scenario_of(CYCLIC)).require_proof()


def test_a_declared_deadlock_that_is_not_there():
    with pytest.raises(VerificationError, match="has no cycle; nothing was built"):
        make_plan(scenario_of("topology: {kind: ring, switches: 3}\nexpect: deadlock")).require_proof()


def test_digest_tells_fabrics_apart_and_ignores_the_rest():
    ring = {"topology": {"kind": "ring", "switches": 5}}
    digest = make_plan(scenario_of(ring)).digest
    assert make_plan(scenario_of(ring | {"lab": {"dilation": 7}, "description": "x"})).digest == digest
    others = [
        {"topology": {"kind": "ring", "switches": 6}},
        {"topology": {"kind": "ring", "switches": 5, "hosts_per_switch": 2}},
        {"topology": {"kind": "ring", "switches": 5, "parallel_links": 2}},
        ring | {"routing": {"ring": "shortest"}},
        ring | {"assignment": {"first_vlan": 11}},
        ring | {"assignment": {"entries": "all"}},
    ]
    assert len({digest, *(make_plan(scenario_of(other)).digest for other in others)}) == 1 + len(others)


def test_violations_survive_json():
    plan = make_plan(scenario_of(CYCLIC))
    assert plan_from_json(plan_to_json(plan)).violations == plan.violations != ()


@pytest.mark.parametrize(("carried", "asked"), [("link", "node"), ("link", "dest"), ("dest", "link"), ("node", "none")])
def test_vlans_with_other_paths_than_the_routes_are_noticed(carried, asked):
    """All pairs arrive, some on another plane: exactly those are named, in either relation of routes."""
    plans = [
        plan_of("torus", {"kind": "dor", "planes": planes}, sizes=[4, 3], parallel_links=2)
        for planes in (carried, asked)
    ]
    topology, hosts = plans[0].topology, range(12)
    taken, wanted = (
        {(a, b): path(topology, plan.routes, a, b) for a in hosts for b in hosts if a != b} for plan in plans
    )
    found = verify(topology, plans[1].routes, plans[0].vlans, None)
    assert {v.invariant for v in found} == {"path"}
    assert {v.sentence.split(" ")[0] for v in found} == {
        f"h{a + 1}→h{b + 1}" for a, b in taken if taken[a, b] != wanted[a, b]
    }
    for violation in found:
        a, b = (int(host[1:]) - 1 for host in violation.sentence.split(" ")[0].split("→"))
        assert violation.witness == tuple(topology.channel_name(channel) for channel in taken[a, b])


def test_a_plan_of_another_version_is_refused():
    raw = json.loads(plan_to_json(plan_of("flat", hosts=2)))
    raw["schema_version"] = SCHEMA_VERSION + 1
    with pytest.raises(InputError, match=f"has schema version {SCHEMA_VERSION + 1}; this program reads"):
        plan_from_json(json.dumps(raw))


def test_problems_of_routing_and_of_loads_come_together():
    with pytest.raises(InputError) as error:
        make_plan(scenario_of(
            "topology: {kind: mesh, sizes: [3, 2]}\nrouting: {kind: tree}\n"
            "workloads: [{kind: ping}, {kind: iperf3, protocol: tcp, pattern: transpose}, {kind: mpi, job: x}]"
        ))  # fmt: skip
    assert [problem.place for problem in error.value.problems] == [
        "test.yaml: routing.kind", "test.yaml: workloads.0.pattern", "test.yaml: workloads.1.pattern",
    ]  # fmt: skip


def test_loads_need_two_hosts():
    with pytest.raises(InputError, match=r"^test.yaml: workloads: a load needs two hosts or more"):
        make_plan(scenario_of("topology: {kind: flat, hosts: 1}\nworkloads: [{kind: mpi, job: x}]"))
    assert make_plan(scenario_of("topology: {kind: flat, hosts: 1}")).violations == ()


def test_a_thousand_pairs_off_their_way_are_told_then_counted():
    plans = [
        plan_of("torus", {"kind": "dor", "planes": planes}, sizes=[8, 8], parallel_links=2)
        for planes in ("link", "none")
    ]
    found = verify(plans[0].topology, plans[1].routes, plans[0].vlans, None)
    wrong = sum(
        path(plans[0].topology, plans[0].routes, a, b) != path(plans[0].topology, plans[1].routes, a, b)
        for a in range(64)
        for b in range(64)
    )
    told = [violation for violation in found if violation.invariant == "path"]
    assert wrong > 1000 == len(told) - 1
    assert told[-1].sentence == f"{wrong - 1000} more pairs take another path than the routes say"
