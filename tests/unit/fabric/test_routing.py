from __future__ import annotations

import inspect
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.channel_lookup import plane_groups
from testbed.fabric.routing.dimension_order import DorOptions
from testbed.fabric.routing.fat_tree import FatTreeOptions
from testbed.fabric.routing.paths import channel_load, hops, path, switches_on_path
from testbed.fabric.routing.shortest_trees import DirectOptions, TreeOptions
from testbed.fabric.topologies import TOPOLOGIES
from testbed.planning import make_plan
from tests.fabrics import scenario_of, topology_of

CASES = {"dor": DorOptions(), "fat_tree": FatTreeOptions(), "tree": TreeOptions(), "direct": DirectOptions()}
EXAMPLES: dict[str, dict[str, Any]] = {
    "mesh": {"sizes": (3, 3)},
    "torus": {"sizes": (3, 3)},
    "hypercube": {"dimensions": 3},
    "ring": {"switches": 5},
    "fat_tree": {"up": 2, "down": 2, "rounds": 2},
    "fat_tree_14": {},
    "myrinet_clos": {},
    "tree": {"switches": 7},
    "m_tree": {"columns": 3, "rows": 3},
    "complete": {"switches": 5},
    "flat": {"hosts": 4},
    "leaf_spine": {"leaves": 3},
    "rail_optimised": {"rails": 2},
    "fat_tree_pods": {"ports": 4},
    "dragonfly_plus": {"leaves": 1, "spines": 2, "global_links": 1},
    "xpander": {"degree": 3, "lift": 2},
    "polarfly": {"q": 2},
    "twisted_torus": {"sizes": (3, 3)},
    "random": {"switches": 6, "degree": 3, "seed": 1},
    "jellyfish": {"switches": 6, "ports": 4, "hosts_per_switch": 1, "seed": 1},
    "dragonfly": {"routers": 2, "global_links": 1},
    "hyperx": {"sizes": (3, 3)},
    "slim_fly": {"q": 3},
    "graph": {"switches": ("a", "b", "c"), "links": (("a", "b"), ("b", "c"), ("c", "a"))},
}
FITTING = {
    "dor": {"mesh", "torus", "hypercube", "ring"},
    "fat_tree": {"fat_tree", "fat_tree_14", "myrinet_clos", "leaf_spine", "rail_optimised", "fat_tree_pods"},
    "tree": {"tree", "m_tree", "flat"},
    "direct": {"complete"},
}


def names(topology, channels):
    return [topology.channel_name(channel) for channel in channels]


def test_each_topology_has_an_example_here():
    assert {*EXAMPLES} == {*TOPOLOGIES}


def test_each_topology_names_a_routing_that_fits():
    for kind, entry in TOPOLOGIES.items():
        assert ROUTINGS[entry.routing].any_topology or kind in FITTING[entry.routing]


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
@pytest.mark.parametrize("routing", sorted(CASES))
def test_a_routing_refuses_topologies_it_is_not_made_for(routing, kind):
    topology = topology_of(kind, **EXAMPLES[kind])
    if kind in FITTING[routing]:
        assert switches_on_path(topology, ROUTINGS[routing].route(topology, CASES[routing])).min() == 1
    else:
        with pytest.raises(InputError, match=f'^routing.kind: "{routing}" needs .*, not .*{kind}') as error:
            ROUTINGS[routing].route(topology, CASES[routing])
        assert len(error.value.problems) == 1


def ring_path(size, source, end, parallel_links=1, **options):
    topology = topology_of("ring", switches=size, parallel_links=parallel_links)
    return names(topology, path(topology, ROUTINGS["dor"].route(topology, DorOptions(**options)), source, end))


def test_ties_alternate_between_down_from_even_and_up_from_odd():
    assert ring_path(4, 0, 2) == ["s1→s4", "s4→s3"]
    assert ring_path(4, 1, 3) == ["s2→s3", "s3→s4"]
    assert ring_path(4, 2, 0) == ["s3→s2", "s2→s1"]
    assert ring_path(4, 0, 2, ties="positive", ring="shortest") == ["s1→s2", "s2→s3"]


@pytest.mark.parametrize(
    ("planes", "taken"),
    [
        ("link", ["s6→s7", "s7→s1#1", "s1→s2#1"]),  # the wrap link and all after it
        ("node", ["s6→s7", "s7→s1", "s1→s2#1"]),  # after passing through coordinate 0
        ("dest", ["s6→s7", "s7→s1", "s1→s2#1"]),  # plane 0 while the wrap lies ahead
    ],
)
def test_plane_rules_upward_over_the_wrap(planes, taken):
    assert ring_path(7, 5, 1, parallel_links=2, planes=planes) == taken


