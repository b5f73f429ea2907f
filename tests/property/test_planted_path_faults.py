"""Faults planted in explicit paths and in the turns they may take: each is found, with the right witness."""

from __future__ import annotations

import dataclasses
from functools import cache
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from testbed.base.model import Paths, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes
from testbed.fabric.routing.turns import all_turns, allow, graph_of
from testbed.fabric.routing.updown import UpDownOptions, route_updown
from testbed.fabric.topologies.build_topology import make_topology
from testbed.fabric.verify import DEADLOCK
from testbed.fabric.verify.deadlock import check_routes


@cache
def fabric(seed: int) -> tuple[Topology, Routes]:
    graph = nx.random_regular_graph(3, 8, seed=seed)
    pairs = sorted((min(edge), max(edge)) for edge in graph.edges)
    topology = make_topology("random", pairs, [1] * 8, np.zeros((8, 2)))
    assert nx.is_connected(graph)
    routes = route_updown(topology, UpDownOptions())
    assert check_routes(topology, routes) == []
    return topology, routes


fabrics = st.integers(1, 6).map(fabric)


def path_list(routes: Routes) -> list[list[int]]:
    paths = routes.paths
    return [paths.hop[a:b].tolist() for a, b in pairwise(paths.start)]


def with_paths(routes: Routes, rows: list[list[int]]) -> Routes:
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    hop = np.array([hop for row in rows for hop in row], dtype=np.int32)
    return dataclasses.replace(routes, paths=Paths(start.astype(np.int64), hop))


def drawn_pair(data: st.DataObject, routes: Routes, least: int) -> int:
    rows = path_list(routes)
    return data.draw(st.sampled_from([p for p, row in enumerate(rows) if len(row) >= least]), "pair")


def pair_name(topology: Topology, pair: int) -> str:
    return f"{topology.switch_name(pair // 8)}→{topology.switch_name(pair % 8)}"


def only(found, invariant):
    (violation,) = [v for v in found if v.invariant == invariant]
    return violation


@given(fabrics, st.data())
def test_a_missing_path(made, data):
    topology, routes = made
    pair, rows = drawn_pair(data, routes, 1), path_list(routes)
    rows[pair] = []
    violation = only(check_routes(topology, with_paths(routes, rows)), "path")
    assert violation.witness == (pair_name(topology, pair),)
    assert "have no path" in violation.sentence


@given(fabrics, st.data())
def test_a_path_that_ends_too_soon_or_has_a_gap(made, data):
    topology, routes = made
    pair, rows = drawn_pair(data, routes, 2), path_list(routes)
    del rows[pair][data.draw(st.integers(0, len(rows[pair]) - 1), "hop")]
    violation = only(check_routes(topology, with_paths(routes, rows)), "path")
    assert violation.witness == (pair_name(topology, pair),)
    assert "do not lead from one switch to the other" in violation.sentence


@given(fabrics, st.data(), st.sampled_from([-1, 10**6]))
def test_a_hop_that_does_not_exist(made, data, hop):
    topology, routes = made
    pair, rows = drawn_pair(data, routes, 1), path_list(routes)
    rows[pair][0] = hop
    assert only(check_routes(topology, with_paths(routes, rows)), "path").witness == (pair_name(topology, pair),)


@given(fabrics, st.data())
def test_a_u_turn(made, data):
    topology, routes = made
    pair, rows = drawn_pair(data, routes, 1), path_list(routes)
    first = rows[pair][0]
    rows[pair] = [first, first ^ 1, *rows[pair]]
    violation = only(check_routes(topology, with_paths(routes, rows)), "path")
    assert violation.witness == (pair_name(topology, pair),)
    assert "goes back by the link it came by" in violation.sentence


@given(fabrics, st.data())
def test_a_turn_that_the_routing_forbids(made, data):
    topology, routes = made
    before, after = all_turns(topology)
    allowed = {(int(b), int(f)) for b, f in edges_of(routes)}
    forbidden = [turn for turn in zip(before.tolist(), after.tolist(), strict=True) if turn not in allowed]
    turn = data.draw(st.sampled_from(forbidden), "turn")
    source, end = int(topology.channel_source[turn[0]]), int(topology.channel_target[turn[1]])
    assume(source != end)
    rows = path_list(routes)
    rows[8 * source + end] = list(turn)
    violation = only(check_routes(topology, with_paths(routes, rows)), "path")
    assert violation.witness == (pair_name(topology, 8 * source + end),)
    assert "with a turn that the routing forbids" in violation.sentence


def edges_of(routes: Routes):
    turns = routes.allowed
    return np.stack([np.repeat(np.arange(len(turns.start) - 1), np.diff(turns.start)), turns.following], axis=1)


