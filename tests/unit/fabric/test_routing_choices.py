"""Equal-cost multipath, shortest-path bridging and Valiant: sets, hashes and trees as their definitions have them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.experiments.analyse import analyse
from testbed.experiments.analyse.channel_load import load_of
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.ecmp import EcmpOptions, route_ecmp
from testbed.fabric.routing.next_hop_sets import expected_load, hash_flows, shortest_next_hops
from testbed.fabric.routing.paths import path
from testbed.fabric.routing.spb import MASKS, SpbOptions, rank_bridges, route_spb
from testbed.fabric.routing.updown import UpDownOptions, route_updown
from testbed.fabric.verify.next_hop_choices import check_chosen
from testbed.planning import make_plan
from testbed.planning.prove_stored import proved_plan
from testbed.planning.store import plan_to_json
from tests.fabrics import atlas_fabrics, graph_of, plan_of, random_fabrics, scenario_of, topology_of

CLOS = {"kind": "myrinet_clos", "leaves": 4, "roots": 4, "hosts_per_leaf": 2}


def fractions(topology):
    """(channel → Fraction) of one unit from each switch with hosts to each other, split evenly at each switch."""
    graph = nx.MultiDiGraph()
    for channel in range(len(topology.channel_source)):
        graph.add_edge(int(topology.channel_source[channel]), int(topology.channel_target[channel]), key=channel)
    ends = sorted(set(topology.host_switch.tolist()))
    load = dict.fromkeys(range(len(topology.channel_source)), Fraction(0))
    for goal in ends:
        hops = nx.single_source_shortest_path_length(graph.reverse(), goal)
        at = {switch: Fraction(int(switch in ends)) for switch in graph}
        for switch in sorted(graph, key=hops.__getitem__, reverse=True):
            nearer = [(b, c) for _, b, c in graph.out_edges(switch, keys=True) if hops[b] == hops[switch] - 1]
            for after, channel in nearer:
                at[after] += at[switch] / len(nearer)
                load[channel] += at[switch] / len(nearer)
    return load


@pytest.mark.parametrize("topology", [*atlas_fabrics()[40::97], *random_fabrics(6)])
def test_expected_loads_are_exact_shares(topology):
    hops = shortest_next_hops(topology)
    found = expected_load(topology, hops, np.ones((len(hops.goal), len(hops.goal))))
    wanted = fractions(topology) if topology.switch_count > 1 else {}
    assert found == pytest.approx([float(wanted[channel]) for channel in range(len(found))])


def test_the_sets_are_the_next_hops_of_all_shortest_paths():
    for topology in (*atlas_fabrics()[::53], *random_fabrics(4)):
        hops, graph = shortest_next_hops(topology), graph_of(topology)
        for key, goal in enumerate(hops.goal.tolist()):
            near = nx.single_source_shortest_path_length(graph, goal)
            for switch in range(topology.switch_count):
                number = hops.table[switch, key]
                some = [] if number < 0 else hops.hop[hops.start[number] : hops.start[number + 1]].tolist()
                leaving = np.flatnonzero(topology.channel_source == switch).tolist()
                assert some == [c for c in leaving if near[int(topology.channel_target[c])] == near[switch] - 1]


def test_a_hash_spreads_flows_and_another_seed_gives_other_paths():
    topology = topology_of("myrinet_clos", leaves=24, roots=8, hosts_per_leaf=1)
    ways = [route_ecmp(topology, EcmpOptions(**options)) for options in ({}, {"seed": 2}, {"source_port": 50000})]
    assert all(not np.array_equal(one.paths.hop, other.paths.hop) for one, other in itertools.combinations(ways, 2))
    up = ways[0].paths.hop[::2]
    roots = np.bincount(topology.channel_target[up] - 24, minlength=8)
    assert roots.sum() == 24 * 23
    expected = roots.sum() / 8
    assert ((roots - expected) ** 2 / expected).sum() < 18.5  # chi-squared with 7 degrees of freedom: 1 %
    again = route_ecmp(topology, EcmpOptions())
    assert np.array_equal(again.paths.hop, ways[0].paths.hop)
    assert len(np.unique(hash_flows(topology, 1, 49152))) == 24 * 24


def test_ecmp_without_alternatives_says_so_and_is_one_path():
    assert plan_of("tree", {"kind": "ecmp"}, switches=5).routes.notes == (
        "no switch has two next hops for a destination here, so this is one path a pair",
    )
    assert plan_of("myrinet_clos", {"kind": "ecmp"}).routes.notes == ()


def test_ecmp_is_deadlock_free_on_a_clos_and_refused_on_a_mesh():
    assert plan_of("fat_tree", {"kind": "ecmp"}, up=2, down=2, rounds=3).is_proved
    for seed in range(3):
        plan = plan_of("mesh", {"kind": "ecmp", "seed": seed}, sizes=[2, 3])
        assert [violation.invariant for violation in plan.violations] == ["deadlock"]
        assert len(plan.violations[0].witness) == 4


def test_paths_that_are_not_among_the_choices_are_found():
    plan = plan_of("myrinet_clos", {"kind": "ecmp"})
    text = plan_to_json(plan)
    assert proved_plan(text, "plan.json").digest == plan.digest
    topology = topology_of("ring", switches=7)
    longer = route_updown(topology, UpDownOptions())
    hops = np.diff(longer.paths.start).reshape(7, 7)
    shortest = np.array([[nx.shortest_path_length(graph_of(topology), a, b) for b in range(7)] for a in range(7)])
    (violation,) = check_chosen(topology, longer, shortest_next_hops(topology))
    assert violation.invariant == "choices"
    assert set(violation.witness) == {f"s{a + 1}→s{b + 1}" for a, b in np.argwhere(hops > shortest)}


def test_a_plan_without_tables_is_built_and_written_for_nothing():
    plan = make_plan(scenario_of({"topology": CLOS, "routing": {"kind": "ecmp"}}))
    assert (plan.is_proved, plan.rules) == (True, ())
    with pytest.raises(InputError, match=r'assignment.kind: "model" has no tables .* set engine: simulate'):
        plan.require_tables()
    named = make_plan(scenario_of({"topology": CLOS, "routing": {"kind": "ecmp"}, "switch_model": "PC6224"}))
    assert [violation.invariant for violation in named.violations] == ["switch model"]


def test_trees_of_shortest_path_bridging_are_shortest_both_ways():
    for topology in (*atlas_fabrics()[::67], *random_fabrics(4)):
        graph = graph_of(topology)
        for algorithm in (1, 2, 7, 16):
            routes = route_spb(topology, SpbOptions(algorithm=algorithm))
            for one, other in itertools.permutations(range(topology.host_count), 2):
                there, back = (path(topology, routes, *pair) for pair in ((one, other), (other, one)))
                assert [c ^ 1 for c in reversed(back)] == list(there)
                ends = (int(topology.host_switch[host]) for host in (one, other))
                assert len(there) == nx.shortest_path_length(graph, *ends)


def test_each_algorithm_takes_the_lowest_masked_identifiers():
    """On a clos the choice is one root: the one whose identifier is lowest under the mask (802.1aq, 28.8)."""
    topology = topology_of("myrinet_clos", leaves=3, roots=4, hosts_per_leaf=1)
    taken = []
    for number, mask in enumerate(MASKS, start=1):
        routes = route_spb(topology, SpbOptions(algorithm=number))
        root = int(topology.channel_target[path(topology, routes, 0, 1)[0]])
        lowest = min(range(3, 7), key=lambda bridge: (bridge + 1) ^ mask & 0xFF)
        assert root == lowest
        taken.append(root)
    assert len(MASKS) == len(set(MASKS)) == 16
    assert set(taken) == {3, 4, 5, 6}
    assert rank_bridges(4, 0xFF).tolist() == [3, 2, 1, 0]


def test_valiant_goes_by_a_drawn_switch_and_has_no_cycle():
    for topology in random_fabrics(4):
        for drawn_for in ("destination", "pair"):
            kind = ROUTINGS["valiant"]
            routes = kind.route(topology, kind.options(drawn_for=drawn_for, seed=3))
            assert (routes.layers, routes.allowed is not None) == (2, True)
    blocks = {"topology": {"kind": "torus", "sizes": [4, 4]}, "assignment": {"kind": "model"}}
    plan = make_plan(scenario_of({**blocks, "routing": {"kind": "valiant", "drawn_for": "pair"}}))
    assert plan.violations == ()
    direct = plan_of("torus", {"kind": "updown"}, sizes=[4, 4])
    assert len(plan.routes.paths.hop) > len(direct.routes.paths.hop)


def test_analyse_expects_the_mean_and_a_simulation_drawn_paths():
    plan = plan_of("myrinet_clos", {"kind": "ecmp"}, leaves=4, roots=4, hosts_per_leaf=4)
    (found,) = analyse(plan).loads
    assert (found.expected, found.max, found.saturation) == (True, 12.0, 1.0)
    drawn = load_of(plan.topology, plan.routes, "all_to_all", 1)
    assert drawn.max > 12
    assert drawn.flows.sum() == pytest.approx(found.flows.sum())
    (hot,) = analyse(plan, ["hotspot:h1"]).loads
    assert hot.flows.max() == 3.0
    assert hot.saturation == pytest.approx(1 / 15)