def test_dest_uses_plane_one_where_no_wrap_lies_ahead():
    assert ring_path(7, 1, 3, 2, planes="dest") == ["s2→s3#1", "s3→s4#1"]
    assert ring_path(7, 1, 3, 2, planes="node") == ["s2→s3", "s3→s4"]
    assert ring_path(7, 0, 5, 2, planes="dest") == ["s1→s7", "s7→s6#1"]


def test_node_stays_on_plane_zero_if_an_end_has_coordinate_0():
    assert ring_path(7, 0, 5, 2, planes="node") == ["s1→s7", "s7→s6"]
    assert ring_path(7, 5, 0, 2, planes="node") == ["s6→s7", "s7→s1"]
    assert ring_path(7, 0, 5, 2, planes="link") == ["s1→s7#1", "s7→s6#1"]


def test_the_way_down_is_by_the_switch_of_the_sources_digit():
    topology = topology_of("fat_tree_14")
    routes = ROUTINGS["fat_tree"].route(topology, FatTreeOptions())
    for source in range(topology.host_count):
        for end in range(topology.host_count):
            passed = topology.channel_target[list(path(topology, routes, source, end))].tolist()
            middles = [(switch - 8) % 2 for switch in passed if topology.levels[switch] == 1]
            assert len(set(middles)) <= 1


@pytest.mark.parametrize("size", range(3, 10))
def test_no_transit_never_passes_through_coordinate_0(size):
    topology = topology_of("ring", switches=size)
    routes = ROUTINGS["dor"].route(topology, DorOptions(ring="no_transit"))
    for source in range(size):
        for end in range(size):
            inside = topology.channel_target[list(path(topology, routes, source, end))][:-1]
            assert 0 not in inside


