"""Random graphs, dragonfly, HyperX, Slim Fly, and graphs by name."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.fabric.topologies.build_topology import components, find_disconnected_pair
from testbed.fabric.topologies.irregular import regular_graph
from testbed.fabric.topologies.slim_fly import field, prime_power
from testbed.planning import make_plan
from tests.fabrics import graph_of, scenario_of, topology_of

# Drawn once; a change of numpy, of Python or of the machine must not change it.
PINNED = [[0, 4], [0, 5], [0, 7], [1, 3], [1, 4], [1, 5], [2, 3], [2, 5], [2, 7], [3, 6], [4, 6], [6, 7]]
PRIME_POWERS = [3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27]


def problem(**topology):
    with pytest.raises(InputError) as error:
        scenario_of({"topology": topology, "routing": {"kind": "tree"}})
    return str(error.value)


def degrees(topology):
    return np.bincount(topology.channel_source, minlength=topology.switch_count)


# ---------------------------------------------------------------------------------------------------------------------
# Random graphs


@pytest.mark.parametrize(
    ("switches", "degree"),
    [(n, d) for n in (2, 3, 4, 5, 8, 9) for d in range(1, n) if d > 1 or n == 2] + [(65, 3), (65, 63), (200, 2)],
)
def test_random_graphs_are_simple_connected_and_regular(switches, degree):
    for seed in range(5):
        links = regular_graph(switches, degree, seed)
        assert (links[:, 0] < links[:, 1]).all()
        graph = nx.Graph(links.tolist())
        assert graph.number_of_edges() == len(links) == switches * degree // 2
        assert graph.number_of_nodes() == switches
        assert nx.is_connected(graph)
        missing = [degree - graph.degree(switch) for switch in range(switches)]
        assert missing == [0] * (switches - 1) + [switches * degree % 2]


def test_a_seed_is_a_graph_and_another_seed_another():
    graphs = [regular_graph(64, 4, seed) for seed in (1, 1, 2, 10**30)]
    assert (graphs[0] == graphs[1]).all()
    assert not (graphs[0] == graphs[2]).all()
    assert not (graphs[2] == graphs[3]).all()


def test_a_seed_is_the_same_graph_on_every_machine():
    assert regular_graph(8, 3, 7).tolist() == PINNED


@pytest.mark.slow
def test_random_graphs_are_drawn_evenly():
    """Each of the 70 cubic graphs on 6 switches comes about equally often: 10 are K3,3 and 60 a prism."""
    found = [regular_graph(6, 3, seed).tolist() for seed in range(700)]
    counts = np.unique(found, axis=0, return_counts=True)[1]
    assert len(counts) == 70
    assert ((counts - 10) ** 2 / 10).sum() < 111  # chi-squared with 69 degrees of freedom: 0.1 % lie above


def test_random_graphs_are_as_wide_as_random_graphs_are():
    """64 switches of degree 4 drawn by rejection from all pairings: mean distance 3.157 ± 0.003 over 200 graphs."""
    wide = [nx.average_shortest_path_length(nx.Graph(regular_graph(64, 4, seed).tolist())) for seed in range(60)]
    assert np.mean(wide) == pytest.approx(3.157, abs=0.02)


def test_jellyfish_is_random_told_by_its_ports():
    jelly = topology_of("jellyfish", switches=20, ports=8, hosts_per_switch=3, seed=4)
    random = topology_of("random", switches=20, degree=5, hosts_per_switch=3, seed=4)
    assert (jelly.links == random.links).all()
    assert set(jelly.port_count) == {8}


@pytest.mark.parametrize(
    ("topology", "sentence"),
    [
        ({"kind": "random", "switches": 8, "degree": 3},
         "topology.seed: is required: a whole number such as seed: 1, from which the links are drawn"),
        ({"kind": "random", "switches": 8, "degree": 8, "seed": 1},
         "topology.degree: should be 7 or less, as 8 switches are linked by single links, not 8"),
        ({"kind": "random", "switches": 8, "degree": 1, "seed": 1},
         "topology.degree: should be 2 or more, as 8 switches with one link each are not connected, not 1"),
        ({"kind": "random", "switches": 10**9, "degree": 10**8, "seed": 1}, "topology: is too large: "),
        ({"kind": "jellyfish", "switches": 8, "ports": 4, "hosts_per_switch": 2},
         "topology.seed: is required: a whole number such as seed: 1, from which the links are drawn"),
        ({"kind": "jellyfish", "switches": 8, "ports": 4, "hosts_per_switch": 5, "seed": 1},
         "topology.ports: 4 ports less 5 hosts leave -1 for links; a switch needs 1 or more"),
        ({"kind": "jellyfish", "switches": 8, "ports": 5, "hosts_per_switch": 4, "seed": 1},
         "topology.ports: 5 ports less 4 hosts leave 1 for links, which should be 2 or more, as 8 switches"),
        ({"kind": "dragonfly", "routers": 2, "global_links": 2, "groups": 6},
         "topology.groups: should be 5 or less, as a group has 2 × 2 global links, not 6"),
        ({"kind": "dragonfly", "routers": 2, "global_links": 2, "arrangement": "palm"},
         'topology.arrangement: should be one of palm_tree, consecutive, not "palm". Did you mean "palm_tree"?'),
        ({"kind": "slim_fly", "q": 6}, "topology.q: should be a power of a prime, such as 5 or 7, not 6"),
        ({"kind": "slim_fly", "q": 15}, "topology.q: should be a power of a prime, such as 13 or 16, not 15"),
        ({"kind": "slim_fly", "q": 2}, "topology.q: should be 3 or more, not 2"),
        ({"kind": "slim_fly", "q": 10**50}, "topology: is too large: "),
    ],
)  # fmt: skip
def test_impossible_parameters_get_a_sentence(topology, sentence):
    assert problem(**topology).startswith(f"test.yaml: {sentence}")


def test_a_degree_above_the_ports_of_the_switch_is_found():
    blocks = "topology: {kind: random, switches: 40, degree: 24, seed: 1}\nswitch_model: PC5324"
    with pytest.raises(InputError, match="switch_model: s1 needs 25 ports and a PC5324 has 24; PC6248 would do"):
        make_plan(scenario_of(blocks))


# ---------------------------------------------------------------------------------------------------------------------
# Dragonfly and HyperX


@pytest.mark.parametrize("arrangement", ["palm_tree", "consecutive"])
@pytest.mark.parametrize(("routers", "links"), [(4, 2), (2, 1), (3, 2), (1, 5), (6, 3)])
def test_every_two_groups_have_one_link_and_routers_globals(routers, links, arrangement):
    topology = topology_of("dragonfly", routers=routers, global_links=links, arrangement=arrangement)
    groups = routers * links + 1
    group = topology.links // routers
    between = {tuple(sorted(ends)) for ends in group.tolist() if ends[0] != ends[1]}
    assert between == set(itertools.combinations(range(groups), 2))
    assert set(degrees(topology)) == {routers - 1 + links}
    assert nx.diameter(graph_of(topology)) <= 3


def test_arrangements_of_a_dragonfly_are_those_of_the_literature():
    """Two routers of two links: router 0 of group 0 reaches groups 4 and 3 by palm tree, 1 and 2 in order."""
    for arrangement, reached in (("palm_tree", {4, 3}), ("consecutive", {1, 2})):
        topology = topology_of("dragonfly", routers=2, global_links=2, arrangement=arrangement)
        ends = topology.channel_target[topology.channel_source == 0] // 2
        assert set(ends.tolist()) - {0} == reached


def test_fewer_groups_share_the_global_links_evenly():
    topology = topology_of("dragonfly", routers=4, global_links=2, groups=3)
    group = topology.links // 4
    between = group[group[:, 0] != group[:, 1]]
    assert np.unique(between, axis=0, return_counts=True)[1].tolist() == [8 // 2] * 3
    assert set(degrees(topology)) == {3 + 2}


def test_links_of_one_pair_of_routers_are_parallel():
    topology = topology_of("dragonfly", routers=1, global_links=4, groups=2, parallel_links=2)
    assert topology.plane.tolist() == list(range(8))


def test_hyperx_links_all_that_differ_in_one_coordinate():
    topology = topology_of("hyperx", sizes=(4, 3, 2), parallel_links=2)
    where = [np.array([s % 4, s // 4 % 3, s // 12]) for s in range(24)]
    wanted = {(a, b) for a, b in itertools.combinations(range(24), 2) if (where[a] != where[b]).sum() == 1}
    assert {tuple(link) for link in topology.links.tolist()} == wanted
    assert topology.sizes == ()
    assert nx.diameter(graph_of(topology)) == 3


# ---------------------------------------------------------------------------------------------------------------------
# Slim Fly


@pytest.mark.parametrize("q", PRIME_POWERS)
def test_slim_fly_is_regular_of_diameter_2(q):
    topology = topology_of("slim_fly", q=q)
    assert topology.switch_count == 2 * q * q
    assert set(degrees(topology)) == {(3 * q - {0: 0, 1: 1, 3: -1}[q % 4]) // 2}
    near = np.eye(topology.switch_count, dtype=np.float32)
    near[topology.links[:, 0], topology.links[:, 1]] = near[topology.links[:, 1], topology.links[:, 0]] = 1
    assert (near.sum(axis=1) == degrees(topology) + 1).all()  # no link twice, none to itself
    assert (near @ near > 0).all()


def test_slim_fly_of_5_is_the_hoffman_singleton_graph():
    assert nx.is_isomorphic(graph_of(topology_of("slim_fly", q=5)), nx.hoffman_singleton_graph())


@pytest.mark.parametrize("q", [2, 3, 4, 8, 9, 13, 25, 27, 49, 64, 81])
def test_a_field_has_the_laws_of_a_field(q):
    prime, exponent = prime_power(q) or (0, 0)
    made = field(prime, exponent)
    add, times = made.add, made.times
    everything = np.arange(q)
    for table, neutral in ((add, 0), (times, 1)):
        assert (table == table.T).all()
        assert (table[neutral] == everything).all()
        a, b, c = np.meshgrid(everything, everything, everything, indexing="ij")
        assert (table[table[a, b], c] == table[a, table[b, c]]).all()
    assert (times[a, add[b, c]] == add[times[a, b], times[a, c]]).all()
    assert (np.sort(add, axis=1) == everything).all()
    assert (np.sort(times[1:], axis=1) == everything).all()
    assert sorted(made.powers.tolist()) == list(range(1, q))
    assert (times[made.powers, made.powers[1 % (q - 1)]] == np.roll(made.powers, -1)).all()


def test_prime_powers():
    assert [q for q in range(2, 30) if prime_power(q)] == [2, *PRIME_POWERS, 29]
    assert prime_power(64) == (2, 6)
    assert prime_power(1) is None


# ---------------------------------------------------------------------------------------------------------------------
# Graphs by name


def test_a_repeated_pair_is_parallel_links_wherever_it_stands():
    topology = topology_of(
        "graph", switches=("x", "y", "z"), links=(("y", "x"), ("y", "z"), ("x", "y"), ("y", "x")), hosts={"z": 2}
    )
    assert topology.links.tolist() == [[1, 0]] * 3 + [[1, 2]]
    assert topology.plane.tolist() == [0, 1, 2, 0]
    assert topology.switch_labels == ("x", "y", "z")
    assert topology.host_switch.tolist() == [2, 2]
    assert (topology.kind, topology.switch_names, topology.faults) == ("graph", (), ())


def test_all_that_is_wrong_with_a_graph_is_said_at_once():
    text = problem(
        kind="graph",
        switches=["core", "edge", "core", "", "a\nb"],
        links=[["core", "egde"], ["edge", "edge"]],
        hosts={"coer": 1},
        hosts_per_switch=1,
    )
    assert text.splitlines() == [
        'test.yaml: topology.switches.2: the name "core" is listed at switches.0 already',
        "test.yaml: topology.switches.3: should be a name of printable characters",
        "test.yaml: topology.switches.4: should be a name of printable characters",
        'test.yaml: topology.links.0: there is no switch "egde". Did you mean "edge"?',
        'test.yaml: topology.links.1: joins "edge" to itself',
        "test.yaml: topology.hosts_per_switch: says what hosts says too; remove one of them",
        'test.yaml: topology.hosts.coer: there is no such switch. Did you mean "core"?',
    ]


def test_a_divided_graph_names_its_parts():
    text = problem(kind="graph", switches=["a", "b", "c", "d"], links=[["a", "b"], ["c", "d"]])
    parts = 'is in 2 parts that no path joins, those of "a" (2 switches), "c" (2 switches)'
    assert text == f"test.yaml: topology.links: {parts}; a fabric must be connected"


def test_a_long_list_of_problems_is_cut():
    lines = problem(kind="graph", switches=["a"], links=[["a", "a"]] * 1000).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "test.yaml: topology: there is more wrong than these 20"


def test_wrong_entries_are_one_problem_each():
    links = [["a", "b"], ["a"], ["a", "b", "a"], "ab", [1, None]]
    lines = problem(kind="graph", switches=["a", "b"], links=links, hosts=3).splitlines()
    assert lines == [
        'test.yaml: topology.links.1: should be two switches such as [a, b], not ["a"]',
        'test.yaml: topology.links.2: should be two switches such as [a, b], not ["a", "b", "a"]',
        'test.yaml: topology.links.3: should be two switches such as [a, b], not "ab"',
        "test.yaml: topology.links.4: should be two switches such as [a, b], not [1, null]",
        "test.yaml: topology.hosts: should be a block of switches and numbers such as {a: 2, b: 2}, not 3",
    ]


def test_parts_of_a_fabric_agree_with_networkx():
    rng = np.random.default_rng(1)
    for count, links in itertools.product((1, 5, 30), (0, 3, 20, 40)):
        ends = rng.integers(0, count, (links, 2)).astype(np.int32)
        part, closing = components(count, ends)
        graph = nx.MultiGraph()
        graph.add_nodes_from(range(count))
        graph.add_edges_from(ends.tolist())
        parts = list(nx.connected_components(graph))
        assert {frozenset(np.flatnonzero(part == low).tolist()) for low in set(part.tolist())} == set(
            map(frozenset, parts)
        )
        assert (~closing).sum() == count - len(parts)
        assert (find_disconnected_pair(count, ends) is None) == (len(parts) == 1)
