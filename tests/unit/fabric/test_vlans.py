from __future__ import annotations

import re

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import Routes, VlanPlan
from testbed.fabric.routing.dimension_order import DorOptions, route_dor
from testbed.fabric.routing.paths import path
from testbed.fabric.routing.relation import as_source_trees
from testbed.fabric.vlans.fixed import FixedOptions, assign_fixed
from testbed.fabric.vlans.mac_entries import entries_of
from tests.fabrics import plan_of, topology_of


def test_hosts_have_their_trees_vlan_and_are_untagged_in_all():
    plan = plan_of("mesh", sizes=[3, 2], hosts_per_switch=2)
    assert plan.vlans.vlan_ids.tolist() == [10, 11]
    assert plan.vlans.pvid.tolist() == [0] * 6 + [1] * 6  # one VLAN a row
    assert plan.vlans.untagged_hosts.shape == (2, 12)
    assert plan.vlans.untagged_hosts.all()


def test_tagged_links_of_a_mesh_row_are_the_row_and_all_columns():
    plan = plan_of("mesh", sizes=[3, 2])
    links = [{tuple(link) for link in plan.topology.links[row].tolist()} for row in plan.vlans.tagged_links]
    columns = {(0, 3), (1, 4), (2, 5)}
    assert links == [{(0, 1), (1, 2)} | columns, {(3, 4), (4, 5)} | columns]


def test_a_tree_inside_another_joins_its_vlan():
    """Host 1 of a chain of three uses both links, host 2 only the first: no VLAN of its own (Step 3)."""
    topology = topology_of("mesh", sizes=(3,))
    parent = np.array([[-1, 0, 2], [1, -1, -1], [1, 3, -1]], dtype=np.int32)
    every = np.arange(3, dtype=np.int32)
    routes = Routes("source_trees", every, parent, every, every)
    vlans = assign_fixed(topology, routes, FixedOptions())
    assert vlans.vlan_count == 1
    assert vlans.pvid.tolist() == [0, 0, 0]
    assert vlans.tagged_links.all()


def test_entries_point_along_the_path_of_the_vlans_own_hosts():
    plan = plan_of("ring", switches=3)
    assert isinstance(plan.vlans, VlanPlan)
    entries = entries_of(plan.topology, plan.vlans)
    rows = zip(entries.vlan, entries.switch, entries.host, entries.port, strict=True)
    of_vlan_0 = {(int(switch), int(host)): int(port) for vlan, switch, host, port in rows if vlan == 0}
    assert of_vlan_0 == {(0, 0): 1, (0, 1): 2, (0, 2): 3, (1, 1): 1, (2, 2): 1}


@pytest.mark.parametrize("first", [1, 4087])
def test_identifiers_may_start_anywhere_they_fit(first):
    topology = topology_of("torus", sizes=(4, 4))
    vlans = assign_fixed(topology, route_dor(topology, DorOptions()), FixedOptions(first_vlan=first))
    assert vlans.vlan_ids.tolist() == list(range(first, first + 8))


def test_one_identifier_too_few():
    topology = topology_of("torus", sizes=(4, 4))
    with pytest.raises(InputError, match=r"^assignment.first_vlan: 8 VLANs from 4088 on end at 4095"):
        assign_fixed(topology, route_dor(topology, DorOptions()), FixedOptions(first_vlan=4088))


def test_next_hops_by_destination_become_the_same_paths_as_trees():
    topology = topology_of("torus", sizes=(4, 3), parallel_links=2)
    routes = route_dor(topology, DorOptions(planes="dest"))
    trees = as_source_trees(topology, routes)
    assert isinstance(trees, Routes)
    assert (routes.relation, trees.relation) == ("destination_trees", "source_trees")
    assert as_source_trees(topology, trees) is trees
    for source in range(12):
        for end in range(12):
            assert path(topology, trees, source, end) == path(topology, routes, source, end)


@pytest.mark.parametrize(("sizes", "ties"), [((5,), "alternating"), ((4,), "positive"), ((3, 6), "alternating")])
def test_a_conflict_names_switch_ports_and_destinations(sizes, ties):
    topology = topology_of("torus", sizes=sizes, parallel_links=2)
    routes = route_dor(topology, DorOptions(planes="dest", ties=ties))
    with pytest.raises(InputError) as error:
        assign_fixed(topology, routes, FixedOptions())
    (problem,) = error.value.problems
    assert problem.place == "assignment.kind"
    pattern = (
        r"frames from s(\d+) enter s(\d+) by port (\d+) for destination s(\d+) "
        r"and by port (\d+) for destination s(\d+)\."
    )
    found = re.search(pattern, problem.sentence)
    assert found
    root, switch, first_port, first_end, second_port, second_end = (int(text) for text in found.groups())
    assert first_port != second_port
    for port, end in ((first_port, first_end), (second_port, second_end)):
        channels = path(topology, routes, root - 1, end - 1)
        entering = [int(topology.out_port[c ^ 1]) for c in channels if topology.channel_target[c] == switch - 1]
        assert entering == [port]
