"""The assignment in which hosts tag: its options, what it refuses, and the sets of trees for it."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.fabric.routing.paths import channel_load, mean_switches_on_path, path
from testbed.planning import Plan, make_plan
from tests.fabrics import graph_of, scenario_of

HOST_TAGGED = {"kind": "host_tagged"}


def plan_of(kind: str, routing: dict[str, Any] | None = None, assignment: Any = None, **topology: Any) -> Plan:
    blocks = {"topology": {"kind": kind, **topology}, "assignment": assignment}
    return make_plan(scenario_of(blocks if routing is None else blocks | {"routing": routing}))


def refused(match: str, kind: str = "mesh", **parameters: Any) -> None:
    with pytest.raises(InputError, match=match):
        plan_of(kind, **parameters)


def test_a_mesh_needs_as_many_vlans_as_when_switches_tag():
    both = [plan_of("mesh", sizes=[4, 4], assignment={"kind": kind}) for kind in ("host_tagged", "fixed")]
    assert [plan.vlans.vlan_count for plan in both] == [4, 4]


@pytest.mark.parametrize(
    ("kind", "sizes", "vlans"),
    [
        ("mesh", [2, 2], 2), ("mesh", [4, 4], 3), ("mesh", [6, 6], 4), ("mesh", [4, 4, 4], 9), ("mesh", [8, 8], 5),
        ("torus", [4, 4], 6), ("torus", [6, 6], 8), ("torus", [4, 4, 4], 18),
    ],
)  # fmt: skip
def test_partially_balanced_sets_have_the_printed_size(kind, sizes, vlans):
    """k^(n-1)/2 + 1 on a mesh and k^(n-1) + 2 on a torus (Koibuchi et al. 2011, section 2)."""
    plan = plan_of(kind, sizes=sizes, routing={"kind": "partially_balanced"}, assignment=HOST_TAGGED)
    assert plan.vlans.vlan_count == vlans
    assert {violation.invariant for violation in plan.violations} <= {"deadlock"}
    shortest = dict(nx.all_pairs_shortest_path_length(graph_of(plan.topology)))
    hosts = plan.topology.host_count
    wanted = sum(shortest[a][b] + 1 for a in range(hosts) for b in range(hosts)) / hosts**2
    assert mean_switches_on_path(plan.topology, plan.routes) == pytest.approx(wanted)


def test_a_partial_set_of_a_mesh_loads_its_lines_more():
    partial = plan_of("mesh", sizes=[4, 4], routing={"kind": "partially_balanced"}, assignment=HOST_TAGGED)
    balanced = plan_of("mesh", sizes=[4, 4], assignment=HOST_TAGGED)
    assert partial.violations == ()
    most = [int(channel_load(plan.topology, plan.routes).max()) for plan in (balanced, partial)]
    assert most == [16, 28]
    assert "3 trees in place of the 4 of a balanced set" in partial.routes.notes[0]


def test_a_pair_on_one_line_uses_the_tree_of_all_lines():
    plan = plan_of("mesh", sizes=[4, 4], routing={"kind": "partially_balanced"}, assignment=HOST_TAGGED)
    topology = plan.topology
    for source in range(4):  # the first line, which has no tree of its own
        for end in range(4):
            if source != end:
                taken = path(topology, plan.routes, source, end)
                assert set(topology.coordinates[topology.channel_target[list(taken)], 1].tolist()) == {0}
                assert plan.vlans.pair_vlan[source, end] == 2


@pytest.mark.parametrize(
    ("kind", "sizes", "match"),
    [
        ("torus", [5, 4], r"topology.sizes: .*even rings of 4 or more, not 5×4; use routing.kind: dor"),
        ("mesh", [6], "two dimensions or more"),
    ],
)
def test_partially_balanced_sets_need_a_grid_with_even_rings(kind, sizes, match):
    refused(match, kind, sizes=sizes, routing={"kind": "partially_balanced"}, assignment=HOST_TAGGED)


def test_a_host_without_tags_must_be_of_the_fabric():
    refused(
        r'assignment.untagged: names "h99", which is no host of this fabric; they are h1 to h4',
        sizes=[2, 2], assignment={**HOST_TAGGED, "untagged": ["h99"]},
    )  # fmt: skip


def test_a_host_without_tags_has_one_vlan():
    refused(
        r"assignment.untagged: names h5, whose paths are in \d VLANs \(10, .*and a port has one PVID; let h5 tag",
        "random", switches=10, degree=4, seed=3, routing={"kind": "updown"},
        assignment={**HOST_TAGGED, "untagged": ["h5"]},
    )  # fmt: skip


def test_layers_have_no_place_in_tags_of_hosts():
    refused(
        '"host_tagged" carries no layers', "torus", sizes=[5, 5], routing={"kind": "dor", "ring": "datelines"},
        assignment=HOST_TAGGED,
    )  # fmt: skip


def test_more_hosts_than_pairs_can_be_proved_for_are_refused():
    refused("assignment.kind: .*of 1,024 hosts at most, and there are 1,089", sizes=[33, 33], assignment=HOST_TAGGED)


def test_hosts_on_one_switch_have_one_vlan():
    plan = make_plan(
        scenario_of(
            {
                "topology": {"kind": "graph", "switches": ["a"], "links": [], "hosts": {"a": 2}},
                "routing": {"kind": "stp"}, "assignment": HOST_TAGGED,
            }
        )
    )  # fmt: skip
    assert (plan.vlans.vlan_count, plan.violations) == (1, ())
    assert np.asarray(plan.vlans.tagged_hosts).all()
