"""The round trip of a message at zero load, by store and forward."""

from __future__ import annotations

import pytest

from testbed.dataplane.predict import Wires, routed_ways, transport
from testbed.dataplane.predict.round_trip import frame_sizes, round_trips
from tests.fabrics import plan_of

# h1 to h3 of a chain of three switches: host, two channels, host.
PLAN = plan_of("mesh", sizes=[3])
PAIR = [(0, 2)]


def trip(request, response, *, link_rate=1e9, host_rate=1e9, tagged=True, held=True):
    wires = Wires(PLAN.topology, transport("udp", 1), link_rate, host_rate, tagged)
    return round_trips(wires, PAIR, routed_ways(PLAN.topology, PLAN.routes, PAIR), request, response, held=held)[0]


def test_a_short_message_is_the_shortest_frame():
    assert frame_sizes("udp", 1) == frame_sizes("udp", 18) == (84,)
    assert (frame_sizes("udp", 19), frame_sizes("tcp", 1)) == ((85,), (91,))


def test_a_full_datagram_and_full_segments():
    assert frame_sizes("udp", 1472) == (1538,)
    assert frame_sizes("tcp", 1448) == (1538,)
    assert frame_sizes("tcp", 1449) == (1538, 91)


def test_one_frame_waits_on_every_link_until_it_is_whole():
    # Preamble and 64 bytes: 72 on a host's link, 76 with a tag; the gap of 12 holds up nobody.
    assert trip((84,), (84,)) == pytest.approx(2 * 8 * (2 * 72 + 2 * 76) / 1e9, rel=1e-12)
    assert trip((84,), (84,), tagged=False) == pytest.approx(2 * 8 * 4 * 72 / 1e9, rel=1e-12)


def test_links_of_two_rates():
    assert trip((84,), (84,), host_rate=1e8) == pytest.approx(2 * 8 * (2 * 72 / 1e8 + 2 * 76 / 1e9), rel=1e-12)


def test_frames_follow_each_other():
    alone = trip((1538,), (84,), tagged=False)
    # The second is behind the first on every link but the first by nothing: one frame with its gap more.
    assert trip((1538, 1538), (84,), tagged=False) - alone == pytest.approx(8 * 1538 / 1e9, rel=1e-12)
    # A short one behind a long one never catches up with it: it waits for the long one on the last link, too.
    both = trip((1538, 84), (84,), tagged=False)
    assert both - alone == pytest.approx(8 * (12 + 72) / 1e9, rel=1e-12)


def test_ports_that_hold_no_lone_frame_delay_those_behind_it():
    assert trip((1538,), (84,), held=False) == 0
    early = 0.25 * 1542
    assert trip((1538, 1538), (84,), tagged=False, held=False) == pytest.approx(8 * (1538 - early) / 1e9, rel=1e-12)
    assert trip((1538,) * 9, (84,), tagged=False, held=False) == pytest.approx(8 * (8 * 1538 - early) / 1e9, rel=1e-12)


def test_an_empty_message_is_a_frame_too():
    assert frame_sizes("tcp", 0) == (90,)
