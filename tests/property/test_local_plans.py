"""Local VLANs and OpenFlow on every topology: planned exactly where the paths allow it, proved, and followed."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from testbed.base.errors import InputError
from testbed.base.model import LocalPlan, Routes, Topology
from testbed.fabric.openflow.compile import count_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.paths import hops, source_keys
from testbed.fabric.verify import verify
from testbed.fabric.verify.flooding import multiplication
from testbed.fabric.vlans import ASSIGNMENTS
from testbed.fabric.vlans.local_vlans import vlan_count
from testbed.planning import Plan, make_plan
from testbed.planning.scenario_fabric import build_fabric
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.planning.summary import summary
from tests.fabrics import atlas_fabrics, fabrics, random_fabric, scenario_of

LOCAL = ("renamed", "static", "openflow")
SELECTIONS = ("balanced", "low_port", "random")


def assignments() -> st.SearchStrategy[dict[str, Any]]:
    renamed = st.fixed_dictionaries({"kind": st.just("renamed"), "merge": st.sampled_from(["members", "entries"])})
    others = st.fixed_dictionaries({"kind": st.sampled_from(["static", "openflow"])})
    floods = st.sampled_from(["tree", "none"])
    return st.builds(lambda kind, flood: {**kind, "flood": flood}, renamed | others, floods)


def next_hops_agree(topology: Topology, routes: Routes, *, by_arrival: bool) -> bool:
    """Whether a table of next hops holds all paths, by filling one pair after pair."""
    channels = len(topology.channel_source)
    keys = source_keys(topology, routes)
    table: dict[tuple[object, int], int] = {}
    for source in range(topology.host_count):
        for end in range(topology.host_count):
            at: object = ("from", int(keys[source])) if by_arrival else int(topology.host_switch[source])
            for hop in (*hops(topology, routes, source, end), -1 - int(topology.host_switch[end])):
                if table.setdefault((at, end), hop) != hop:
                    return False
                if hop >= 0:
                    at = hop if by_arrival else int(topology.channel_target[hop % channels])
    return True


def planned(blocks: dict[str, Any]) -> Plan | None:
    """The plan, or None where the assignment does not fit the paths; that must be so."""
    scenario, kind = scenario_of(blocks), blocks["assignment"]["kind"]
    topology = build_fabric(scenario)
    routes = ROUTINGS[scenario.routing_kind].route(topology, scenario.routing)
    fits = next_hops_agree(topology, routes, by_arrival=kind != "static")
    if fits:
        return make_plan(scenario)
    with pytest.raises(InputError, match=f'"{kind}" needs one next hop for each'):
        make_plan(scenario)
    return None


@given(fabrics(), assignments())
@settings(max_examples=60)
def test_every_pair_takes_its_path_and_broadcasts_their_tree(blocks, assignment):
    plan = planned({**blocks, "assignment": assignment})
    if plan is None:
        reject()
    topology, channels = plan.topology, max(len(plan.topology.channel_source), 1)
    assert plan.violations == ()
    rules = plan.rules
    assert len(rules) == count_rules(topology, plan.vlans)
    oracle = Oracle(topology, rules)
    for source in range(topology.host_count):
        for end in range(topology.host_count):
            if source == end:
                continue
            sent, wanted = oracle.unicast(source, end), hops(topology, plan.routes, source, end)
            assert sent.received == {end: 1}
            assert sent.channels == tuple(hop % channels for hop in wanted)
            assert (sent.tagged, sent.dropped, sent.endless) == ((), (), False)
            tag = 1 if plan.vlans.tagged_trunks else -1
            assert sent.tags == tuple((tag, hop // channels) for hop in wanted)
        reached = {host: 1 for host in range(topology.host_count) if host != source}
        flood = oracle.broadcast(source)
        assert flood.received == (reached if assignment["flood"] == "tree" else {})
        assert (flood.tagged, flood.endless) == ((), False)


@given(fabrics(), assignments())
@settings(max_examples=30)
def test_a_plan_survives_json(blocks, assignment):
    try:
        plan = make_plan(scenario_of({**blocks, "assignment": assignment}))
    except InputError:
        reject()
    back = plan_from_json(plan_to_json(plan))
    for field in dataclasses.fields(plan.vlans):
        one, other = getattr(plan.vlans, field.name), getattr(back.vlans, field.name)
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)
        assert not isinstance(one, np.ndarray) or one.dtype == other.dtype
    assert (back.rules, summary(back), back.digest) == (plan.rules, summary(plan), plan.digest)
    assert verify(back.topology, back.routes, back.vlans, None) == ()


def any_topology_routings() -> list[str]:
    return [name for name, kind in ROUTINGS.items() if kind.any_topology and kind.deadlock_free]


def small_fabrics() -> list[Topology]:
    return [*atlas_fabrics()[::29], *(random_fabric(seed) for seed in range(0, 40, 5))]


@pytest.mark.parametrize("name", any_topology_routings())
def test_routings_fit_exactly_where_a_table_holds_their_paths(name):
    """By selection, where the routing has one; a plan that is made is proved, another is refused rightly."""
    kind = ROUTINGS[name]
    choices: list[dict[str, Any]] = [{}]
    if "selection" in {field.name for field in dataclasses.fields(kind.options)}:
        choices = [{"selection": way, **({"seed": 1} if way == "random" else {})} for way in SELECTIONS]
    for topology in small_fabrics():
        for options in choices:
            routes = kind.route(topology, kind.options(**options))
            for assignment in LOCAL:
                assign = ASSIGNMENTS[assignment]
                fits = next_hops_agree(topology, routes, by_arrival=assignment != "static")
                fits &= routes.layers == 1 or assignment == "openflow"
                try:
                    plan = assign.assign(topology, routes, assign.options())
                except InputError:
                    assert not fits
                    continue
                assert fits
                assert verify(topology, routes, plan, None) == ()


def local_plan(topology: Topology, routes: Routes, assignment: str, **options: str) -> LocalPlan:
    kind = ASSIGNMENTS[assignment]
    plan = kind.assign(topology, routes, kind.options(**options))
    assert isinstance(plan, LocalPlan)
    return plan


def brute_multiplication(topology: Topology, plan: LocalPlan) -> tuple[float, float]:
    """Send each copy on, one after the other."""
    members = [set(plan.member_port[a:b].tolist()) for a, b in pairwise(plan.member_start)]
    copies = np.zeros((topology.host_count, topology.switch_count))
    ports = list(zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True))
    for host in range(topology.host_count):
        waiting = [(int(plan.host_vlan[host]), -1)]
        while waiting:
            vlan, back = waiting.pop()
            for channel, (switch, port) in enumerate(ports):
                if switch == plan.vlan_switch[vlan] and port in members[vlan] and channel != back:
                    copies[host, topology.channel_target[channel]] += 1
                    assert copies.max() < 10_000
                    waiting.append((int(plan.channel_vlan[channel]), channel ^ 1))
        copies[host, topology.host_switch[host]] = 0
    return copies.sum() / max(topology.host_count * (topology.switch_count - 1), 1), copies.max()


@pytest.mark.parametrize("seed", range(1, 40, 3))
def test_multiplication_is_the_number_of_copies(seed):
    topology = random_fabric(seed)
    routes = ROUTINGS["updown"].route(topology, ROUTINGS["updown"].options())
    for merge in ("members", "entries"):
        plan = local_plan(topology, routes, "renamed", merge=merge)
        found = multiplication(topology, plan)
        graph = sent_on(topology, plan)
        if not nx.is_directed_acyclic_graph(graph):
            assert merge == "entries"
            assert found == (np.inf, np.inf)
        elif topology.switch_count <= 30:
            assert found == pytest.approx(brute_multiplication(topology, plan))


def sent_on(topology: Topology, plan: LocalPlan) -> nx.DiGraph:
    """Which channel a copy goes on by after which."""
    members = [set(plan.member_port[a:b].tolist()) for a, b in pairwise(plan.member_start)]
    graph = nx.DiGraph()
    for before, vlan in enumerate(plan.channel_vlan.tolist()):
        for after in range(len(topology.channel_source)):
            if (
                vlan >= 0
                and after != before ^ 1
                and topology.channel_source[after] == topology.channel_target[before]
                and int(topology.out_port[after]) in members[vlan]
            ):
                graph.add_edge(before, after)
    return graph


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_vlans_of_a_switch_differ_and_are_at_most_its_ports(seed):
    topology = random_fabric(seed)
    routes = ROUTINGS["updown"].route(topology, ROUTINGS["updown"].options())
    plan = local_plan(topology, routes, "renamed")
    fewest = local_plan(topology, routes, "renamed", merge="entries")
    counts = vlan_count(topology, plan)
    assert (counts <= topology.port_count).all()  # Koibuchi 2011, Theorem 2
    assert (vlan_count(topology, fewest) <= counts).all()
    entries: list[dict[int, int]] = [{} for _ in range(plan.class_count)]
    for vlan, key, hop in zip(plan.entry_vlan.tolist(), plan.entry_key.tolist(), plan.entry_hop.tolist(), strict=True):
        entries[vlan][key] = hop
    for first in range(plan.class_count):
        for second in range(first + 1, plan.class_count):
            if plan.vlan_switch[first] == plan.vlan_switch[second]:
                one, other = (
                    plan.member_port[plan.member_start[v] : plan.member_start[v + 1]].tolist() for v in (first, second)
                )
                both = entries[first].keys() & entries[second].keys()
                assert one != other or any(entries[first][key] != entries[second][key] for key in both)


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_the_tree_of_broadcasts_is_a_tree_over_all_hosts(seed):
    topology = random_fabric(seed)
    routes = ROUTINGS["updown"].route(topology, ROUTINGS["updown"].options())
    plan = local_plan(topology, routes, "openflow")
    assert plan.flood_links is not None
    tree = nx.MultiGraph()
    tree.add_nodes_from(topology.host_switch.tolist())
    tree.add_edges_from(topology.links[plan.flood_links].tolist())
    assert nx.is_tree(tree)
    with_hosts = set(topology.host_switch.tolist())
    assert all(node in with_hosts for node in tree if tree.degree(node) == 1)  # no branch without a host
