"""Switches of the packet level that forward real frames by the plan's tables."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.kernels.packets import run
from testbed.kernels.packets_check import lost_frames
from testbed.kernels.packets_live import offer
from testbed.kernels.packets_state import FREE, PacketModel
from testbed.model import host_mac
from testbed.plan import Plan, make_plan
from testbed.routing.paths import path
from testbed.scenario import parse_scenario
from testbed.simulate.live import live_model

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
    return bool(offer(model.fabric, model.state, model.live, host, len(frame), int(model.state.counts[0])))


def _settle(model: PacketModel) -> list[tuple[int, bytes]]:
    """Let all frames go where they go; (host, frame) of what has arrived."""
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


PLANS = {
    "fixed": "topology: {kind: torus, sizes: [4, 4]}",
    "fixed all": "topology: {kind: mesh, sizes: [3, 3]}\nassignment: {kind: fixed, entries: all}",
    "renamed": "topology: {kind: torus, sizes: [4, 4]}\nassignment: {kind: renamed}",
    "static": "topology: {kind: mesh, sizes: [4, 2], hosts_per_switch: 2}\nassignment: {kind: static}",
    "layers": "topology: {kind: torus, sizes: [4, 4]}\nrouting: {kind: dl, layers: 3}\nassignment: {kind: openflow}",
}


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
            assert taken.tolist() == [*channels, *ends]
    assert not model.live.refused.any()
