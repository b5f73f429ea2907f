"""Every routing that takes any topology, on every small graph and on many random ones."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest

from testbed.fabric.kernels import segments
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.paths import all_paths
from testbed.fabric.routing.tbtp import tree_based_turns
from testbed.fabric.routing.turns import prohibited_turns
from testbed.fabric.verify.deadlock import check_routes
from tests.fabrics import atlas_fabrics, random_fabrics

TOPOLOGY_AGNOSTIC = sorted(name for name, entry in ROUTINGS.items() if entry.any_topology and entry.deadlock_free)


def route(name, topology):
    return ROUTINGS[name].route(topology, ROUTINGS[name].options())


def violations(topology, routes):
    """What is wrong with the paths one by one, whatever form the routes have."""
    if routes.paths is None:
        routes = dataclasses.replace(routes, relation="paths", paths=all_paths(topology, routes))
    return check_routes(topology, routes)


def same(one, other):
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def test_there_are_996_connected_graphs_of_up_to_seven_switches():
    assert len(atlas_fabrics()) == 996


def test_random_fabrics_have_bridges_parallels_and_hostless():
    fabrics = random_fabrics()
    assert len(fabrics) == 500
    assert {topology.switch_count for topology in fabrics} == set(range(8, 65))
    bridged = [segments.bridges(*leaving_channels(t), t.channel_target).any() for t in fabrics]
    assert 100 < sum(bridged) < 500
    assert sum(topology.parallel_links > 1 for topology in fabrics) > 100
    assert sum(len(np.unique(topology.host_switch)) < topology.switch_count for topology in fabrics) > 100


@pytest.mark.parametrize("name", TOPOLOGY_AGNOSTIC)
def test_every_small_graph_has_legal_paths_without_deadlock(name):
    for topology in atlas_fabrics():
        assert violations(topology, route(name, topology)) == []


@pytest.mark.parametrize("name", TOPOLOGY_AGNOSTIC)
def test_random_graphs_have_legal_paths_without_deadlock(name):
    for topology in random_fabrics():
        assert violations(topology, route(name, topology)) == []


@pytest.mark.parametrize("name", TOPOLOGY_AGNOSTIC)
def test_the_same_fabric_has_the_same_routes(name):
    for topology in (*atlas_fabrics()[::20], *random_fabrics()[::20]):
        assert same(route(name, topology), route(name, topology))


def test_tree_based_prohibition_takes_at_most_half_of_the_turns():
    for topology in (*atlas_fabrics(), *random_fabrics()):
        prohibited, total = prohibited_turns(topology, tree_based_turns(topology, 0))
        assert 2 * prohibited <= total


def test_bridges_are_those_that_networkx_finds():
    for topology in (*atlas_fabrics(), *random_fabrics(200)):
        graph = nx.MultiGraph()
        graph.add_nodes_from(range(topology.switch_count))
        graph.add_edges_from(topology.links.tolist())
        single = nx.Graph(graph)
        wanted = {frozenset(pair) for pair in nx.bridges(single) if graph.number_of_edges(*pair) == 1}
        found = topology.links[segments.bridges(*leaving_channels(topology), topology.channel_target)]
        assert {frozenset(pair) for pair in found.tolist()} == wanted
