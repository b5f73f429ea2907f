"""No plan that is proved ever stands still, or loses a frame, under PAUSE or PFC with the least memory there can be."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.engines.simulate import PacketNetwork, PacketSettings, simulate_packets
from testbed.engines.simulate.packet_settings import FlowControl, headroom
from testbed.fabric.routing import ROUTINGS
from testbed.fabric.verify.deadlock import check_routes, find_deadlock
from tests.fabrics import random_fabrics
from tests.property.test_simulate import turns_taken

ROUTED: list[tuple[str, dict[str, Any], FlowControl]] = [
    ("updown", {}, "pause"),
    ("tbtp", {}, "pause"),
    ("sr", {}, "pause"),
    ("stp", {}, "pause"),
    ("dl", {"variant": "ud", "layers": 2}, "pfc"),
    ("lash", {}, "pfc"),
    ("nue", {"layers": 1}, "pause"),
    ("nue", {"layers": 3}, "pfc"),
]


@pytest.mark.parametrize("number", range(len(ROUTED)))
def test_no_proved_plan_ever_deadlocks_or_drops(number):
    name, options, how = ROUTED[number]
    flowing = 0
    # The least memory: one frame and what can arrive after a pause was asked for, where a deadlock forms soonest.
    least = 1 + headroom(PacketSettings(), 1e9)
    for topology in random_fabrics()[number :: 2 * len(ROUTED)]:
        if topology.host_count < 2:
            continue
        routes = ROUTINGS[name].route(topology, ROUTINGS[name].options(**options))
        if routes.layers > 8:
            continue
        assert check_routes(topology, routes) == []
        assert find_deadlock(topology, turns_taken(topology, routes), routes.layers) == []
        shared = number % 2 == 1
        settings = PacketSettings(
            flow_control=how, duration=15, warm_up=1, buffer=(least + shared) * 1522, shared=shared
        )  # fmt: skip
        point = simulate_packets(PacketNetwork.from_routes(topology, routes, settings, 1e9, 1e9, 1), 1.0, number)
        assert point is not None
        assert point.cycle == ()
        assert point.links is not None
        assert point.links.drops == 0
        assert point.packets > 0
        flowing += 1
    assert flowing >= 25
