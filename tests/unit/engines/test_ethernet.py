"""Bytes on the wire are one function's: the prediction, switches that are simulated or shaped, and counters agree."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.base.ethernet import MAX_WIRE_FRAME, VLAN_TAG, WIRE_OVERHEAD, wire_bits, wire_bytes
from testbed.base.model import host_mac
from testbed.dataplane.kernels.packets import run
from testbed.dataplane.kernels.packets_state import FREE
from testbed.dataplane.predict import transport
from testbed.dataplane.predict.round_trip import frame_sizes, one_way
from testbed.engines.lab.hosts.shaping import Shaping
from testbed.engines.simulate.packet_settings import CONTROL_BYTES, time_of
from testbed.engines.simulate.switch_model import live_model
from testbed.fabric.routing.paths import path
from testbed.planning.rates import logical_ways
from testbed.planning.wire_time import message_wires

from .test_live import _offer, _plan

_PAYLOADS = [1, 17, 18, 19, 46, 1472]
_UDP = 42  # bytes of headers, with Ethernet's


@pytest.mark.parametrize(
    ("size", "untagged", "tagged"),
    [(14, 84, 88), (43, 84, 88), (58, 84, 88), (60, 84, 88), (61, 85, 89), (1514, 1538, 1542)],
)
def test_a_switch_that_tags_the_shortest_frame_sends_68_bytes(size, untagged, tagged):
    assert (wire_bytes(size), wire_bytes(size, VLAN_TAG)) == (untagged, tagged)


def test_the_longest_frame_is_as_it_was():
    assert MAX_WIRE_FRAME == 1542


@pytest.mark.parametrize("payload", _PAYLOADS)
def test_the_prediction_of_short_datagrams_has_a_minimum(payload):
    wanted = max(payload + _UDP, 60) + 24
    assert transport("udp", payload).forward == frame_sizes("udp", payload)[0] == wanted
    assert transport("udp", payload).cost(tagged=True) == (wanted + 4) / payload


@pytest.mark.parametrize("payload", _PAYLOADS)
def test_simulated_frames_take_what_is_predicted(payload):
    """Sizes in a simulation are of memory: with check sequence, without preamble and gap."""
    wire = transport("udp", payload).forward
    assert time_of(wire - 20, 1e9) == wire * 8000
    assert time_of(wire - 20 + VLAN_TAG, 1e9) == (wire + 4) * 8000
    assert time_of(CONTROL_BYTES, 1e9) == 84 * 8000


@pytest.mark.parametrize("assignment", ["fixed", "renamed"])
def test_modelled_switches_take_what_small_frames_are_predicted(assignment):
    """At zero load, from the first bit at one host to the last at another, with tags between switches or without."""
    plan = _plan(f"topology: {{kind: mesh, sizes: [3]}}\nassignment: {{kind: {assignment}}}\nengine: realtime")
    assert plan.vlans.tagged_trunks == (assignment == "fixed")
    model = live_model(plan)
    state, live, tag = model.state, model.live, VLAN_TAG if plan.vlans.tagged_trunks else 0
    ways = logical_ways(plan, [(0, 2)])
    for payload in _PAYLOADS:
        began, before = int(state.counts[0]), (live.sent_bytes.copy(), state.sent.copy())
        frame = (
            bytes.fromhex((host_mac(2) + host_mac(0)).replace(":", "")) + b"\x88\xb5" + bytes(28) + b"\xff" * payload
        )
        place = state.free[state.counts[FREE] - 1]
        live.data[place] = 0xAA  # what was there before is nobody's business
        live.data[place, : len(frame)] = np.frombuffer(frame, dtype=np.uint8)
        assert _offer(model.fabric, state, live, 0, len(frame), began)
        run(model.fabric, state, began + 10**9, None, live)
        number = int(live.ends[0]) - 1
        arrived = int(live.given_at[number])
        links = len(path(plan.topology, plan.routes, 0, 2)) + 2
        on_the_way = arrived - began - links * int(live.delay[0])
        sizes = [wire_bytes(len(frame)), *[wire_bytes(len(frame), tag)] * (links - 2), wire_bytes(len(frame))]
        assert on_the_way == sum(sizes) * 8000
        predicted = one_way(message_wires(plan), (0, 2), ways[0][0], frame_sizes("udp", payload))
        # The prediction leaves out the gap, which holds up nobody who reads the frame.
        assert on_the_way - links * 12 * 8000 == pytest.approx(predicted * 1e12)
        given = live.given[number]
        assert live.data[given, : live.length[given]].tobytes() == frame.ljust(60, b"\0")
        bits = wire_bits(live.sent_bytes - before[0], state.sent - before[1])
        assert sorted(bits[bits > 0].tolist()) == sorted(8 * size for size in sizes)


@pytest.mark.parametrize(("tag", "counted"), [(0, 0), (VLAN_TAG, 0), (VLAN_TAG, VLAN_TAG)])
def test_a_shaped_port_counts_short_frames_as_full(tag, counted):
    """Hosts of a lab fill nothing up, so what HTB is told must make up for it: `max(bytes + overhead, mpu)`."""
    # A tag that the kernel keeps beside the frame is not among the bytes that it counts.
    shaping = Shaping(1e7, 100, WIRE_OVERHEAD + tag - counted, tag=tag)
    line = shaping.change("s1-eth1")
    assert line.endswith(f"overhead {24 + tag - counted} mpu {84 + tag}\n")
    for size in (42, 43, 58, 60, 64, 1514):
        assert max(size + counted + shaping.overhead, shaping.shortest) == wire_bytes(size, tag)


@pytest.mark.parametrize("tag", [0, VLAN_TAG])
@pytest.mark.parametrize("size", [42, 43, 60, 61, 1514])
def test_counters_tell_what_the_wire_carried(size, tag):
    """Of frames of one size exactly, whether or not who counts has filled them up."""
    for counted in {size, max(size, 60)}:
        assert wire_bits(7 * (counted + tag), 7, tag) == 7 * 8 * wire_bytes(size, tag)
    both = wire_bits(np.array([7 * (size + tag), 0]), np.array([7, 0]), tag)
    assert both.tolist() == [7 * 8 * wire_bytes(size, tag), 0]


def test_counters_of_short_and_long_frames_tell_the_least():
    exact = 8 * (wire_bytes(43) + wire_bytes(1514))
    assert 8 * (43 + 1514 + 48) == wire_bits(43 + 1514, 2) <= exact