@given(fabrics, st.data())
def test_a_path_that_begins_where_none_may(made, data):
    topology, routes = made
    pair = drawn_pair(data, routes, 1)
    first = path_list(routes)[pair][0]
    entry = routes.allowed.entry.copy()
    entry[first] = False
    turns = dataclasses.replace(routes.allowed, entry=entry)
    violation = only(check_routes(topology, dataclasses.replace(routes, allowed=turns)), "path")
    begins = {pair_name(topology, p) for p, row in enumerate(path_list(routes)) if row[:1] == [first]}
    assert set(violation.witness) == begins
    assert "begins where the routing allows no path to begin" in violation.sentence


@given(fabrics)
def test_unruled_turns_form_a_cycle_and_the_witness_is_shortest(made):
    topology, routes = made
    before, after = all_turns(topology)
    turns = allow(topology, np.ones(len(before), dtype=bool), before, after)
    found = check_routes(topology, dataclasses.replace(routes, allowed=turns))
    violation = only(found, DEADLOCK)
    graph = nx.Graph(topology.links.tolist())
    assert len(violation.witness) == nx.girth(graph)
    names = [topology.channel_name(c) for c in range(len(topology.channel_source))]
    channels = [names.index(name) for name in violation.witness]
    for one, other in pairwise([*channels, channels[0]]):
        assert topology.channel_target[one] == topology.channel_source[other]


def ring(size: int) -> Topology:
    return make_topology("ring", [(i, (i + 1) % size) for i in range(size)], [1] * size, np.zeros((size, 2)))


@pytest.mark.parametrize("size", [3, 5, 8])
def test_paths_the_same_way_round_a_ring_wait_for_each_other(size):
    topology = ring(size)
    up = {int(topology.channel_source[c]): c for c in range(0, 2 * size, 2)}
    up[size - 1] = next(c for c in range(2 * size) if topology.channel_source[c] == size - 1 and
                        topology.channel_target[c] == 0)  # fmt: skip
    rows = [[up[(a + step) % size] for step in range((b - a) % size)] for a in range(size) for b in range(size)]
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    paths = Paths(start, np.array([hop for row in rows for hop in row], dtype=np.int32))
    violation = only(check_routes(topology, explicit_routes(topology, paths, None)), DEADLOCK)
    assert len(violation.witness) == size


def test_backup_paths_that_close_a_cycle_with_the_primary_ones():
    """Each set is acyclic; together they turn all the way round a ring of four."""
    topology = ring(4)
    name = {topology.channel_name(c): c for c in range(8)}

    def paths(*two_hops):
        rows = [[name[f"s{a}→s{b}"]] if abs(a - b) in (1, 3) else [] for a in range(1, 5) for b in range(1, 5)]
        for a, middle, b in two_hops:
            rows[4 * (a - 1) + b - 1] = [name[f"s{a}→s{middle}"], name[f"s{middle}→s{b}"]]
        start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return Paths(start, np.array([hop for row in rows for hop in row], dtype=np.int32))

    primary = paths((1, 2, 3), (2, 3, 4), (3, 2, 1), (4, 3, 2))
    backup = paths((3, 4, 1), (4, 1, 2), (1, 4, 3), (2, 1, 4))
    for one in (primary, backup):
        assert check_routes(topology, explicit_routes(topology, one, None)) == []
    both = dataclasses.replace(explicit_routes(topology, primary, None), backup=backup)
    assert len(only(check_routes(topology, both), DEADLOCK).witness) == 4


def test_a_cycle_over_two_layers_is_named_with_its_layers():
    """Up a ring of three in layer 0, then on in layer 1, and back down to layer 0: no layer alone is cyclic."""
    topology = ring(3)
    name = {topology.channel_name(c): c for c in range(6)}
    a, b, c = name["s1→s2"], name["s2→s3"], name["s3→s1"]
    high = {hop: hop + 6 for hop in (a, b, c)}
    turns = graph_of(12, np.array([a, high[b], c]), np.array([high[b], c, a]), np.ones(12, dtype=bool))
    ends = [[[], [name["s1→s2"]], [name["s1→s3"]]], [[name["s2→s1"]], [], [name["s2→s3"]]],
            [[name["s3→s1"]], [name["s3→s2"]], []]]  # fmt: skip
    rows = [row for line in ends for row in line]
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    paths = Paths(start, np.array([hop for row in rows for hop in row], dtype=np.int32))
    violation = only(check_routes(topology, explicit_routes(topology, paths, turns, layers=2)), DEADLOCK)
    assert violation.witness == ("s1→s2@0", "s2→s3@1", "s3→s1@0")
