from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import pytest

from testbed.base.model import Routes
from testbed.fabric.routing.dimension_order import DorOptions, route_dor
from testbed.fabric.routing.fat_tree import FatTreeOptions, route_fat_tree
from testbed.fabric.routing.relation import Conflict, forwarding_table
from testbed.fabric.routing.shortest_trees import DirectOptions, route_direct
from testbed.fabric.routing.updown import UpDownOptions, route_updown
from testbed.fabric.vlans import vlan_lower_bound
from testbed.fabric.vlans.fixed import FixedOptions, assign_fixed
from testbed.fabric.vlans.vlan_lower_bound import (
    Bounds,
    fewest_colours,
    fewest_fixed,
    fewest_of_table,
    fewest_of_trees,
    fewest_renamed,
)
from tests.fabrics import topology_of


def partitions(items):
    """Every way to put items into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for groups in partitions(rest):
        yield [[first], *groups]
        for place in range(len(groups)):
            yield [*groups[:place], [first, *groups[place]], *groups[place + 1 :]]


def fewest_by_trying(items, fits):
    return min((len(groups) for groups in partitions(items) if all(map(fits, groups))), default=0)


def fewest_trees_by_trying(trees, links):
    def no_loop(group):
        graph = nx.MultiGraph(links[np.any([trees[item] for item in group], axis=0)].tolist())
        return graph.number_of_edges() == 0 or nx.is_forest(graph)

    return fewest_by_trying(list(range(len(trees))), no_loop)


def some_trees(seed):
    """Links of a random multigraph, and random trees in it, each over a part of the switches."""
    draw = random.Random(seed)
    switches = draw.randint(3, 7)
    pairs = [pair for pair in itertools.combinations(range(switches), 2) for _ in range(draw.choice([0, 1, 1, 2]))]
    links = np.array(pairs or [(0, 1)], dtype=np.int32)
    trees = np.zeros((draw.randint(1, 7), len(links)), dtype=bool)
    for tree in trees:
        graph = nx.Graph()
        for link in draw.sample(range(len(links)), draw.randint(1, len(links))):
            a, b = links[link].tolist()
            if graph.has_node(a) and graph.has_node(b) and nx.has_path(graph, a, b):
                continue
            graph.add_edge(a, b)
            tree[link] = True
    return trees, links, switches


@pytest.mark.slow
def test_trees_without_some_switches_need_as_few_vlans_as_can_be():
    answers = []
    for seed in range(40):
        trees, links, switches = some_trees(seed)
        found = fewest_of_trees(trees, links, switches)
        assert found.exact
        assert found.lower == fewest_trees_by_trying(trees, links), seed
        answers.append((found.upper, len(np.unique(trees, axis=0))))
    assert any(1 < vlans < distinct for vlans, distinct in answers)  # merging does pay here


def test_three_trees_that_fit_in_pairs_may_not_fit_together():
    links = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32)
    assert fewest_of_trees(np.eye(3, dtype=bool), links, 3) == Bounds(2, 2)


SPANNING = [
    ("ring", {"switches": 5}, route_dor, DorOptions()),
    ("torus", {"sizes": (3, 2)}, route_dor, DorOptions()),
    ("mesh", {"sizes": (2, 3), "parallel_links": 2}, route_dor, DorOptions()),
    ("torus", {"sizes": (4,), "parallel_links": 2}, route_dor, DorOptions(planes="link")),
    ("complete", {"switches": 5}, route_direct, DirectOptions()),
    ("fat_tree", {"up": 2, "down": 2, "rounds": 1}, route_fat_tree, FatTreeOptions()),
    ("myrinet_clos", {"leaves": 2, "roots": 3}, route_fat_tree, FatTreeOptions()),
]


@pytest.mark.parametrize(("kind", "parameters", "route", "options"), SPANNING)
def test_merging_spanning_trees_never_beats_one_vlan_a_tree(kind, parameters, route, options):
    topology = topology_of(kind, **parameters)
    routes = route(topology, options)
    links = np.zeros((len(routes.tree_channel), topology.link_count), dtype=bool)
    for tree, channel in zip(links, routes.tree_channel, strict=True):
        tree[channel[channel >= 0] // 2] = True
    distinct = np.unique(links, axis=0)
    assert len(distinct) <= 8
    found = fewest_fixed(topology, routes)
    assert found == Bounds(len(distinct), len(distinct))
    assert fewest_trees_by_trying(distinct, topology.links) == len(distinct)
    assert fewest_of_trees(links, topology.links, topology.switch_count) == found
    assert assign_fixed(topology, routes, FixedOptions()).vlan_count == len(distinct)


def test_branches_that_lead_to_no_host_keep_no_trees_apart():
    """Hosts on a and b, m between them: that one tree reaches c from m and the other from a is no path."""
    topology = topology_of("graph", switches=("a", "m", "b", "c"), hosts={"a": 1, "b": 1},
                           links=(("a", "m"), ("m", "b"), ("m", "c"), ("a", "c")))  # fmt: skip
    ends = np.array([0, 2], dtype=np.int32)
    number = {
        (int(a), int(b)): channel
        for channel, (a, b) in enumerate(zip(topology.channel_source, topology.channel_target, strict=True))
    }
    trees = np.array(
        [[-1, number[0, 1], number[1, 2], number[1, 3]], [number[1, 0], number[2, 1], -1, number[0, 3]]], dtype=np.int32
    )
    roots = ends.copy()
    hosts = np.array([0, 1], dtype=np.int32)
    assert fewest_fixed(topology, Routes("source_trees", ends, trees, roots, hosts)) == Bounds(1, 1)


def test_incomplete_trees_are_merged_where_they_fit():
    topology = topology_of("ring", switches=4)
    every = np.arange(4, dtype=np.int32)
    parent = np.full((4, 4), -1, dtype=np.int32)
    for source in range(4):  # each sends one hop ahead only: any three of the four links are a tree
        (ahead,) = np.flatnonzero(
            (topology.channel_source == source) & (topology.channel_target == (source + 1) % 4)
        ).tolist()
        parent[source, (source + 1) % 4] = ahead
    assert fewest_fixed(topology, Routes("source_trees", every, parent, every, every)) == Bounds(2, 2)


def test_paths_of_a_source_that_are_no_tree_are_a_conflict():
    topology = topology_of("torus", sizes=(5,), parallel_links=2)
    found = fewest_fixed(topology, route_dor(topology, DorOptions(planes="dest")))
    assert isinstance(found, Conflict)
    assert found.relation == "one tree a source"


def graphs(count):
    for seed in range(count):
        draw = random.Random(seed)
        size = draw.randint(0, 8)
        apart = np.zeros((size, size), dtype=bool)
        for a, b in itertools.combinations(range(size), 2):
            apart[a, b] = apart[b, a] = draw.random() < draw.choice([0.2, 0.5, 0.8])
        yield apart


@pytest.mark.slow
def test_colours_are_as_few_as_trying_every_partition_finds():
    for apart in graphs(80):
        wanted = fewest_by_trying(list(range(len(apart))), lambda group: not apart[np.ix_(group, group)].any())  # noqa: B023
        assert fewest_colours(apart) == Bounds(wanted, wanted)


def test_a_search_that_is_cut_short_gives_bounds_that_hold(monkeypatch):
    graph = nx.mycielski_graph(5)  # no triangle, and 5 colours
    apart = nx.to_numpy_array(graph, dtype=bool)
    assert fewest_colours(apart).upper == 5
    monkeypatch.setattr(vlan_lower_bound, "_MAX_STEPS", 3)
    found = fewest_colours(apart)
    assert (found.lower, found.exact) == (2, False)
    assert found.upper >= 5


def fewest_local_by_trying(topology, routes):
    table = forwarding_table(topology, routes, by_arrival=True)
    assert isinstance(table, np.ndarray)
    at = np.concatenate([topology.channel_target, routes.tree_root if len(routes.tree_root) else routes.ends])
    most = 0
    for switch in range(topology.switch_count):
        rows = [row for row in np.flatnonzero(at == switch).tolist() if (table[row] != -2).any()]

        def agree(group):
            wanted = [set(table[group, end].tolist()) - {-2} for end in range(table.shape[1])]
            return all(len(hops) <= 1 for hops in wanted)

        most = max(most, fewest_by_trying(rows, agree))
    return most


@pytest.mark.parametrize(
    ("kind", "parameters", "route", "options"),
    [
        ("mesh", {"sizes": (3, 3)}, route_dor, DorOptions()),
        ("torus", {"sizes": (5,), "parallel_links": 2}, route_dor, DorOptions(planes="dest")),
        ("torus", {"sizes": (4, 3), "parallel_links": 2}, route_dor, DorOptions(planes="node")),
        ("myrinet_clos", {"leaves": 3, "roots": 3}, route_fat_tree, FatTreeOptions()),
        ("hypercube", {"dimensions": 3}, route_updown, UpDownOptions()),
        ("torus", {"sizes": (4, 4)}, route_updown, UpDownOptions()),
        ("complete", {"switches": 6}, route_updown, UpDownOptions()),
        ("flat", {"hosts": 3}, route_updown, UpDownOptions()),
    ],
)
def test_local_vlans_are_as_few_as_trying_every_merging_finds(kind, parameters, route, options):
    topology = topology_of(kind, **parameters)
    routes = route(topology, options)
    wanted = fewest_local_by_trying(topology, routes)
    assert fewest_renamed(topology, routes) == Bounds(wanted, wanted)


def test_disagreeing_ports_of_a_ring_of_five_need_three_vlans():
    """No three of them disagree with each other, so only a search can tell."""
    topology = topology_of("complete", switches=6)
    routes = route_direct(topology, DirectOptions())
    table = np.full((2 * topology.link_count + 6, 6), -2, dtype=np.int32)
    for place, row in enumerate(np.flatnonzero(topology.channel_target == 0).tolist()):
        table[row, place] = 1  # disagrees with the next, and with the one before it on that one's destination
        table[row, (place + 1) % 5] = 2
    assert fewest_of_table(topology, routes, table) == Bounds(3, 3)


def test_one_local_vlan_does_for_a_mesh_whatever_its_size():
    topology = topology_of("mesh", sizes=(6, 5, 2))
    assert fewest_renamed(topology, route_dor(topology, DorOptions())) == Bounds(1, 1)


def test_paths_that_need_more_than_port_of_arrival_conflict():
    topology = topology_of("fat_tree", up=2, down=4, rounds=2)
    found = fewest_renamed(topology, route_fat_tree(topology, FatTreeOptions()))
    assert isinstance(found, Conflict)
    assert found.relation == "C×N→C"


def test_layers_fit_neither_assignment():
    topology = topology_of("ring", switches=3)
    routes = route_dor(topology, DorOptions())
    layered = Routes("paths", routes.ends, routes.tree_channel, routes.tree_root, routes.host_tree, layers=2)
    for count in (fewest_fixed, fewest_renamed):
        with pytest.raises(ValueError, match="layers"):
            count(topology, layered)
