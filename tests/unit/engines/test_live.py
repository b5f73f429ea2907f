"""Switches of the packet level that forward real frames by the plan's tables."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.base.model import host_mac
from testbed.dataplane.kernels import packets_live
from testbed.dataplane.kernels.packets import run
from testbed.dataplane.kernels.packets_check import lost_frames
from testbed.dataplane.kernels.packets_state import DELIVERED, FREE, MADE, REFUSED, PacketModel
from testbed.engines.simulate import switch_model
from testbed.engines.simulate.switch_model import live_model, live_settings
from testbed.fabric.routing.paths import path
from testbed.planning import Plan, make_plan
from testbed.planning.wire_time import zero_load_latency
from testbed.scenario import parse_scenario

# The first to run compiles kernels, which takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(1200)


@numba.njit
def _offer(fabric, state, live, host, length, now):
    return packets_live.enqueue_frame(fabric, state, live, host, length, now, -1)


_BROADCAST = "ff:ff:ff:ff:ff:ff"
_LATER = 10**12


def _plan(text: str) -> Plan:
    return make_plan(parse_scenario(text, "test"))


def _frame(source: str, destination: str, size: int = 60, tag: bytes = b"") -> bytes:
    head = bytes.fromhex(destination.replace(":", "") + source.replace(":", ""))
    return (head + tag + b"\x88\xb5").ljust(size, b"\0")


def _send(model: PacketModel, host: int, frame: bytes) -> bool:
    place = model.state.free[model.state.counts[FREE] - 1]
    model.live.data[place, : len(frame)] = np.frombuffer(frame, dtype=np.uint8)
    return bool(_offer(model.fabric, model.state, model.live, host, len(frame), int(model.state.counts[0])))


def _settle(model: PacketModel) -> list[tuple[int, bytes]]:
    """Let all frames go where they go, and lose none; (host, frame) of what has arrived."""
    state, live = model.state, model.live
    run(model.fabric, state, int(state.counts[0]) + _LATER, None, live)
    arrived = []
    for number in range(live.ends[1], live.ends[0]):
        frame = live.given[number % len(live.given)]
        host = int(state.by[frame]) - model.fabric.virtual - model.fabric.hosts
        arrived.append((host, live.data[frame, : live.length[frame]].tobytes()))
        state.free[state.counts[FREE]] = frame
        state.counts[FREE] += 1
    live.ends[1] = live.ends[0]
    held, used, missing = lost_frames(model.fabric, state, None, live)
    assert not held.any()
    assert not used.any()
    assert missing == 0
    return arrived


_LAYERS = "routing: {kind: dl, layers: 3}\nassignment: {kind: openflow}\n"


@pytest.mark.parametrize(("more", "problems"), [
    ("simulator: {watchdog: 10}", [
        "simulator.watchdog: watches for pauses that do not end, and without flow control there are none; take it out",
    ]),
    ("simulator: {buffer: 1000, watchdog: 10}", [
        "simulator.buffer: holds 1,000 bytes and a frame has 1,522; a switch that stores and forwards needs room for a "
        "whole one, so give it 1,522 or more",
        "simulator.watchdog: watches for pauses that do not end, and without flow control there are none; take it out",
    ]),
    ("simulator: {flow_control: pause, buffer: 3000, xon: 2000}", [
        "simulator.buffer: has room for 1 frames; 4 can arrive after a pause was asked for, so frames would be "
        "dropped. Give it 7,610 bytes or more",
    ]),
    (f"{_LAYERS}simulator: {{flow_control: pause}}", [
        "simulator.flow_control: PAUSE stops a whole link with all priorities on it, and the plan is proved for 3 "
        "layers that wait on their own; use pfc",
    ]),
])  # fmt: skip
def test_all_that_switches_cannot_be_is_said_at_once(more: str, problems: list[str]) -> None:
    plan = _plan(f"topology: {{kind: torus, sizes: [3, 3], parallel_links: 2}}\nengine: realtime\n{more}")
    with pytest.raises(InputError) as refused:
        live_settings(plan)
    assert str(refused.value).split("\n") == [f"test: {problem}" for problem in problems]


def test_tables_may_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan(TORUS)
    cells = plan.vlans.vlan_count * 16 * 16
    monkeypatch.setattr(switch_model, "_MAX_CELLS", cells)
    live_model(plan)
    monkeypatch.setattr(switch_model, "_MAX_CELLS", cells - 1)
    with pytest.raises(InputError, match=rf"^test: topology: needs a table of {cells:,} next hops and may have "):
        live_model(plan)


def test_memory_is_at_the_end_of_a_link_where_receivers_pause() -> None:
    both = "topology: {kind: mesh, sizes: [2]}\nengine: realtime\nsimulator: {flow_control: "
    lossy, lossless = (live_model(_plan(f"{both}{how}}}")).fabric for how in ("none", "pause"))
    # s1→s2, s2→s1; from h1, h2; to h1, h2.
    assert lossy.place.tolist() == [0, 1, -1, -1, 0, 1]
    assert lossless.place.tolist() == [1, 0, 0, 1, -1, -1]
    assert (lossy.buffer, lossless.buffer) == (100, 65536 // 1522 * 1522)  # frames, bytes
    assert lossy.memory.tolist() == [200, 200]
    assert lossless.memory.tolist() == 2 * [2 * lossless.buffer]
    longer = live_model(_plan(f"{both}pause}}\nlinks: {{mtu: 9000}}")).fabric
    assert longer.buffer == 65536 // 9022 * 9022
    # What 4 full frames, which can arrive after a pause was asked for, and one more take is never shared.
    assert lossless.pool.tolist() == [size - 2 * 5 * 1522 for size in lossless.memory.tolist()]


PLANS = {
    "fixed": "topology: {kind: torus, sizes: [4, 4]}",
    "fixed all": "topology: {kind: mesh, sizes: [3, 3]}\nassignment: {kind: fixed, entries: all}",
    "renamed": "topology: {kind: torus, sizes: [4, 4]}\nassignment: {kind: renamed}",
    "static": "topology: {kind: mesh, sizes: [4, 2], hosts_per_switch: 2}\nassignment: {kind: static}",
    "layers": "topology: {kind: torus, sizes: [4, 4]}\nrouting: {kind: dl, layers: 3}\nassignment: {kind: openflow}",
    "bundles": "topology: {kind: torus, sizes: [3, 3], parallel_links: 3}\nlinks: {aggregate: true}",
    "bundles, layers": (
        "topology: {kind: hyperx, sizes: [3, 3], parallel_links: 2}\nrouting: {kind: dl}\nlinks: {aggregate: true}"
    ),
    "bundles, renamed": (
        "topology: {kind: ring, switches: 5, parallel_links: 3}\nrouting: {kind: updown}\nlinks: {aggregate: true}"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANS)
def test_every_pair_takes_its_path(name: str) -> None:
    plan = _plan(PLANS[name])
    model = live_model(plan)
    topology, hosts = plan.topology, plan.topology.host_count
    for source in range(hosts):
        for destination in range(hosts):
            if source == destination:
                continue
            before = model.state.sent.copy()
            frame = _frame(host_mac(source), host_mac(destination))
            assert _send(model, source, frame)
            assert _settle(model) == [(destination, frame)]
            taken = np.flatnonzero(model.state.sent - before)
            channels = sorted(path(topology, plan.routes, source, destination))
            ends = [model.fabric.channels + source, model.fabric.channels + hosts + destination]
            assert taken.tolist()[-2:] == ends
            logical = taken[:-2] if plan.bundles is None else plan.bundles.of_channel[taken[:-2]]
            assert logical.tolist() == channels
    assert not model.live.refused.any()


TORUS = "topology: {kind: torus, sizes: [4, 4]}"


def test_a_broadcast_reaches_every_other_host_once() -> None:
    for text in PLANS.values():
        plan = _plan(text)
        model = live_model(plan)
        for source in (0, plan.topology.host_count - 1):
            frame = _frame(host_mac(source), _BROADCAST)
            assert _send(model, source, frame)
            arrived = sorted(_settle(model))
            assert arrived == [(host, frame) for host in range(plan.topology.host_count) if host != source]


REFUSALS = {
    "shorter than a header": b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08",
    "tagged frame at a host's port": _frame(host_mac(0), host_mac(1), tag=b"\x81\0\0\x65"),
    "reserved group address": _frame(host_mac(0), "01:80:c2:00:00:0e"),
    "PAUSE from a host": _frame(host_mac(0), "01:80:c2:00:00:01")[:12] + b"\x88\x08" + b"\0\x01\xff\xff" + bytes(42),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_hosts_port_refuses(why: str) -> None:
    model = live_model(_plan(TORUS))
    assert not _send(model, 0, REFUSALS[why])
    assert _settle(model) == []
    assert model.live.refused[REFUSED.index(why)] == model.live.refused.sum() == 1
    assert not model.state.sent.any()


def test_a_priority_tag_is_taken_for_none() -> None:
    model = live_model(_plan(TORUS))
    assert _send(model, 0, _frame(host_mac(0), host_mac(1), 64, b"\x81\0\xa0\0"))
    assert _settle(model) == [(1, _frame(host_mac(0), host_mac(1)))]


@pytest.mark.parametrize("kind", [b"\x08\x00", b"\x81\x37", b"\x81\x01", b"\x88\xa8"])
def test_what_only_looks_like_a_tag_is_none(kind: bytes) -> None:
    """IPv4, IPX, and others; all have what would be VLAN 101 where a tag has it."""
    model = live_model(_plan(TORUS))
    frame = _frame(host_mac(0), host_mac(1))[:12] + kind + b"\x00\x65" + bytes(44)
    assert _send(model, 0, frame)
    assert _settle(model) == [(1, frame)]


def test_only_links_that_are_watched_are_shown() -> None:
    plan = _plan("topology: {kind: mesh, sizes: [3]}\nengine: realtime")
    model = live_model(plan)
    live, hosts = model.live, [host_mac(host) for host in range(3)]
    way = path(plan.topology, plan.routes, 0, 2)
    live.watched[way[1]] = 1
    _send(model, 0, _frame(hosts[0], hosts[2], 100))
    _send(model, 2, _frame(hosts[2], hosts[0], 200))
    _settle(model)
    assert (live.seen[0], live.seen_link[0], live.seen_length[0]) == (1, way[1], 100)
    assert live.seen_tag[0] == plan.vlans.vlan_ids[plan.vlans.pvid[0]]
    assert live.seen_data[0, :100].tobytes() == _frame(hosts[0], hosts[2], 100)
    assert not live.seen_at[1:].any()


def test_copies_that_find_no_room_are_counted() -> None:
    """Of a broadcast's three copies at the first switch one is the frame itself."""
    model = live_model(_plan("topology: {kind: mesh, sizes: [2], hosts_per_switch: 3}"))
    model.state.counts[FREE] = 1
    assert _send(model, 0, _frame(host_mac(0), _BROADCAST))
    run(model.fabric, model.state, _LATER, None, model.live)
    assert model.live.refused[REFUSED.index("no room in the engine")] == model.live.refused.sum() == 2


