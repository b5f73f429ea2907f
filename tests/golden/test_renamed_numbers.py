"""Figures of assignments by the port of arrival: local VLANs, and copies of a flooded frame."""

from __future__ import annotations

import math
import statistics

import pytest

from testbed.planning import make_plan
from testbed.planning.summary import summary
from testbed.scenario import find_scenario, load_scenario
from tests.fabrics import scenario_of


def figures(topology, routing=None, assignment="renamed", **blocks):
    options = assignment if isinstance(assignment, dict) else {"kind": assignment}
    scenario = scenario_of({"topology": topology, "routing": routing or {}, "assignment": options, **blocks})
    plan = make_plan(scenario)
    assert plan.violations == ()
    return summary(plan)


@pytest.mark.parametrize(
    "sizes", [[5], [2, 2], [4, 4], [8, 8], [5, 3], [2, 2, 2], [4, 4, 4], [3, 4, 2], [3, 3, 3, 3], [2, 2, 2, 2, 2]]
)
def test_a_mesh_of_n_dimensions_needs_n(sizes):
    """Koibuchi 2011, Table 3. By forwarding entries alone one VLAN a switch is enough."""
    found = figures({"kind": "mesh", "sizes": sizes})
    assert (found["vlans"], found["vlans_by_entries"]) == (len(sizes), 1)


@pytest.mark.parametrize("k", [5, 6, 7, 8])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_torus_with_planes_by_destination_needs_3n(k, n):
    topology = {"kind": "torus", "sizes": [k] * n, "parallel_links": 2}
    if k**n < 400:
        assert figures(topology, {"kind": "dor", "planes": "dest", "ties": "positive"})["vlans"] == 3 * n


@pytest.mark.parametrize("planes", ["node", "link"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_4_ary_torus_needs_3n(planes, n):
    topology = {"kind": "torus", "sizes": [4] * n, "parallel_links": 2}
    assert figures(topology, {"kind": "dor", "planes": planes, "ties": "positive"})["vlans"] == 3 * n


@pytest.mark.parametrize(("up", "down", "rounds"), [(2, 4, 1), (2, 4, 2), (2, 2, 3), (3, 3, 2), (3, 4, 2), (4, 4, 1)])
@pytest.mark.parametrize(("key", "more"), [("in_port", 0), ("destination", 1)])
def test_a_fat_tree_needs_u_by_in_port_and_one_more_otherwise(up, down, rounds, key, more):
    topology = {"kind": "fat_tree", "up": up, "down": down, "rounds": rounds, "hosts_per_leaf": up**rounds}
    assert figures(topology, {"kind": "fat_tree", "key": key})["vlans"] == up + more


@pytest.mark.parametrize(("k", "row"), [(5, 2), (6, 2), (6, 3), (7, 3)])
def test_a_mesh_with_a_dead_link_needs_one_more_at_the_detour(k, row):
    """Away from the border; n + 1 at the switch below the gap's edge, where frames come from above and turn into x."""
    first = row * k + k // 2
    faults = {"links": [[f"s{first}", f"s{first + 1}"]]}
    topology = {"kind": "mesh", "sizes": [k, k]}
    assert figures(topology, {"kind": "north_last"}, faults=faults)["vlans"] == 3


def test_spanning_tree_and_static_entries_need_one():
    mesh = {"kind": "mesh", "sizes": [4, 4]}
    assert figures(mesh, {"kind": "stp"})["vlans"] == 1
    found = figures(mesh, assignment="static")
    assert (found["vlans"], found["vlans_total"], found["max_mac_entries"]) == (1, 16, 16)
    assert found["vlan_ids"] == []


def test_openflow_needs_one_vlan_for_all():
    found = figures({"kind": "mesh", "sizes": [4, 4]}, assignment="openflow")
    assert (found["vlans"], found["vlans_total"], found["layers"], found["multiplication"]) == (1, 1, 1, None)


def copies(topology, routing=None, assignment="renamed"):
    found = figures(topology, routing, assignment)["multiplication"]
    assert found["endless"] == (found["max"] is None) == (found["mean"] is None)
    return (math.inf, math.inf) if found["endless"] else (found["mean"], found["max"])


def test_a_frame_flooded_in_a_mesh_comes_once():
    assert copies({"kind": "mesh", "sizes": [4, 4]}) == (1, 1)
    assert copies({"kind": "mesh", "sizes": [3, 2, 4], "hosts_per_switch": 2}) == (1, 1)


@pytest.mark.parametrize("planes", ["node", "link"])
def test_a_frame_flooded_in_a_torus(planes):
    """4×4 with two links a pair: 1.9 copies at a switch on average, at most 4."""
    mean, most = copies(
        {"kind": "torus", "sizes": [4, 4], "parallel_links": 2}, {"kind": "dor", "planes": planes, "ties": "positive"}
    )
    assert (round(mean, 1), most) == (1.9, 4)


@pytest.mark.parametrize(
    ("switches", "routing", "mean", "most", "spread"),
    [
        (16, "updown", 3, 18, 4),
        (64, "updown", 17.6, 635, 2),
        (64, "sr", 12_619, 2.3e6, 16),
    ],
)
def test_a_frame_flooded_in_a_random_fabric(switches, routing, mean, most, spread):
    """4 links a switch, one host on each; geometric means over ten seeds against one prototype's fabric.

    Which fabric is drawn and which of equally short paths is taken moves single figures by factors, so the orders of
    magnitude are what is told: within `spread` of the prototype's.
    """
    found = [
        copies({"kind": "random", "switches": switches, "degree": 4, "seed": seed}, {"kind": routing})
        for seed in range(1, 11)
    ]
    for figure, values in ((mean, [pair[0] for pair in found]), (most, [pair[1] for pair in found])):
        assert figure / spread < statistics.geometric_mean(values) < figure * spread


def test_vlans_merged_by_entries_alone_would_flood_for_ever():
    assert copies({"kind": "torus", "sizes": [4, 4]}, None, {"kind": "renamed", "merge": "entries"}) == (
        math.inf,
        math.inf,
    )


def test_without_vlans_floods_circulate_unless_links_are_a_tree():
    mesh = {"kind": "mesh", "sizes": [3, 3]}
    assert copies(mesh, None, "static") == (math.inf, math.inf)
    assert copies(mesh, {"kind": "stp"}, "static") == (1, 1)


@pytest.mark.parametrize(
    ("name", "vlans", "layers", "on_path"),
    [("mesh4x4-renamed", 2, 1, 3.5), ("fattree-renamed", 2, 1, 3.75), ("dl-ud3-irregular16", 1, 3, None)],
)
def test_scenario_files(name, vlans, layers, on_path):
    found = summary(make_plan(load_scenario(find_scenario(name))))
    assert (found["hosts"], found["vlans"], found["layers"], found["deadlock_free"]) == (16, vlans, layers, True)
    assert on_path in (None, found["mean_switches_on_path"])


def test_layers_make_paths_shorter_than_turns_forbidden_outright():
    """The same random network: DL (UD)* with 3 layers, segment-based, up*/down*."""
    names = ("dl-ud3-irregular16", "sr-irregular16", "updown-irregular16")
    on_path = [summary(make_plan(load_scenario(find_scenario(name))))["mean_switches_on_path"] for name in names]
    assert on_path[0] < min(on_path[1:])
