"""Figures of routings by turns and of routings round dead links, from the papers and an independent prototype."""

from __future__ import annotations

from statistics import mean

import numpy as np
import pytest

from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.north_last import NorthLastOptions, route_north_last
from testbed.fabric.routing.paths import channel_load, hop_counts
from testbed.fabric.routing.turns import prohibited_turns
from testbed.fabric.topologies.faults import Faults, apply_faults
from testbed.fabric.verify import verify
from testbed.fabric.vlans.fixed import FixedOptions, assign_fixed
from tests.fabrics import topology_of

SEEDS = range(1, 11)


def routed(name, topology, **options):
    return ROUTINGS[name].route(topology, ROUTINGS[name].options(**options))


def percent(name, topology):
    prohibited, total = prohibited_turns(topology, routed(name, topology).allowed)
    return 100 * prohibited / total


@pytest.mark.parametrize(
    ("kind", "name", "figure"),
    [
        ("torus", "sr", 22.4),
        ("torus", "updown", 20.8),
        ("torus", "tbtp", 30.7),
        ("mesh", "sr", 16.8),
        ("mesh", "updown", 16.8),
        ("mesh", "tbtp", 31.2),
    ],
)
def test_prohibited_turns_of_8x8_grids(kind, name, figure):
    assert round(percent(name, topology_of(kind, sizes=(8, 8))), 1) == figure


@pytest.mark.parametrize(("name", "figure", "spread"), [("sr", 21.9, 0.3), ("updown", 25.9, 0.6), ("tbtp", 28.9, 0.5)])
def test_prohibited_turns_of_64_switches_linked_at_random(name, figure, spread):
    """Degree 4; mean of ten seeds, whose own standard deviation is 0.4 (sr) to 0.8."""
    found = mean(percent(name, topology_of("random", switches=64, degree=4, seed=seed)) for seed in SEEDS)
    assert found == pytest.approx(figure, abs=spread)


def test_segments_beat_up_down_and_that_tree_based_prohibition():
    """Mejia 2007, Fig. 4c: throughput of SR is 2.0 times that of up*/down* and 3.2 times that of TBTP."""
    hops, load = {}, {}
    for name in ("sr", "updown", "tbtp", "stp"):
        of_seed = []
        for seed in SEEDS:
            topology = topology_of("random", switches=64, degree=4, seed=seed)
            routes = routed(name, topology)
            of_seed.append((hop_counts(topology, routes).sum() / (64 * 63), channel_load(topology, routes).max()))
        hops[name], load[name] = np.mean(of_seed, axis=0)
    assert hops["sr"] < hops["updown"] < hops["tbtp"] < hops["stp"]
    assert load["updown"] / load["sr"] > 2
    assert load["tbtp"] / load["sr"] > 3
    assert load["stp"] > load["tbtp"]


def vlans_round(kind, sizes, one, other):
    whole = topology_of(kind, sizes=sizes)
    strides = np.cumprod([1, *sizes[:-1]])
    near, far = (f"s{1 + int(np.dot(strides, at))}" for at in (one, other))
    topology = apply_faults(whole, Faults(links=((near, far),)))
    routes = route_north_last(topology, NorthLastOptions())
    vlans = assign_fixed(topology, routes, FixedOptions())
    assert verify(topology, routes, vlans, None) == ()
    return vlans.vlan_count


@pytest.mark.parametrize("k", range(4, 9))
def test_a_mesh_with_a_dead_inner_x_link_needs_k_plus_1_vlans(k):
    """Koibuchi 2011, Table 3: (k+1)k^(n-2)."""
    for x in range(1, k - 2):
        for y in range(k):
            assert vlans_round("mesh", (k, k), (x, y), (x + 1, y)) == k + 1


@pytest.mark.parametrize(("k", "vlans"), [(4, 17), (5, 26)])
def test_in_3d_only_the_row_of_the_dead_link_needs_one_more(k, vlans):
    """Table 3 has (k+1)k, 20 for k = 4, as if a link were dead in every plane."""
    assert vlans_round("mesh", (k, k, k), (1, 2, 2), (2, 2, 2)) == vlans == k**2 + 1


def test_a_4x4_torus_with_a_dead_link_needs_seven_vlans():
    """Table 3 has 2(k+1) = 10; here the ring that is cut has one tree instead of two."""
    for y in range(4):
        for x in range(4):
            assert vlans_round("torus", (4, 4), (x, y), ((x + 1) % 4, y)) == 7


@pytest.mark.parametrize(("up", "down", "rounds", "vlans"), [(2, 4, 1, 2), (2, 4, 2, 4), (2, 2, 3, 8), (3, 3, 2, 9)])
@pytest.mark.parametrize("key", ["source", "in_port"])
def test_a_fat_tree_needs_as_many_vlans_as_ways_up(key, up, down, rounds, vlans):
    topology = topology_of("fat_tree", up=up, down=down, rounds=rounds)
    routes = routed("fat_tree", topology, key=key)
    assert assign_fixed(topology, routes, FixedOptions()).vlan_count == vlans == up**rounds
