"""What holds for every topology with a legal routing."""

from __future__ import annotations

import dataclasses
from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
from hypothesis import given

from testbed.base.model import Topology
from testbed.fabric.openflow.compile import count_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.routing.paths import channel_load, path, switches_on_path
from testbed.fabric.verify import verify
from testbed.fabric.vlans.mac_entries import entries_of, entry_counts
from testbed.planning import make_plan
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.planning.summary import summary
from tests.fabrics import fabrics, graph_of, grids, longest_ring, scenario_of


def host_pairs(topology: Topology):
    hosts = range(topology.host_count)
    return [(source, end) for source in hosts for end in hosts if source != end]


@given(fabrics())
def test_every_pair_takes_its_path_and_broadcasts_come_once(blocks):
    plan = make_plan(scenario_of(blocks))
    topology = plan.topology
    assert plan.violations == ()
    plan.require_proof()
    oracle = Oracle(topology, plan.rules)
    for source, end in host_pairs(topology):
        delivery = oracle.unicast(source, end)
        assert delivery.received == {end: 1}
        assert delivery.channels == path(topology, plan.routes, source, end)
        assert (delivery.tagged, delivery.dropped, delivery.endless) == ((), (), False)
    for source in range(topology.host_count):
        delivery = oracle.broadcast(source)
        assert delivery.received == {host: 1 for host in range(topology.host_count) if host != source}
        assert (delivery.tagged, delivery.endless) == ((), False)


@given(fabrics())
def test_paths_are_contiguous_without_u_turn_and_counts_agree(blocks):
    plan = make_plan(scenario_of(blocks))
    topology, routes = plan.topology, plan.routes
    on_path = switches_on_path(topology, routes)
    load: Counter[int] = Counter()
    for source, end in host_pairs(topology):
        channels = path(topology, routes, source, end)
        at = topology.host_switch[source]
        for channel in channels:
            assert topology.channel_source[channel] == at
            at = topology.channel_target[channel]
        assert at == topology.host_switch[end]
        assert not any(after == before ^ 1 for before, after in pairwise(channels))
        assert on_path[source, end] == len(channels) + 1
        load.update(channels)
    assert (on_path.diagonal() == 1).all()
    assert channel_load(topology, routes).tolist() == [load[c] for c in range(len(topology.channel_source))]


@given(fabrics())
def test_paths_are_shortest_unless_rings_are_kept_from_transit(blocks):
    plan = make_plan(scenario_of(blocks))
    shortest = dict(nx.all_pairs_shortest_path_length(graph_of(plan.topology)))
    hops = switches_on_path(plan.topology, plan.routes) - 1
    switch = plan.topology.host_switch
    detours = [
        (source, end)
        for source, end in host_pairs(plan.topology)
        if hops[source, end] != shortest[switch[source]][switch[end]]
    ]
    way = blocks.get("routing", {}).get("ring")
    assert detours == [] or (way in ("auto", "no_transit") and longest_ring(blocks) > 3) or way == "two_trees"
    assert detours == [] or way in ("no_transit", "two_trees") or plan.routes.notes


@given(grids())
def test_dimensions_are_crossed_in_order(blocks):
    plan = make_plan(scenario_of(blocks))
    where = plan.topology.coordinates
    for source, end in host_pairs(plan.topology):
        crossed = []
        for channel in path(plan.topology, plan.routes, source, end):
            before, after = plan.topology.channel_source[channel], plan.topology.channel_target[channel]
            crossed += np.flatnonzero(where[before] != where[after]).tolist()
        assert crossed == sorted(crossed)


@given(fabrics())
def test_each_vlan_is_a_tree_over_all_hosts(blocks):
    plan = make_plan(scenario_of(blocks))
    for links in plan.vlans.tagged_links:
        tree = nx.MultiGraph()
        tree.add_nodes_from(plan.topology.host_switch.tolist())
        tree.add_edges_from(plan.topology.links[links].tolist())
        assert nx.is_tree(tree)
    assert plan.vlans.untagged_hosts.all()
    assert len(set(plan.vlans.vlan_ids.tolist())) == plan.vlans.vlan_count


@given(fabrics())
def test_the_same_scenario_gives_the_same_digest(blocks):
    assert make_plan(scenario_of(blocks)).digest == make_plan(scenario_of(blocks)).digest


def assert_same(before, after):
    assert type(after) is type(before)
    if isinstance(before, np.ndarray):
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        assert (after == before).all()
    elif dataclasses.is_dataclass(before):
        for field in dataclasses.fields(before):
            assert_same(getattr(before, field.name), getattr(after, field.name))
    else:
        assert after == before


@given(fabrics())
def test_a_plan_survives_json(blocks):
    plan = make_plan(scenario_of(blocks))
    back = plan_from_json(plan_to_json(plan))
    for part in ("topology", "routes", "vlans"):
        assert_same(getattr(plan, part), getattr(back, part))
    assert (back.rules, back.scenario) == (plan.rules, plan.scenario)
    assert summary(back) == summary(plan)
    assert verify(back.topology, back.routes, back.vlans, None) == ()


@given(fabrics())
def test_entries_of_all_switches_change_no_path(blocks):
    every = make_plan(scenario_of(blocks | {"assignment": {"entries": "all"}}))
    used = make_plan(scenario_of(blocks))
    assert every.violations == ()

    def entries(plan):
        found = entries_of(plan.topology, plan.vlans)
        assert np.array_equal(
            np.bincount(found.switch, minlength=plan.topology.switch_count), entry_counts(plan.topology, plan.vlans)
        )
        assert count_rules(plan.topology, plan.vlans) == len(plan.rules)
        return set(
            zip(*(column.tolist() for column in (found.vlan, found.switch, found.host, found.port)), strict=True)
        )

    assert entries(used) <= entries(every)
