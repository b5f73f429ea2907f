"""The cycle that is shown is one, and a shortest one."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from testbed.fabric.routing.paths import path
from testbed.fabric.verify import DEADLOCK
from testbed.fabric.verify.deadlock import adjacency, shortest_cycle
from tests.fabrics import plan_of


def girth(edges: Collection[tuple[int, int]]) -> int | None:
    """Length of a shortest directed cycle, found by another way: back from the end of each edge to its start."""
    graph = nx.DiGraph(edges)
    lengths = [nx.shortest_path_length(graph, end, start) + 1 for start, end in edges if nx.has_path(graph, end, start)]
    return min(lengths, default=None)


def cycle_of(edges):
    return shortest_cycle(*adjacency(12, np.asarray(edges, dtype=np.int32).reshape(-1, 2)))


nodes = st.integers(0, 11)
digraphs = st.lists(st.tuples(nodes, nodes), max_size=40, unique=True)


@given(digraphs)
@example([(0, 1), (1, 0), (1, 1)])
def test_shortest_cycle_of_any_digraph(edges):
    cycle = cycle_of(edges)
    assert len(cycle) == (girth(edges) or 0)
    assert len(set(cycle)) == len(cycle)
    assert all(step in edges for step in zip(cycle, cycle[1:] + cycle[:1], strict=True))
    assert cycle == () or cycle[0] == min(cycle)


@given(st.permutations(range(12)), st.integers(0, 40))
def test_no_cycle_in_a_digraph_without_one(order, count):
    forward = [(order[i], order[j]) for i in range(12) for j in range(i + 1, 12)][:count]
    assert cycle_of(forward) == ()


@pytest.mark.parametrize(
    ("kind", "parameters", "routing", "length"),
    [
        ("ring", {"switches": 5}, {"ring": "shortest"}, 5),
        ("ring", {"switches": 8}, {"ring": "shortest"}, 8),
        ("ring", {"switches": 4}, {"ring": "shortest", "ties": "positive"}, 4),
        ("torus", {"sizes": [5, 3]}, {"ring": "shortest"}, 5),
        ("torus", {"sizes": [6, 5]}, {"ring": "shortest"}, 5),
        ("torus", {"sizes": [3, 7], "parallel_links": 2}, {"ring": "shortest", "planes": "none"}, 7),
        ("torus", {"sizes": [4, 4]}, {"ring": "shortest", "ties": "positive"}, 4),
    ],
)
def test_shortest_ways_round_a_long_ring_wait_for_each_other(kind, parameters, routing, length):
    plan = plan_of(kind, {"kind": "dor", **routing}, **parameters)
    topology = plan.topology
    (violation,) = plan.violations
    assert violation.invariant == DEADLOCK
    hosts = range(topology.host_count)
    used: set[tuple[int, int]] = set()
    for source in hosts:
        for end in hosts:
            channels = path(topology, plan.routes, source, end)
            used.update(pairwise(channels))
    number = {topology.channel_name(channel): channel for channel in range(len(topology.channel_source))}
    cycle = [number[name] for name in violation.witness]
    for before, after in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert topology.channel_target[before] == topology.channel_source[after]
        assert (before, after) in used
    assert len(set(cycle)) == len(cycle) == girth(used) == length
    assert violation.sentence.endswith(f"{' waits for '.join((*violation.witness, violation.witness[0]))}")
    assert not plan.deadlock_free


@pytest.mark.parametrize("planes", ["link", "node"])
@pytest.mark.parametrize("ties", ["alternating", "positive"])
@pytest.mark.parametrize("sizes", [[4], [5], [6], [7], [8], [4, 4], [5, 3], [8, 8], [5, 5], [3, 4, 5]])
def test_two_links_a_pair_break_every_cycle(sizes, ties, planes):
    routing = {"kind": "dor", "ties": ties, "planes": planes, "ring": "shortest"}
    assert plan_of("torus", routing, sizes=sizes, parallel_links=2).violations == ()


@pytest.mark.parametrize("ties", ["alternating", "positive"])
@pytest.mark.parametrize("sizes", [[4], [5], [9], [8, 8], [5, 7], [4, 5, 3]])
def test_the_default_is_without_a_cycle_on_single_links(sizes, ties):
    assert plan_of("torus", {"kind": "dor", "ties": ties}, sizes=sizes).violations == ()
