"""The papers' figures, from the scenario files and by formula."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.fabric.routing.paths import switches_on_path
from testbed.planning import make_plan
from testbed.planning.summary import summary
from testbed.scenario import load_scenario
from tests.fabrics import plan_of

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def plan_of_file(name):
    return make_plan(load_scenario(SCENARIOS / f"{name}.yaml"))


@pytest.mark.parametrize(
    ("name", "switches", "links", "on_path", "vlans"),
    [
        ("mesh4x2", 8, 10, 2.75, 2),
        ("torus4x2", 8, 12, 2.50, 4),
        ("myri-clos", 8, 16, 2.50, 4),
        ("mtree4x4", 16, 15, 4.81, 1),
        ("mesh4x4", 16, 24, 3.50, 4),
        ("torus4x4", 16, 32, 3.00, 8),
        ("fattree14", 14, 24, 3.75, 4),
        ("flat16", 1, 0, 1.00, 1),
    ],
)
def test_topologies_of_the_switch_tagged_paper(name, switches, links, on_path, vlans):
    """Koibuchi 2011, Table 11: 16 hosts; mean over all N² ordered pairs, same-switch and self pairs counted as 1."""
    figures = summary(plan_of_file(name))
    assert figures["hosts"] == 16
    assert (figures["switches"], figures["switch_links"], figures["vlans"]) == (switches, links, vlans)
    assert round(figures["mean_switches_on_path"], 2) == on_path
    assert figures["deadlock_free"]


def test_the_papers_clos_figure_counts_pairs_on_a_leaf_as_zero():
    """2.50 in the convention of all other topologies; the paper's 2.25 counts same-leaf and self pairs as 0."""
    plan = plan_of_file("myri-clos")
    on_path = switches_on_path(plan.topology, plan.routes)
    leaf = plan.topology.host_switch
    assert on_path.mean() == 2.50
    on_path[leaf[:, None] == leaf[None, :]] = 0
    assert on_path.mean() == 2.25


@pytest.mark.parametrize(
    ("kind", "parameters", "vlans"),
    [
        ("mesh", {"sizes": [4, 4]}, 4),
        ("mesh", {"sizes": [4, 2]}, 2),
        ("mesh", {"sizes": [2, 4]}, 4),  # the product of all sizes but the first-routed
        ("mesh", {"sizes": [5, 3, 2]}, 6),
        ("torus", {"sizes": [4, 4]}, 8),
        ("torus", {"sizes": [4, 2]}, 4),
        ("torus", {"sizes": [4, 4, 4]}, 32),
        ("fat_tree", {"up": 2, "down": 4, "rounds": 2}, 4),
        ("fat_tree", {"up": 2, "down": 4, "rounds": 1}, 2),
        ("fat_tree", {"up": 2, "down": 2, "rounds": 3, "hosts_per_leaf": 8}, 8),
        ("fat_tree", {"up": 3, "down": 3, "rounds": 2, "hosts_per_leaf": 9}, 9),
        ("complete", {"switches": 8}, 8),
        ("hypercube", {"dimensions": 4}, 8),
        ("tree", {"switches": 8}, 1),
        ("flat", {"hosts": 16}, 1),
    ],
)
def test_vlans_of_the_fixed_assignment(kind, parameters, vlans):
    plan = plan_of(kind, **parameters)
    assert plan.vlans.vlan_count == vlans
    assert plan.violations == ()


@pytest.mark.parametrize(("k", "n"), [(2, 1), (5, 1), (3, 2), (6, 2), (2, 3), (3, 3), (4, 3), (2, 4), (3, 4)])
def test_vlans_of_a_k_ary_n_mesh(k, n):
    assert plan_of("mesh", sizes=[k] * n).vlans.vlan_count == k ** (n - 1)


@pytest.mark.parametrize(
    ("sizes", "options", "vlans"),
    [
        ([4, 4], {"ties": "positive"}, 16),
        ([6, 6], {}, 18),
        ([8, 8], {}, 32),
        ([4, 4, 4], {}, 32),
        ([3, 3], {}, 9),
        ([5, 5], {}, 25),
    ],
)
def test_vlans_of_a_torus_with_shortest_paths(sizes, options, vlans):
    """(k/2) k^(n-1) for even k with alternating ties, k^n for odd k and for ties that always go upward."""
    plan = plan_of("torus", {"kind": "dor", "ring": "shortest", **options}, sizes=sizes)
    assert plan.vlans.vlan_count == vlans


@pytest.mark.parametrize(
    ("name", "vlans", "on_path", "load"),
    [
        ("tree8", 1, 3.21875, 64),
        ("ring8", 3, 3.25, 52),
        ("complete8", 8, 1.875, 4),
        ("hypercube4", 8, 3.0, 8),
        ("fattree2-4-2", 4, 4.375, 15),
        ("mesh4x4x2", 8, 4.0, 32),
        ("torus8x8", 24, 5.5, 104),
        ("deadlock-torus8x8", 32, 5.0, 64),
        ("mesh4x4", 4, 3.5, 16),  # k³/4 at the bisection
        ("torus4x4", 8, 3.0, 8),  # 512 hops over 64 channels: all equally loaded
    ],
)
def test_other_scenarios(name, vlans, on_path, load):
    figures = summary(plan_of_file(name))
    assert (figures["vlans"], figures["mean_switches_on_path"], figures["max_channel_load"]) == (vlans, on_path, load)
    assert figures["deadlock_free"] == (name != "deadlock-torus8x8")


def test_torus4x4_uses_every_channel_equally():
    figures = summary(plan_of_file("torus4x4"))
    assert figures["unused_channels"] == 0
    assert figures["vlan_ids"] == list(range(10, 18))


def test_digest_of_torus4x4():
    """Equal on every machine; a new one here means that the planned fabric changed."""
    assert plan_of_file("torus4x4").digest == "6561934758d3d398"
