"""No plan that is proved ever stands still, whatever the routing, under all the load its hosts can make."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from testbed.engines.simulate import Network, Settings, simulate
from testbed.fabric.kernels.cycles import on_cycles
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.routing.channel_lookup import explicit_routes
from testbed.fabric.routing.paths import all_paths
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.turns import all_turns, allow
from testbed.fabric.verify.deadlock import adjacency, check_routes, find_deadlock, hop_name
from tests.fabrics import random_fabrics

# Buffers of one packet: the least that cut-through has, where a deadlock forms soonest.
HARSH = Settings(clocks=6_000, warm_up=1_000, packet=4, buffer=4)
LONGER = Settings(clocks=60_000, warm_up=1_000, packet=4, buffer=4)
ROUTED: list[tuple[str, dict[str, Any]]] = [
    ("updown", {}),
    ("tbtp", {}),
    ("sr", {}),
    ("lturn", {}),
    ("stp", {}),
    ("dl", {"variant": "ud", "layers": 2}),
    ("dl", {"variant": "ud_du", "layers": 3}),
    ("dl", {"variant": "lturn", "layers": 3}),
    ("lash", {}),
    ("dfsssp", {}),
    ("nue", {"layers": 1}),
    ("nue", {"layers": 3}),
]


def turns_taken(topology, routes):
    """(D, 2) virtual channels that follow each other on a path."""
    paths = all_paths(topology, routes)
    same_path = np.ones(len(paths.hop), dtype=bool)
    same_path[paths.start[:-1][np.diff(paths.start) > 0]] = False
    return np.stack([paths.hop[:-1], paths.hop[1:]], axis=1)[same_path[1:]]


@pytest.mark.parametrize("number", range(len(ROUTED)))
def test_no_proved_plan_ever_deadlocks(number):
    name, options = ROUTED[number]
    flowing = 0
    for topology in random_fabrics()[number :: len(ROUTED)]:
        if topology.host_count < 2:
            continue
        routes = ROUTINGS[name].route(topology, ROUTINGS[name].options(**options))
        assert check_routes(topology, routes) == []
        assert find_deadlock(topology, turns_taken(topology, routes), routes.layers) == []
        for channels in (1, 2):
            settings = dataclasses.replace(HARSH, channels=channels)
            point = simulate(Network.from_routes(topology, routes, settings, 1), 1.0, number)
            assert point is not None
            assert point.cycle == ()
            assert point.packets > 0
        flowing += 1
    assert flowing >= 10


def unrestricted(topology, seed):
    """Shortest paths by any turns, drawn at random."""
    before, after = all_turns(topology)
    turns = allow(topology, np.ones(len(before), dtype=bool), before, after)
    paths = select_paths(topology, turns, SelectionOptions(selection="random", seed=seed))
    return explicit_routes(topology, paths, turns)


@pytest.mark.parametrize("part", range(4))
def test_cyclic_plans_stand_still_on_a_known_cycle_others_never(part):
    """A cycle need not close by chance in a short run, so a few may get away; more would mean a blind watchdog."""
    cyclic, stood_still = 0, 0
    for number, topology in list(enumerate(random_fabrics()))[part::8]:
        if topology.host_count < 2:
            continue
        routes = unrestricted(topology, number)
        turns = turns_taken(topology, routes)
        nodes = len(topology.channel_source)
        on_a_cycle = on_cycles(*adjacency(nodes, turns))
        assert bool(find_deadlock(topology, turns, 1)) == bool(on_a_cycle.any())
        settings = dataclasses.replace(LONGER, channels=1 + number // 4 % 2)
        point = simulate(Network.from_routes(topology, routes, settings, 1), 1.0, number)
        if not on_a_cycle.any():
            assert point.cycle == ()
            continue
        cyclic += 1
        stood_still += bool(point.cycle)
        number_of = {hop_name(topology, node, 1): node for node in range(nodes)}
        assert all(on_a_cycle[number_of[name]] for name in point.cycle)
    assert cyclic >= 25
    assert stood_still >= 0.75 * cyclic
