"""Routings that are trees: the spanning tree, dimension order round dead links, and fat trees by their keys."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.dimension_order import DorOptions, route_dor
from testbed.fabric.routing.fat_tree import FatTreeOptions, route_fat_tree
from testbed.fabric.routing.north_last import NorthLastOptions, route_north_last
from testbed.fabric.routing.paths import channel_load, hop_counts, path
from testbed.fabric.routing.relation import relations
from testbed.fabric.routing.shortest_trees import DirectOptions, TreeOptions
from testbed.fabric.routing.stp import StpOptions, route_stp
from testbed.fabric.topologies.faults import Faults, apply_faults
from testbed.fabric.verify import verify
from testbed.fabric.vlans.fixed import FixedOptions, assign_fixed
from tests.fabrics import atlas_fabrics, fabric_of_pairs, graph_of, random_fabrics, topology_of


def names(topology, channels):
    return [topology.channel_name(channel) for channel in channels]


def broken(kind, *links, dead=(), **parameters):
    return apply_faults(topology_of(kind, **parameters), Faults(links=links, switches=dead))


def north_last(topology, **options):
    return route_north_last(topology, NorthLastOptions(**options))


def vlans_when_proved(topology, routes):
    """Number of VLANs of the fixed assignment, after every proof about it."""
    vlans = assign_fixed(topology, routes, FixedOptions())
    assert verify(topology, routes, vlans, None) == ()
    return vlans.vlan_count


def refusal(topology, name="north_last"):
    with pytest.raises(InputError) as error:
        ROUTINGS[name].route(topology, ROUTINGS[name].options())
    return str(error.value)


def switch_at(sizes, *at):
    return f"s{1 + sum(x * int(np.prod(sizes[:place])) for place, x in enumerate(at))}"


# --- the spanning tree -----------------------------------------------------------------------------------------------


def tree_links(topology, **options):
    routes = route_stp(topology, StpOptions(**options))
    used = {frozenset(np.unique(tree[tree >= 0] // 2).tolist()) for tree in routes.tree_channel}
    assert len(used) == 1
    return sorted(topology.channel_name(2 * link) for link in used.pop())


def test_of_several_ways_to_the_root_the_lowest_number_is_taken():
    topology = fabric_of_pairs([(0, 2), (0, 1), (3, 2), (1, 3)], [1] * 4)
    assert tree_links(topology) == ["s1→s2", "s1→s3", "s2→s4"]


def test_of_parallel_links_the_lowest_port_is_taken():
    topology = fabric_of_pairs([(1, 0), (0, 1), (1, 2), (2, 1), (0, 2)], [1] * 3)
    assert tree_links(topology) == ["s1→s3", "s2→s1"]
    assert tree_links(topology, root="s2") == ["s2→s1", "s2→s3"]


def test_the_spanning_tree_is_one_vlan_whatever_the_fabric():
    for topology in (*atlas_fabrics()[::7], *random_fabrics()[::25]):
        assert vlans_when_proved(topology, route_stp(topology, StpOptions())) == 1


def test_paths_to_the_root_of_the_spanning_tree_are_shortest():
    topology = topology_of("random", switches=40, degree=4, seed=3)
    hops = hop_counts(topology, route_stp(topology, StpOptions(root="s9")))
    assert dict(enumerate(hops[8].tolist())) == nx.single_source_shortest_path_length(graph_of(topology), 8)


# --- north last in a mesh --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("mesh", {"sizes": (5,)}),
        ("mesh", {"sizes": (4, 3)}),
        ("mesh", {"sizes": (3, 2, 4), "parallel_links": 3}),
        ("mesh", {"sizes": (1, 4)}),
        ("mesh", {"sizes": (1,)}),
        ("torus", {"sizes": (1, 1)}),
        ("hypercube", {"dimensions": 4}),
        ("torus", {"sizes": (4, 4)}),
        ("torus", {"sizes": (5, 3, 2), "parallel_links": 2}),
        ("ring", {"switches": 7}),
    ],
)
def test_a_whole_grid_is_routed_in_dimension_order(kind, parameters):
    topology = topology_of(kind, **parameters)
    assert np.array_equal(north_last(topology).tree_channel, route_dor(topology, DorOptions()).tree_channel)
    assert not north_last(topology).tree_channel.min(initial=-1) < -1


def test_a_path_steps_south_at_the_gap_and_crosses_in_that_row():
    topology = broken("mesh", ("s10", "s11"), sizes=(4, 4))
    routes = north_last(topology)
    assert names(topology, path(topology, routes, 8, 11)) == ["s9→s10", "s10→s6", "s6→s7", "s7→s8", "s8→s12"]
    assert names(topology, path(topology, routes, 11, 8)) == ["s12→s11", "s11→s7", "s7→s6", "s6→s5", "s5→s9"]
    assert names(topology, path(topology, routes, 8, 2)) == ["s9→s10", "s10→s6", "s6→s7", "s7→s3"]
    assert names(topology, path(topology, routes, 4, 7)) == ["s5→s6", "s6→s7", "s7→s8"]
    assert routes.notes == ()


def test_a_gap_in_the_southernmost_row_is_passed_on_its_north():
    topology = broken("mesh", ("s2", "s3"), sizes=(4, 4))
    routes = north_last(topology)
    assert names(topology, path(topology, routes, 0, 3)) == ["s1→s2", "s2→s6", "s6→s7", "s7→s8", "s8→s4"]
    assert routes.notes == ("dead links are passed on their north side, with hops south last",)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 3), (4, 4), (6, 5), (3, 3, 2), (4, 4, 4), (2, 2, 2, 2)])
def test_one_dead_x_link_anywhere_leaves_a_mesh_proved(sizes):
    whole = topology_of("mesh", sizes=sizes)
    for one, other in whole.links.tolist():
        if whole.coordinates[one, 0] == whole.coordinates[other, 0]:
            continue
        topology = apply_faults(whole, Faults(links=((whole.switch_name(one), whole.switch_name(other)),)))
        routes = north_last(topology)
        vlans_when_proved(topology, routes)
        assert relations(topology, routes)["N×N→C"] is None


def test_several_dead_x_links_are_passed_or_refused_by_sentence():
    draw = random.Random(5)
    whole = topology_of("mesh", sizes=(5, 4), parallel_links=2)
    rows = [(a, b) for a, b in whole.links[whole.plane == 0].tolist() if b == a + 1]
    refused = []
    for _ in range(60):
        dead = [(f"s{a + 1}", f"s{b + 1}") for a, b in draw.sample(rows, draw.randint(2, 6))]
        single = [(*pair, draw.randrange(2)) for pair in dead[:1]]
        try:
            topology = apply_faults(whole, Faults(links=(*single, *dead[1:])))
            vlans_when_proved(topology, north_last(topology))
        except InputError as error:
            refused.append(str(error))
    assert 5 <= len(refused) <= 40
    for sentence in refused:
        assert sentence.startswith(('routing.kind: "north_last" ', "faults: leaves no path"))


def test_paths_round_a_gap_are_longer_by_two_hops_at_most():
    sizes = (6, 6)
    topology = broken("mesh", ("s15", "s16"), sizes=sizes)
    more = hop_counts(topology, north_last(topology)) - hop_counts(
        topology_of("mesh", sizes=sizes), north_last(topology_of("mesh", sizes=sizes))
    )
    assert (more.min(), more.max()) == (0, 2)
    assert (more > 0).sum() == 2 * 3 * 3 * 4  # between the two sides in row y0, and from there to rows north of it


def test_what_a_mesh_cannot_go_round_is_named():
    otherwise = '; "updown", "tbtp" and "sr" route whatever is left'
    assert refusal(broken("mesh", ("s2", "s5"), sizes=(3, 3))) == (
        'routing.kind: "north_last" goes round dead links of dimension 1 and here link s2–s5, of dimension 2, is dead'
        + otherwise
    )
    assert refusal(broken("mesh", ("s1", "s2"), ("s8", "s9"), sizes=(3, 3))) == (
        'routing.kind: "north_last" passes all dead links on one side; link s1–s2 has no living link south of it, '
        "link s8–s9 none north" + otherwise
    )
    assert refusal(broken("mesh", ("s1", "s2"), ("s4", "s5"), sizes=(3, 2, 2))) == (
        'routing.kind: "north_last" finds no living link along dimension 1 beside link s1–s2, which is dead' + otherwise
    )
    assert refusal(broken("mesh", dead=("s5",), sizes=(3, 3))) == (
        'routing.kind: "north_last" goes round dead links and here switch s5 is dead' + otherwise
    )


def test_what_is_no_grid_is_refused():
    assert refusal(topology_of("complete", switches=4)).startswith(
        'routing.kind: "north_last" needs a mesh, torus, hypercube or ring, not complete'
    )


# --- cut rings of a torus --------------------------------------------------------------------------------------------


def test_a_cut_ring_is_gone_round_the_other_way():
    topology = broken("ring", ("s2", "s3"), switches=6)
    routes = north_last(topology)
    assert names(topology, path(topology, routes, 1, 2)) == ["s2→s1", "s1→s6", "s6→s5", "s5→s4", "s4→s3"]
    assert names(topology, path(topology, routes, 3, 5)) == ["s4→s5", "s5→s6"]
    assert vlans_when_proved(topology, routes) == 1
    assert routes.notes[-1] == "1 ring with a dead link is a line, so some paths are longer than the shortest"


@pytest.mark.parametrize("parallel_links", [1, 2])
@pytest.mark.parametrize("size", range(3, 9))
def test_a_torus_of_any_size_with_one_dead_link_is_proved(size, parallel_links):
    for dimension, (x, y) in itertools.product(range(2), [(0, 0), (1, 2), (size - 1, size - 1), (size // 2, 0)]):
        far = [x, y]
        far[dimension] = (far[dimension] + 1) % size
        sizes = (size, size)
        link = (switch_at(sizes, x, y), switch_at(sizes, *far))
        topology = broken("torus", link, sizes=sizes, parallel_links=parallel_links)
        vlans_when_proved(topology, north_last(topology))


@pytest.mark.parametrize("rings", ["auto", "two_trees"])
def test_dead_links_in_several_rings_and_dimensions_are_proved(rings):
    draw = random.Random(2)
    for _ in range(12):
        sizes = (draw.randint(3, 6), draw.randint(3, 5), draw.randint(1, 3))
        whole = topology_of("torus", sizes=sizes, parallel_links=draw.randint(1 + (rings == "two_trees"), 3))
        of_ring = {}
        for link in draw.sample(range(whole.link_count), 12):
            one, other = whole.links[link].tolist()
            ring = whole.coordinates[one] != whole.coordinates[other]
            if sizes[int(np.argmax(ring))] > 2:
                of_ring[tuple(np.where(ring, -1, whole.coordinates[one]))] = link
        ends = {link: [f"s{switch + 1}" for switch in whole.links[link].tolist()] for link in of_ring.values()}
        dead = tuple((one, other, int(whole.plane[link])) for link, (one, other) in ends.items())
        assert len(dead) > 2
        topology = apply_faults(whole, Faults(links=dead))
        vlans_when_proved(topology, north_last(topology, ring=rings))


@pytest.mark.parametrize("size", range(3, 9))
def test_two_trees_a_ring_and_one_a_line_take_one_vlan_less(size):
    for dimension, taken in ((0, 2 * size - 1), (1, 2 * size)):
        for y in range(size):
            far = switch_at((size, size), *((2, y) if dimension == 0 else (1, (y + 1) % size)))
            topology = broken("torus", (switch_at((size, size), 1, y), far), sizes=(size, size), parallel_links=2)
            assert vlans_when_proved(topology, north_last(topology, ring="two_trees")) == taken


def test_two_trees_take_a_torus_of_two_links_a_pair():
    with pytest.raises(InputError, match=r'routing\.ring: "two_trees" is for the rings of a torus, not for a mesh'):
        north_last(topology_of("mesh", sizes=(4, 4)), ring="two_trees")
    with pytest.raises(
        InputError, match=r'routing\.ring: "two_trees" needs two links for each pair; set topology.para'
    ):
        north_last(topology_of("torus", sizes=(4, 4)), ring="two_trees")


def test_a_pair_without_one_link_cuts_the_ring_where_it_lacks():
    whole = topology_of("torus", sizes=(6, 6), parallel_links=2)
    topology = apply_faults(whole, Faults(links=(("s1", "s2", 1),)))
    routes = north_last(topology)
    vlans_when_proved(topology, routes)
    assert names(topology, path(topology, routes, 0, 1)) == ["s1→s6", "s6→s5", "s5→s4", "s4→s3", "s3→s2"]
    assert len(path(topology, routes, 6, 7)) == 1


def test_a_ring_that_lost_two_links_is_refused():
    otherwise = '; "updown", "tbtp" and "sr" route whatever is left'
    assert refusal(broken("torus", ("s1", "s2"), ("s3", "s4"), sizes=(4, 4))) == (
        'routing.kind: "north_last" goes the other way round a ring and here a ring has lost its links s1–s2 and s3–s4'
        + otherwise
    )
    assert refusal(broken("torus", ("s1", "s2"), sizes=(2, 3))) == (
        'routing.kind: "north_last" goes the other way round a ring and here there is no ring round the link s1–s2'
        + otherwise
    )


# --- fat trees -------------------------------------------------------------------------------------------------------

FAT_TREES = [
    ("fat_tree", {"up": 2, "down": 4, "rounds": 2}),
    ("fat_tree", {"up": 2, "down": 3, "rounds": 3}),
    ("fat_tree", {"up": 3, "down": 2, "rounds": 2, "hosts_per_leaf": 5}),
    ("fat_tree_14", {"hosts_per_leaf": 3}),
    ("myrinet_clos", {"leaves": 5, "roots": 3, "hosts_per_leaf": 7, "parallel_links": 2}),
]


@pytest.mark.parametrize(("kind", "parameters"), FAT_TREES)
@pytest.mark.parametrize("key", ["source", "in_port", "destination"])
def test_every_key_goes_up_and_down_by_the_shortest_way(kind, parameters, key):
    topology = topology_of(kind, **parameters)
    routes = route_fat_tree(topology, FatTreeOptions(key))
    shortest = dict(nx.all_pairs_shortest_path_length(graph_of(topology)))
    for source, end in itertools.product(range(0, topology.host_count, 2), range(topology.host_count)):
        hops = path(topology, routes, source, end)
        assert len(hops) == shortest[int(topology.host_switch[source])][int(topology.host_switch[end])]
        levels = topology.levels[topology.channel_target[list(hops)]].tolist()
        assert levels == [*range(1, len(hops) // 2 + 1), *reversed(range(len(hops) // 2))]


@pytest.mark.parametrize(("kind", "parameters"), FAT_TREES)
def test_keys_have_the_relation_they_are_made_for(kind, parameters):
    topology = topology_of(kind, **parameters)
    found = {
        key: relations(topology, route_fat_tree(topology, FatTreeOptions(key)))
        for key in ("source", "in_port", "destination")
    }
    assert found["source"]["one tree a source"] is None
    assert found["in_port"]["one tree a source"] is None
    assert found["in_port"]["C×N→C"] is None
    assert found["destination"]["N×N→C"] is None
    assert found["destination"]["C×N→C"] is None


def test_source_keys_above_the_leaf_need_as_many_lower_links():
    for up, down, rounds in ((2, 4, 2), (2, 3, 3)):
        topology = topology_of("fat_tree", up=up, down=down, rounds=rounds)
        conflict = relations(topology, route_fat_tree(topology, FatTreeOptions()))["C×N→C"]
        assert conflict is not None
        assert topology.levels[conflict.switch] > 0
    topology = topology_of("fat_tree", up=2, down=4, rounds=1)
    assert relations(topology, route_fat_tree(topology, FatTreeOptions()))["C×N→C"] is None


def test_the_in_port_alone_chooses_the_way_up():
    topology = topology_of("fat_tree", up=2, down=4, rounds=2)
    routes = route_fat_tree(topology, FatTreeOptions("in_port"))
    next_up: dict[tuple[str, int, int], int] = {}
    for source, end in itertools.product(range(topology.host_count), repeat=2):
        arrival = ("host", int(topology.host_port[source]), int(topology.host_switch[source]))
        for channel in path(topology, routes, source, end):
            if topology.levels[topology.channel_target[channel]] > topology.levels[topology.channel_source[channel]]:
                assert next_up.setdefault(arrival, channel) == channel
            arrival = ("switch", channel, 0)
    assert len(next_up) == 16 * 4 + 8 * 4


def test_the_destination_key_spreads_a_leafs_hosts_over_roots():
    topology = topology_of("myrinet_clos", leaves=3, roots=4, hosts_per_leaf=4)
    routes = route_fat_tree(topology, FatTreeOptions("destination"))
    over = [[int(topology.channel_target[path(topology, routes, s, end)[0]]) for s in range(4)] for end in range(4, 8)]
    assert [set(roots) for roots in over] == [{3}, {4}, {5}, {6}]


@pytest.mark.parametrize("key", ["source", "in_port", "destination"])
@pytest.mark.parametrize(("leaves", "roots", "hosts"), [(4, 4, 4), (5, 3, 7), (2, 6, 4)])
def test_up_links_of_a_clos_carry_numbers_that_differ_by_one(key, leaves, roots, hosts):
    topology = topology_of("myrinet_clos", leaves=leaves, roots=roots, hosts_per_leaf=hosts)
    load = channel_load(topology, route_fat_tree(topology, FatTreeOptions(key)))
    rises = topology.levels[topology.channel_target] > 0
    of_hosts = load[~rises if key == "destination" else rises] / ((leaves - 1) * hosts)
    assert of_hosts.sum() == leaves * hosts
    assert of_hosts.max() - of_hosts.min() <= 1


# --- what is not whole -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "topology", "words"),
    [
        ("fat_tree", ("fat_tree_14", ("s1", "s9"), {}), "fat_tree_14 and here link s1–s9"),
        ("fat_tree", ("myrinet_clos", ("s2", "s8"), {}), "myrinet_clos and here link s2–s8"),
        ("direct", ("complete", ("s1", "s4"), {"switches": 5}), "complete and here link s1–s4"),
    ],
)
def test_a_routing_of_whole_fabrics_names_the_dead_link(name, topology, words):
    kind, link, parameters = topology
    assert refusal(broken(kind, link, **parameters), name) == (
        f'routing.kind: "{name}" needs a whole {words} is dead; "updown", "tbtp" and "sr" route whatever is left'
    )


def test_pairs_with_fewer_parallel_links_keep_to_those_they_have():
    topology = fabric_of_pairs([(0, 1), (0, 1), (1, 2), (1, 2), (1, 2), (2, 3)], [1] * 4)
    routes = ROUTINGS["tree"].route(topology, TreeOptions())
    assert vlans_when_proved(topology, routes) > 1
    whole = topology_of("complete", switches=4, parallel_links=2)
    assert vlans_when_proved(whole, ROUTINGS["direct"].route(whole, DirectOptions())) == 4
