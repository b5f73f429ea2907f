"""Every tree of up to seven switches, as they stand in the networkx atlas."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from networkx.generators.atlas import graph_atlas_g

from testbed.base.errors import InputError
from testbed.fabric.openflow.compile import compile_rules
from testbed.fabric.openflow.oracle import Oracle
from testbed.fabric.routing.shortest_trees import TreeOptions, route_tree
from testbed.fabric.topologies.build_topology import make_topology
from testbed.fabric.verify import verify
from testbed.fabric.vlans.fixed import FixedOptions, assign_fixed

CONNECTED = [graph for graph in graph_atlas_g() if len(graph) and nx.is_connected(graph)]


def topology_like(graph, hosts=1, parallel_links=1):
    count = len(graph)
    return make_topology(
        "tree", list(graph.edges), [hosts] * count, np.zeros((count, 2)), parallel_links=parallel_links
    )


@pytest.mark.parametrize(("hosts", "parallel_links"), [(1, 1), (2, 3)])
def test_every_tree_is_one_vlan_in_which_all_pairs_meet(hosts, parallel_links):
    trees = [graph for graph in CONNECTED if nx.is_tree(graph)]
    assert len(trees) == 1 + 1 + 1 + 2 + 3 + 6 + 11
    for graph in trees:
        topology = topology_like(graph, hosts, parallel_links)
        routes = route_tree(topology, TreeOptions())
        vlans = assign_fixed(topology, routes, FixedOptions())
        assert vlans.vlan_count == min(parallel_links, len(graph)) if len(graph) > 1 else 1
        assert verify(topology, routes, vlans, None) == ()
        oracle = Oracle(topology, compile_rules(topology, vlans))
        for source in range(topology.host_count):
            for end in set(range(topology.host_count)) - {source}:
                assert oracle.unicast(source, end).received == {end: 1}


def test_every_graph_with_a_loop_is_refused():
    for graph in CONNECTED:
        if not nx.is_tree(graph):
            with pytest.raises(InputError, match="without loops"):
                route_tree(topology_like(graph), TreeOptions())
