"""VLANs and paths of tori and meshes under the fixed assignment, by closed formulas."""

from __future__ import annotations

import math

import pytest

from testbed.base.errors import InputError
from testbed.planning.summary import summary
from tests.fabrics import plan_of


@pytest.mark.parametrize("sizes", [(3, 3), (4, 4), (5, 5), (7, 7), (8, 8), (16, 16), (3, 3, 3), (4, 4, 4), (5, 5, 5)])
def test_two_trees_a_row_need_the_papers_number_of_vlans(sizes):
    """Koibuchi 2011, Table 3: 2 k^(n-1)."""
    plan = plan_of("torus", {"kind": "dor", "ring": "two_trees"}, sizes=list(sizes), parallel_links=2)
    assert plan.violations == ()
    assert plan.vlans.vlan_count == 2 * math.prod(sizes) // sizes[0]


@pytest.mark.parametrize(("k", "vlans"), [(3, 9), (4, 8), (5, 25), (6, 18), (7, 49), (8, 32), (9, 81), (16, 128)])
def test_minimal_paths_need_the_papers_number_of_trees_a_row(k, vlans):
    plan = plan_of("torus", {"kind": "dor", "planes": "link"}, sizes=[k, k], parallel_links=2)
    assert plan.violations == ()
    assert plan.vlans.vlan_count == vlans == (k // 2 * k if k % 2 == 0 else k * k)


def test_two_trees_a_row_are_not_minimal():
    short, trees = (
        summary(plan_of("torus", {"kind": "dor", **options}, sizes=[8, 8], parallel_links=2))["mean_switches_on_path"]
        for options in ({}, {"ring": "two_trees"})
    )
    assert (short, trees) == (5.00, 5.25)


def test_upward_ties_give_16_vlans_and_cycles_on_single_links():
    plan = plan_of("torus", {"kind": "dor", "ties": "positive", "ring": "shortest"}, sizes=[4, 4])
    assert plan.vlans.vlan_count == 16
    assert not plan.deadlock_free


def test_a_plane_rule_beside_two_trees_is_refused():
    with pytest.raises(InputError, match=r'routing.planes: "link" has no effect with ring: two_trees; leave it out'):
        plan_of("torus", {"kind": "dor", "ring": "two_trees", "planes": "link"}, sizes=[4, 4], parallel_links=2)


def test_two_trees_need_two_links():
    with pytest.raises(InputError, match=r'routing.ring: "two_trees" needs two links for each pair'):
        plan_of("torus", {"kind": "dor", "ring": "two_trees"}, sizes=[4, 4])