@pytest.mark.parametrize(("kind", "shape"), [
    ("torus", {"sizes": (8, 8)}), ("torus", {"sizes": (5, 4, 3)}), ("torus", {"sizes": (6, 2), "parallel_links": 3}),
    ("ring", {"switches": 7}), ("mesh", {"sizes": (4, 4)}),
])  # fmt: skip
def test_datelines_keep_shortest_ways_in_two_layers_acyclic(kind, shape):
    blocks = {"topology": {"kind": kind, **shape}, "assignment": {"kind": "openflow"}}
    plan = make_plan(scenario_of({**blocks, "routing": {"kind": "dor", "ring": "datelines"}}))
    topology, channels = plan.topology, len(plan.topology.channel_source)
    plan.require_proof()
    shortest = ROUTINGS["dor"].route(topology, DorOptions(ring="shortest"))
    assert np.array_equal(switches_on_path(topology, plan.routes), switches_on_path(topology, shortest))
    seen = set()
    for source in range(topology.host_count):
        for end in range(topology.host_count):
            layers = [hop // channels for hop in hops(topology, plan.routes, source, end)]
            links = [abs(np.diff(topology.coordinates[list(topology.links[hop % channels // 2])], axis=0)).max()
                     for hop in hops(topology, plan.routes, source, end)]  # fmt: skip
            assert sum(layers) >= sum(length > 1 for length in links)
            assert all(layer == 1 for layer, length in zip(layers, links, strict=True) if length > 1)
            seen.update(layers)
    assert seen == ({0} if kind == "mesh" else {0, 1})


def test_datelines_take_no_planes():
    with pytest.raises(InputError, match=r'^routing.planes: "link" has no effect with ring: datelines; leave it out'):
        ROUTINGS["dor"].route(topology_of("torus", sizes=(5, 5)), DorOptions(ring="datelines", planes="link"))


@pytest.mark.parametrize(
    ("parallel_links", "options", "noted"),
    [
        (1, {}, True),
        (2, {}, False),
        (1, {"ring": "shortest"}, False),
        (2, {"planes": "none"}, True),
        (2, {"planes": "link"}, False),
    ],
)
def test_the_choice_of_longer_paths_is_noted(parallel_links, options, noted):
    topology = topology_of("torus", sizes=(5, 5), parallel_links=parallel_links)
    routes = ROUTINGS["dor"].route(topology, DorOptions(**options))
    assert bool(routes.notes) == noted
    assert all("rings of 5" in note for note in routes.notes)


def test_upward_ties_make_rings_of_four_cyclic_so_auto_avoids():
    topology = topology_of("torus", sizes=(4, 4))
    assert ROUTINGS["dor"].route(topology, DorOptions(ties="positive")).notes
    assert not ROUTINGS["dor"].route(topology, DorOptions()).notes


def test_planes_need_two_links_only_where_there_is_a_ring():
    with pytest.raises(InputError, match=r'^routing.planes: "link" needs two links for each pair'):
        ROUTINGS["dor"].route(topology_of("torus", sizes=(3, 2)), DorOptions(planes="link"))
    for kind, sizes in (("torus", (2, 2)), ("mesh", (5, 5))):
        topology = topology_of(kind, sizes=sizes)
        assert switches_on_path(topology, ROUTINGS["dor"].route(topology, DorOptions(planes="link"))).max() > 1


def test_parallel_links_share_the_sources():
    topology = topology_of("complete", switches=6, parallel_links=3)
    routes = ROUTINGS["direct"].route(topology, DirectOptions())
    load = channel_load(topology, routes).reshape(-1, 2)
    assert load.sum() == 6 * 5
    assert [int(load[topology.plane == plane].sum()) for plane in range(3)] == [10, 10, 10]


def test_parallel_links_of_a_fat_tree_share_the_leaves():
    topology = topology_of("fat_tree", up=2, down=2, rounds=2, parallel_links=2)
    load = channel_load(topology, ROUTINGS["fat_tree"].route(topology, FatTreeOptions())).reshape(-1, 2)
    first, second = (int(load[topology.plane == plane].sum()) for plane in range(2))
    assert first == second > 0


@pytest.mark.parametrize(("parallel_links", "planes"), [(2, [0, 0]), (3, [0, 0]), (4, [0, 2]), (5, [0, 2])])
def test_sources_take_turns_at_pairs_of_four_parallel_links(parallel_links, planes):
    topology = topology_of("ring", switches=6, parallel_links=parallel_links)
    assert plane_groups(topology, np.arange(6, dtype=np.int32), 2).tolist() == planes * 3
    routes = ROUTINGS["dor"].route(topology, DorOptions(ring="two_trees"))
    taken = [{int(p) for p in topology.plane[tree[tree >= 0] // 2]} for tree in routes.tree_channel]
    assert [min(pair) // 2 * 2 for pair in taken] == planes * 3
    assert {plane for pair in taken for plane in pair} == {first + more for first in planes for more in (0, 1)}


def test_a_clos_spreads_its_sources_evenly_over_the_roots():
    topology = topology_of("myrinet_clos", leaves=4, roots=4, hosts_per_leaf=4)
    load = channel_load(topology, ROUTINGS["fat_tree"].route(topology, FatTreeOptions()))
    assert load.max() - load.min() <= 1


@pytest.mark.parametrize("parameters", [{"up": 2, "down": 3, "rounds": 2}, {"up": 2, "down": 2, "rounds": 3}])
def test_fat_tree_paths_turn_once_at_the_lowest_common_level(parameters):
    topology = topology_of("fat_tree", **parameters)
    routes = ROUTINGS["fat_tree"].route(topology, FatTreeOptions())
    down = parameters["down"]
    for source in range(0, topology.host_count, 3):
        for end in range(topology.host_count):
            leaves = (int(topology.host_switch[source]), int(topology.host_switch[end]))
            level = next(n for n in range(9) if leaves[0] // down**n == leaves[1] // down**n)
            levels = topology.levels[topology.channel_target[list(path(topology, routes, source, end))]].tolist()
            assert levels == [*range(1, level + 1), *reversed(range(level))]


def test_options_are_what_stands_beside_the_fields_of_the_class():
    said = "".join(line for line in inspect.getsource(DorOptions).splitlines() if line.strip().startswith("#"))
    for name, hint in get_type_hints(DorOptions).items():
        for word in get_args(hint):
            assert f"`{word}`" in said, (name, word)


def test_one_host_or_none_between_hosts_has_no_load():
    topology = topology_of("flat", hosts=1)
    routes = ROUTINGS["tree"].route(topology, TreeOptions())
    assert path(topology, routes, 0, 0) == ()
    assert np.array_equal(switches_on_path(topology, routes), [[1]])
    assert channel_load(topology, routes).size == 0
