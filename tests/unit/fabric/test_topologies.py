from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from testbed.base.model import host_ip, host_mac
from testbed.fabric.topologies import MAX_EXTENT, TOPOLOGIES, size_problem
from tests.fabrics import graph_of, topology_of

EXAMPLES = [
    # kind, parameters, switches, neighbour pairs, hosts
    ("mesh", {"sizes": (4,)}, 4, 3, 4),
    ("mesh", {"sizes": (4, 3)}, 12, 3 * 3 + 4 * 2, 12),
    ("mesh", {"sizes": (3, 4, 5), "hosts_per_switch": 2}, 60, 2 * 20 + 3 * 15 + 4 * 12, 120),
    ("mesh", {"sizes": (1, 1)}, 1, 0, 1),
    ("torus", {"sizes": (4, 4)}, 16, 32, 16),
    ("torus", {"sizes": (4, 2)}, 8, 8 + 4, 8),
    ("torus", {"sizes": (2, 2)}, 4, 4, 4),
    ("torus", {"sizes": (3, 1, 5)}, 15, 30, 15),
    ("hypercube", {"dimensions": 5}, 32, 80, 32),
    ("ring", {"switches": 3}, 3, 3, 3),
    ("ring", {"switches": 9, "hosts_per_switch": 0}, 9, 9, 0),
    ("fat_tree", {"up": 2, "down": 4, "rounds": 2}, 16 + 8 + 4, 32 + 16, 64),
    ("fat_tree", {"up": 1, "down": 2, "rounds": 3, "hosts_per_leaf": 1}, 15, 14, 8),
    ("fat_tree", {"up": 3, "down": 1, "rounds": 2}, 1 + 3 + 9, 3 + 9, 1),
    ("fat_tree_14", {}, 14, 24, 16),
    ("myrinet_clos", {}, 8, 16, 16),
    ("myrinet_clos", {"leaves": 3, "roots": 5, "hosts_per_leaf": 2}, 8, 15, 6),
    ("tree", {"switches": 8}, 8, 7, 8),
    ("tree", {"switches": 1, "arity": 1}, 1, 0, 1),
    ("m_tree", {"columns": 4, "rows": 3, "hosts_per_switch": 2}, 12, 11, 24),
    ("complete", {"switches": 7}, 7, 21, 7),
    ("flat", {"hosts": 5}, 1, 0, 5),
    ("random", {"switches": 16, "degree": 4, "seed": 1}, 16, 32, 16),
    ("random", {"switches": 9, "degree": 3, "seed": 1, "hosts_per_switch": 2}, 9, 13, 18),
    ("random", {"switches": 2, "degree": 1, "seed": 1}, 2, 1, 2),
    ("jellyfish", {"switches": 12, "ports": 6, "hosts_per_switch": 2, "seed": 1}, 12, 24, 24),
    ("dragonfly", {"routers": 4, "global_links": 2, "hosts_per_switch": 2}, 36, 9 * 6 + 9 * 8 // 2, 72),
    ("dragonfly", {"routers": 4, "global_links": 2, "arrangement": "consecutive"}, 36, 90, 36),
    ("dragonfly", {"routers": 3, "global_links": 2, "groups": 4}, 12, 4 * 3 + 6 * 2, 12),
    ("dragonfly", {"routers": 2, "global_links": 2, "groups": 4}, 8, 4 * 1 + 6 * 1, 8),
    ("dragonfly", {"routers": 1, "global_links": 4}, 5, 10, 5),
    ("hyperx", {"sizes": (4, 4)}, 16, 2 * 4 * 6, 16),
    ("hyperx", {"sizes": (5, 1, 3, 2), "hosts_per_switch": 3}, 30, 30 * (4 + 0 + 2 + 1) // 2, 90),
    ("slim_fly", {"q": 3}, 18, 18 * 5 // 2, 18),
    ("slim_fly", {"q": 4}, 32, 32 * 6 // 2, 32),
    ("slim_fly", {"q": 5}, 50, 50 * 7 // 2, 50),
    ("slim_fly", {"q": 7, "hosts_per_switch": 0}, 98, 98 * 11 // 2, 0),
    ("leaf_spine", {"leaves": 5, "spines": 4, "hosts_per_leaf": 12}, 9, 20, 60),
    ("rail_optimised", {"rails": 4, "servers": 8, "units": 2, "spines": 3}, 8 + 3, 24, 64),
    ("fat_tree_pods", {"ports": 4}, 5 * 4**2 // 4, 4**3 // 2, 4**3 // 4),
    ("fat_tree_pods", {"ports": 8}, 5 * 8**2 // 4, 8**3 // 2, 8**3 // 4),
    ("fat_tree_pods", {"ports": 8, "pods": 3, "hosts_per_edge": 7}, 3 * 8 + 16, 3 * 2 * 16, 3 * 4 * 7),
    ("dragonfly_plus", {"leaves": 2, "spines": 2, "global_links": 2}, 5 * 4, 5 * 4 + 10, 10),
    ("xpander", {"degree": 4, "lift": 5}, 25, 25 * 4 // 2, 25),
    ("xpander", {"degree": 3, "lift": 1, "hosts_per_switch": 2}, 4, 6, 8),
    ("polarfly", {"q": 2}, 7, 2 * 3**2 // 2, 7),
    ("polarfly", {"q": 4}, 21, 4 * 5**2 // 2, 21),
    ("polarfly", {"q": 7, "hosts_per_switch": 2}, 57, 7 * 8**2 // 2, 114),
    ("twisted_torus", {"sizes": (4, 4, 8)}, 128, 3 * 128, 128),
    ("twisted_torus", {"sizes": (3, 6), "twist": 1}, 18, 36, 18),
    ("graph", {"switches": ("a", "b", "c"), "links": (("c", "a"), ("b", "a"))}, 3, 2, 3),
    ("graph", {"switches": ("a", "b"), "links": (("a", "b"),), "hosts": {"b": 3}}, 2, 1, 3),
    ("graph", {"switches": ("a",), "hosts_per_switch": 0}, 1, 0, 0),
]
SINGLE_LINKS = ("flat", "random", "jellyfish", "graph")


def test_every_topology_has_an_example():
    assert {kind for kind, *_ in EXAMPLES} == set(TOPOLOGIES)


@pytest.mark.parametrize(("kind", "parameters", "switches", "pairs", "hosts"), EXAMPLES)
def test_counts_before_and_after_building(kind, parameters, switches, pairs, hosts):
    for parallel in (1, 3) if kind not in SINGLE_LINKS else (1,):
        spec = TOPOLOGIES[kind].spec(**parameters, **({"parallel_links": parallel} if parallel > 1 else {}))
        topology = TOPOLOGIES[kind].build(spec)
        assert TOPOLOGIES[kind].check(spec) == []
        extent = spec.extent()
        assert (extent.switches, extent.links, extent.hosts) == (switches, pairs * parallel, hosts)
        assert (topology.switch_count, topology.link_count, topology.host_count) == (switches, pairs * parallel, hosts)
        assert topology.parallel_links == (parallel if pairs else 0)
        graph = graph_of(topology)
        assert nx.is_connected(graph)
        assert graph.number_of_edges() == pairs
        assert nx.number_of_selfloops(graph) == 0


@pytest.mark.parametrize(("kind", "parameters", "switches", "pairs", "hosts"), EXAMPLES)
def test_ports_count_from_one_and_channels_come_in_pairs(kind, parameters, switches, pairs, hosts):
    del switches, pairs, hosts
    topology = topology_of(kind, **parameters)
    for switch in range(topology.switch_count):
        of_hosts = topology.host_port[topology.host_switch == switch].tolist()
        of_channels = topology.out_port[topology.channel_source == switch].tolist()
        assert of_hosts + of_channels == list(range(1, topology.port_count[switch] + 1))
    channels = np.arange(2 * topology.link_count)
    assert (topology.channel_source == topology.links.reshape(-1)).all()
    assert (topology.channel_target[channels] == topology.channel_source[channels ^ 1]).all()
    assert topology.positions.shape == (topology.switch_count, 2)
    assert len(np.unique(topology.positions.round(6), axis=0)) == topology.switch_count  # none drawn on another


def test_parallel_links_are_consecutive_planes_of_one_pair():
    topology = topology_of("ring", switches=4, parallel_links=3)
    assert topology.plane.tolist() == [0, 1, 2] * 4
    for first in range(0, 12, 3):
        assert (topology.links[first : first + 3] == topology.links[first]).all()
    assert [topology.channel_name(channel) for channel in range(6)] == [
        "s1→s2", "s2→s1", "s1→s2#1", "s2→s1#1", "s1→s2#2", "s2→s1#2",
    ]  # fmt: skip


def test_grid_numbers_run_along_the_first_dimension():
    topology = topology_of("mesh", sizes=(3, 2))
    assert topology.coordinates.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]


@pytest.mark.parametrize(("kind", "parameters"), [("torus", {"sizes": (5, 3, 2)}), ("mesh", {"sizes": (4, 4)})])
def test_grid_links_join_coordinates_that_differ_by_one_step(kind, parameters):
    topology = topology_of(kind, **parameters)
    for a, b in topology.links.tolist():
        steps = topology.coordinates[b] - topology.coordinates[a]
        (dimension,) = np.flatnonzero(steps)
        size = topology.sizes[dimension]
        # In the positive direction, the wrap link from the last to the first.
        assert steps[dimension] == 1 or (kind == "torus" and steps[dimension] == 1 - size)


def test_fat_tree_has_up_and_down_links_as_told():
    topology = topology_of("fat_tree", up=2, down=3, rounds=2)
    lower, upper = topology.levels[topology.links[:, 0]], topology.levels[topology.links[:, 1]]
    assert (upper == lower + 1).all()
    rising = np.bincount(topology.links[:, 0], minlength=topology.switch_count)
    falling = np.bincount(topology.links[:, 1], minlength=topology.switch_count)
    assert set(rising[topology.levels < 2]) == {2}
    assert set(falling[topology.levels > 0]) == {3}
    assert set(topology.levels[topology.host_switch]) == {0}


def test_oversubscription_is_hosts_by_links_up():
    for ratio, links, hosts in ((None, 1, 4), (1.5, 1, 6), (3, 2, 24)):
        spec = TOPOLOGIES["leaf_spine"].spec(leaves=3, spines=4, oversubscription=ratio, parallel_links=links)
        assert TOPOLOGIES["leaf_spine"].build(spec).host_count == spec.extent().hosts == 3 * hosts


@pytest.mark.parametrize(
    ("kind", "parameters", "sentence"),
    [
        ("leaf_spine", {"oversubscription": 2, "hosts_per_leaf": 4}, "says what hosts_per_leaf says too; remove one"),
        ("leaf_spine", {"spines": 4, "oversubscription": 1.4}, "whole hosts with 4 links up; 6 / 4 is the nearest"),
        ("fat_tree_pods", {"ports": 5}, "should be even, such as 6"),
        ("fat_tree_pods", {"ports": 4, "pods": 5}, "should be 4 or less, as a core has 4 ports"),
        ("dragonfly_plus", {"leaves": 1, "spines": 2, "global_links": 2, "groups": 6}, "should be 5 or less"),
        ("polarfly", {"q": 6}, "should be a power of a prime, such as 5 or 7, not 6"),
        ("twisted_torus", {"sizes": (3, 4), "twist": 4}, "should be 3 or less, as the longest dimension has 4"),
    ],
)
def test_parameters_that_do_not_go_together(kind, parameters, sentence):
    (problem,) = TOPOLOGIES[kind].check(TOPOLOGIES[kind].spec(**parameters))
    assert sentence in problem.sentence


def test_a_fat_tree_by_pods_has_a_path_through_each_core():
    topology = topology_of("fat_tree_pods", ports=4)
    graph = graph_of(topology)
    hops = nx.single_source_shortest_path_length(graph, 0)
    assert sorted(hops[int(edge)] for edge in np.unique(topology.host_switch)) == [0, 2, *[4] * 6]
    assert len(list(nx.all_shortest_paths(graph, 0, 7))) == 4
    assert set(topology.port_count.tolist()) == {4}


def test_dragonfly_plus_joins_every_two_groups_by_spines_alone():
    topology = topology_of("dragonfly_plus", leaves=2, spines=2, global_links=2)
    group, spine = topology.links // 4, topology.links % 4 >= 2
    between = group[:, 0] != group[:, 1]
    assert spine[between].all()
    assert sorted(map(tuple, group[between].tolist())) == [(a, b) for a in range(5) for b in range(a + 1, 5)]
    assert nx.diameter(graph_of(topology)) == 4
    several = topology_of("dragonfly_plus", leaves=4, spines=2, global_links=3, groups=3)
    assert several.link_count == 3 * 4 * 2 + 3 * 3


def test_xpander_and_polarfly_are_what_their_papers_say():
    xpander = topology_of("xpander", degree=5, lift=7, seed=4)
    assert set(np.bincount(xpander.channel_source).tolist()) == {5}
    assert (xpander.links[:, 0] // 7 != xpander.links[:, 1] // 7).all()
    assert np.array_equal(xpander.links, topology_of("xpander", degree=5, lift=7, seed=4).links)
    for q in (2, 3, 4, 5, 7, 8):
        graph = graph_of(topology_of("polarfly", q=q))
        assert nx.diameter(graph) == 2
        assert sorted(dict(graph.degree).values()) == [q] * (q + 1) + [q + 1] * q**2


def test_a_twist_shortens_the_longest_ways():
    for sizes, plain, twisted in (((4, 4, 8), 8, 6), ((4, 8), 6, 4)):
        lengths = [nx.diameter(graph_of(topology_of("twisted_torus", sizes=sizes, twist=twist))) for twist in (0, None)]
        assert lengths == [plain, twisted]
    same = topology_of("twisted_torus", sizes=(3, 4), twist=0)
    torus = topology_of("torus", sizes=(3, 4))
    assert {frozenset(link) for link in same.links.tolist()} == {frozenset(link) for link in torus.links.tolist()}


def test_m_tree_spine_is_an_outer_row():
    topology = topology_of("m_tree", columns=3, rows=3)
    assert {tuple(link) for link in topology.links.tolist()} == {
        (0, 1), (1, 2), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "parameters", "sentence"),
    [
        ("mesh", {"sizes": (128, 128)}, None),
        ("mesh", {"sizes": (182, 181)}, "is too large: 32,942 switches (at most 32,768)"),
        ("flat", {"hosts": 65536}, None),
        ("flat", {"hosts": 131073}, "is too large: 131,073 hosts (at most 131,072)"),
        ("ring", {"switches": 4, "parallel_links": 300000}, "is too large: 1,200,000 links (at most 1,048,576)"),
        ("tree", {"switches": 10**40}, "is too large: more than 1,000,000,000,000 switches (at most 32,768), "
         "more than 1,000,000,000,000 links (at most 1,048,576), more than 1,000,000,000,000 hosts (at most 131,072)"),
        ("fat_tree", {"up": 10**9, "down": 10**9, "rounds": 14, "hosts_per_leaf": 0},
         "is too large: more than 1,000,000,000,000 switches (at most 32,768), "
         "more than 1,000,000,000,000 links (at most 1,048,576)"),
    ],
)  # fmt: skip
def test_size_is_judged_before_anything_is_built(kind, parameters, sentence):
    assert size_problem(TOPOLOGIES[kind].spec(**parameters)) == sentence


def test_the_largest_host_has_an_address_of_its_own():
    hosts = MAX_EXTENT.hosts
    assert host_mac(0) == "02:00:00:00:00:01"
    assert host_ip(0) == "10.0.0.1"
    assert host_mac(hosts - 1) == "02:00:00:02:00:00"
    assert host_ip(hosts - 1) == "10.2.0.0"
    assert len({host_mac(host) for host in range(hosts)}) == len({host_ip(host) for host in range(hosts)}) == hosts
