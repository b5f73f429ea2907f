"""No plan that is proved ever stands still, whatever the routing, under all the load its hosts can make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.routing import ROUTINGS
from testbed.routing.paths import all_paths
from testbed.simulate import Network, Settings, simulate
from testbed.verify.deadlock import find_deadlock
from testbed.verify.routes import check_routes
from tests.fabrics import random_fabrics

# Buffers of one packet: the least that cut-through has, where a deadlock forms soonest.
HARSH = Settings(clocks=6_000, warm_up=1_000, packet=4, buffer=4)
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
        point = simulate(Network.of(topology, routes, HARSH, 1), 1.0, number)
        assert point is not None
        assert point.cycle == ()
        assert point.packets > 0
        flowing += 1
    assert flowing >= 10