@pytest.mark.slow
def test_garbage_loses_no_frame_of_the_model() -> None:
    model = live_model(
        _plan("topology: {kind: mesh, sizes: [2, 2]}\nsimulator: {flow_control: pause}\nengine: realtime")
    )
    random = np.random.default_rng(1)
    free, taken, arrived = int(model.state.counts[FREE]), 0, []
    for number in range(20_000):
        frame = bytearray(random.bytes(int(random.integers(1, 1514))))
        if number % 3 == 0:
            frame[:6] = bytes.fromhex(host_mac(number % 4).replace(":", ""))
        taken += _send(model, number % 4, bytes(frame))
        if number % 50 == 0:
            arrived += _settle(model)
    arrived += _settle(model)
    # None is under way, what a port did not take is counted, and what has arrived is what hosts were sent.
    assert int(model.state.counts[FREE]) == free
    assert taken == model.state.counts[MADE]
    refused = dict(zip(REFUSED, model.live.refused.tolist(), strict=True))
    assert sum(refused.values()) - refused["no entry for the address"] == 20_000 - taken
    assert len(arrived) == model.state.counts[DELIVERED] == model.state.sent[-4:].sum() > 5000
    assert not model.live.drops.any()


def test_switches_learn_and_forget() -> None:
    text = "topology: {kind: mesh, sizes: [3]}\nassignment: {kind: fixed, registration: learning, ageing: 10}"
    model = live_model(_plan(text))
    there, back = _frame(host_mac(0), host_mac(2)), _frame(host_mac(2), host_mac(0))
    _send(model, 0, there)
    assert sorted(host for host, _ in _settle(model)) == [1, 2]  # nobody knows h3
    _send(model, 2, back)
    first = [host for host, _ in _settle(model)]
    assert 0 in first
    _send(model, 0, there)
    _settle(model)
    before = int(model.live.flooded[0])
    run(model.fabric, model.state, int(model.state.counts[0]) + 9 * 10**12, None, model.live)
    assert int(model.live.flooded[0]) == before
    run(model.fabric, model.state, int(model.state.counts[0]) + 12 * 10**12, None, model.live)
    _send(model, 0, there)
    _settle(model)
    assert int(model.live.flooded[0]) > before  # h3 is forgotten


