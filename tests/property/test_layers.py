"""Routings in layers on every small graph and on random ones; and the graph they keep free of cycles."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.fabric.kernels import nue
from testbed.fabric.kernels.dependencies import USED, add_turn, no_dependencies, turn_of
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.paths import hop_counts
from testbed.fabric.routing.shortest_trees import breadth_first
from testbed.fabric.routing.turns import all_turns, by_switch
from testbed.fabric.verify.deadlock import check_routes
from tests.fabrics import atlas_fabrics, graph_of, random_fabrics, topology_of

DESCENDING: list[tuple[str, dict[str, Any]]] = [
    ("dl", {"variant": variant, "layers": layers})
    for variant, layers in [("ud", 2), ("ud_du", 3), ("ud_below_du", 2), ("ud_below_du", 4), ("lturn", 2)]
]
MINIMAL: list[tuple[str, dict[str, Any]]] = [
    ("lash", {}),
    ("lash", {"paths": "low_port"}),
    ("dfsssp", {}),
    ("dfsssp", {"balance": True}),
]
ON_DEPENDENCIES: list[tuple[str, dict[str, Any]]] = [("nue", {"layers": layers}) for layers in (1, 2, 5)]


def route(name, topology, **options):
    return ROUTINGS[name].route(topology, ROUTINGS[name].options(**options))


def fewest_hops(topology):
    length = dict(nx.all_pairs_shortest_path_length(graph_of(topology)))
    ends = np.unique(topology.host_switch).tolist()
    return np.asarray([[length[a][b] for b in ends] for a in ends])


@pytest.mark.parametrize(
    "fabrics", [lambda: atlas_fabrics()[::2], lambda: random_fabrics()[::4]], ids=["small", "random"]
)
def test_paths_are_free_of_deadlock_and_as_short_as_they_promise(fabrics):
    for topology in fabrics():
        fewest = fewest_hops(topology)
        most = {
            "ud": hop_counts(topology, route("updown", topology)),
            "lturn": hop_counts(topology, route("lturn", topology)),
        }
        for name, options in [*DESCENDING, *MINIMAL, *ON_DEPENDENCIES]:
            routes = route(name, topology, **options)
            assert check_routes(topology, routes) == []
            hops = hop_counts(topology, routes)
            assert (hops >= fewest).all()
            if (name, options) in MINIMAL:
                assert (hops == fewest).all()
            if name == "dl":
                assert (hops <= most["lturn" if options["variant"] == "lturn" else "ud"]).all()


def test_more_layers_never_make_a_descending_path_longer():
    for topology in random_fabrics()[::25]:
        lengths = [hop_counts(topology, route("dl", topology, layers=layers)) for layers in range(1, 9)]
        assert all((more <= fewer).all() for fewer, more in pairwise(lengths))


@pytest.mark.parametrize(("name", "options"), [*DESCENDING, *MINIMAL, *ON_DEPENDENCIES])
def test_the_same_fabric_has_the_same_paths(name, options):
    for topology in (*atlas_fabrics()[::100], *random_fabrics()[::50]):
        one, other = (route(name, topology, **options) for _ in range(2))
        assert np.array_equal(one.paths.hop, other.paths.hop)
        assert np.array_equal(one.paths.start, other.paths.start)
        assert (one.layers, one.notes) == (other.layers, other.notes)


def test_nue_meets_switches_without_a_turn_and_routes_them():
    forced = 0
    for seed in range(20):
        topology = topology_of("random", switches=100, degree=5, seed=seed)
        routes = route("nue", topology, layers=2)
        forced += bool(routes.notes)
        assert check_routes(topology, routes) == []
    assert forced >= 15


def test_layers_at_the_size_of_a_machine_room():
    topology = topology_of("random", switches=512, degree=8, seed=1)
    for name, options in [("dl", {"layers": 3}), ("nue", {"layers": 8}), ("nue", {"layers": 1})]:
        assert check_routes(topology, route(name, topology, **options)) == []


def half_done(seed):
    """A destination half routed where few turns are left, made without the search: what escape paths have to repair."""
    draw = random.Random(seed)
    topology = topology_of("random", switches=14, degree=6, seed=seed)
    source, target = topology.channel_source, topology.channel_target
    before, after = all_turns(topology)
    graph = no_dependencies(len(source), before, after)
    from_root = breadth_first(topology, 0)
    up = np.where(from_root >= 0, from_root ^ 1, -1).astype(np.int32)
    escape = np.empty(14, dtype=np.int32)
    for end in range(14):
        nue.escape_paths(end, up, target, escape)
        for switch in set(range(14)) - {end}:
            if target[escape[switch]] != end:
                assert add_turn(graph, turn_of(graph.start, after, escape[switch], escape[target[escape[switch]]]))
    end = draw.randrange(14)
    nue.escape_paths(end, up, target, escape)
    for turn in draw.sample(range(len(before)), len(before) * (2 + seed % 3) // 4):
        add_turn(graph, turn)
    way = np.full(14, nue.UNREACHED, dtype=np.int32)
    way[end] = nue.ROOT
    left_out = draw.sample(range(14), 3)
    for channel in draw.choices(range(len(source)), k=400):
        following, switch = way[target[channel]], source[channel]
        if switch in left_out or (channel == escape[switch] and following != nue.ROOT):
            continue
        if way[switch] == nue.UNREACHED and following != nue.UNREACHED:
            turn = -1 if following == nue.ROOT else turn_of(graph.start, after, channel, following)
            if following == nue.ROOT or (turn >= 0 and add_turn(graph, turn)):
                way[switch] = channel
    return topology, graph, end, escape, way


def test_an_escape_path_leaves_every_way_on_turns_of_the_graph():
    on_the_way = followed = 0
    for seed in range(500):
        topology, graph, end, escape, way = half_done(seed)
        source, target = topology.channel_source, topology.channel_target
        arriving = by_switch(target, 14)
        hosts = np.ones(14, dtype=np.int32)
        while (lost := nue.first_lost(way, hosts)) >= 0:
            old = way.copy()
            changed = nue.force(lost, end, way, escape, source, target, *arriving, graph)
            assert set(np.flatnonzero(old != way)) <= set(changed)
            assert (way[changed] == escape[changed]).all()
            assert (target[way[changed[:-1]]] == changed[1:]).all()
            on_the_way += len(changed) - 1
            followed += sum(int(target[old[s]]) in changed for s in np.flatnonzero((old >= 0) & (old == way)))
            for switch in np.flatnonzero(way >= 0):
                at, steps = switch, 0
                while at != end:
                    following = target[way[at]]
                    if following != end:
                        turn = turn_of(graph.start, graph.after, way[at], way[following])
                        assert graph.state[turn] == USED
                    at, steps = following, steps + 1
                    assert steps < 14
    assert on_the_way > 20
    assert followed > 10


def take_all(count, edges):
    """Offer turns one by one, and compare what is taken with a graph of networkx."""
    known = np.asarray(sorted(set(edges)), dtype=np.int32).reshape(-1, 2)
    graph = no_dependencies(count, known[:, 0].copy(), known[:, 1].copy())
    taken = nx.DiGraph()
    taken.add_nodes_from(range(count))
    for first, second in edges:
        turn = turn_of(graph.start, graph.after, first, second)
        fits = not nx.has_path(taken, second, first)
        assert add_turn(graph, turn) == fits
        if fits:
            taken.add_edge(first, second)
        assert all(graph.place[before] < graph.place[after] for before, after in taken.edges)
        assert (graph.at[graph.place] == np.arange(count)).all()
        assert not graph.mark.any()
    assert sorted(map(tuple, known[graph.state == USED].tolist())) == sorted(taken.edges)


nodes = st.integers(0, 9)


@given(st.lists(st.tuples(nodes, nodes).filter(lambda edge: edge[0] != edge[1]), max_size=60))
def test_a_turn_is_taken_exactly_if_it_closes_no_cycle(edges):
    take_all(10, edges)


@pytest.mark.parametrize("seed", range(20))
def test_turns_of_a_large_graph_are_taken_if_they_close_no_cycle(seed):
    draw = random.Random(seed)
    take_all(80, [tuple(draw.sample(range(80), 2)) for _ in range(60 + 20 * seed)])


@given(st.lists(st.tuples(nodes, nodes), max_size=30, unique=True), nodes, nodes)
def test_a_turn_is_found_by_its_channels(edges, first, second):
    known = np.asarray(sorted(edges), dtype=np.int32).reshape(-1, 2)
    graph = no_dependencies(10, known[:, 0].copy(), known[:, 1].copy())
    wanted = sorted(edges).index((first, second)) if (first, second) in edges else -1
    assert turn_of(graph.start, graph.after, first, second) == wanted