def test_frames_take_their_time_on_the_wire() -> None:
    text = "topology: {kind: mesh, sizes: [2]}\nengine: realtime\nlinks: {mtu: 9000}\nsimulator: {delay: 3}"
    model = live_model(_plan(text))
    for size in (60, 700, 1514, 9014):
        began, before = int(model.state.counts[0]), float(model.state.latencies[0])
        _send(model, 0, _frame(host_mac(0), host_mac(1), size))
        run(model.fabric, model.state, began + _LATER, None, model.live)
        took = int(model.live.given_at[(model.live.ends[0] - 1) % len(model.live.given)]) - began
        assert model.state.latencies[0] - before == took
        # h1 to s1 and s2 to h2 untagged, s1 to s2 tagged; 1 Gbit/s is 8 ns a byte.
        assert took == 8000 * (2 * (size + 24) + size + 4 + 24) + 3 * 3_000_000
        _settle(model)


@pytest.mark.parametrize(("rates", "cut"), [("host_rate: 1 Gbit/s", True), ("host_rate: 100 Mbit/s", False)])
def test_switches_that_cut_through_send_on_at_the_head(rates: str, cut: bool) -> None:
    # From s1 to s2 to s3; a host's slow link is stored first, since s1 could run out of it on a fast one.
    text = f"topology: {{kind: mesh, sizes: [3]}}\nengine: realtime\nlinks: {{{rates}}}\n"
    took = {}
    for through in (False, True):
        plan = _plan(f"{text}simulator: {{delay: 2, cut_through: {str(through).lower()}}}")
        model = live_model(plan)
        for size in (60, 1514):
            began = int(model.state.counts[0])
            _send(model, 0, _frame(host_mac(0), host_mac(2), size))
            run(model.fabric, model.state, began + _LATER, None, model.live)
            took[through, size] = int(model.live.given_at[(model.live.ends[0] - 1) % len(model.live.given)]) - began
            assert _settle(model) == [(2, _frame(host_mac(0), host_mac(2), size))]
            assert not model.live.early.any()
            # A prediction counts neither the gap after a frame that is stored nor the switches' own time.
            byte = 80_000 if "100" in rates else 8000
            gaps = 12 * byte + (0 if through and cut else 12 * byte) + (0 if through else 2 * 12 * 8000)
            predicted = zero_load_latency(plan, 0, 2, size - 42) * 1e12
            assert took[through, size] == round(predicted) + gaps + 4 * 2_000_000
    for size in (60, 1514):
        # Two links between switches, and the first of all where it is as fast, take a head of 72 bytes.
        saved = 2 * (size + 4 + 24 - 72) + (size + 24 - 72 if cut else 0)
        assert took[False, size] - took[True, size] == 8000 * saved


def test_frames_that_cut_through_share_links_as_others_do() -> None:
    text = "topology: {kind: mesh, sizes: [3]}\nengine: realtime\nsimulator: {flow_control: pause, cut_through: true}"
    model = live_model(_plan(text))
    random = np.random.default_rng(1)
    for number in range(3000):
        host = number % 2
        assert _send(model, host, _frame(host_mac(host), host_mac(2), int(random.integers(60, 1514))))
    # Both hosts' frames go by s2→s3 at its full rate, with a pause of the faster ones, and none is lost.
    assert len(_settle(model)) == 3000
    assert model.live.pauses.sum() > 0
    assert not model.live.drops.any()
