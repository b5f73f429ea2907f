"""How a deadlock came about: the run that found it once more, with snapshots of how full the buffers are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Floats, Longs
from testbed.dataplane.kernels import flits, flits_check, packets, packets_check
from testbed.engines.simulate.detail_levels import packet_network
from testbed.engines.simulate.flit_network import Network, fabric_of, new_state
from testbed.engines.simulate.flit_point import Point
from testbed.engines.simulate.flit_settings import Settings
from testbed.engines.simulate.packet_network import new_packet_state
from testbed.engines.simulate.packet_point import pattern_fabric
from testbed.engines.simulate.packet_settings import PacketSettings
from testbed.planning import Plan

_LOOKS = 256
MAX_SNAPSHOTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A fabric at a time."""

    time: str  # in words
    fill: Floats  # (C,) share of the memory at the end of each channel that is full; of its layers, the fullest
    cycle: tuple[int, ...]  # channels that wait for each other; empty before the deadlock


@dataclass(frozen=True, slots=True, eq=False)
class _Rerun:
    """A run that can be looked at."""

    run_to: Callable[[int], None]  # runs to a time, in cycles or ps
    cycle: Callable[[], list[int]]  # nodes that wait for each other at that time
    fill: Callable[[], Floats]  # (layers·C,) share of each memory that is full
    words: Callable[[int], str]  # a time in words


def snapshots_of(plan: Plan, settings: Settings | PacketSettings, point: Point) -> tuple[Snapshot, ...]:
    """Look at a run that deadlocked at its start, half of the time to the deadlock, a quarter before it, and so on."""
    formed = _find_deadlock_time(plan, settings, point)
    times = [formed - formed // 2**power for power in range(MAX_SNAPSHOTS - 1)] + [formed]
    again, channels = _rerun(plan, settings, point), len(plan.topology.channel_source)
    found = []
    for time in sorted(set(times)):
        again.run_to(time)
        cycle = tuple(node % channels for node in again.cycle()) if time == formed else ()
        found.append(Snapshot(again.words(time), again.fill().reshape(-1, channels).max(axis=0), cycle))
    return tuple(found)


def _find_deadlock_time(plan: Plan, settings: Settings | PacketSettings, point: Point) -> int:
    """The time by which the deadlock is there, to one in 256: a deadlock stays, so the first look that finds it."""
    again = _rerun(plan, settings, point)
    for look in range(1, _LOOKS):
        time = point.clocks * look // _LOOKS
        again.run_to(time)
        if again.cycle():
            return time
    return point.clocks


def _rerun(plan: Plan, settings: Settings | PacketSettings, point: Point) -> _Rerun:
    channels = len(plan.topology.channel_source)
    if isinstance(settings, PacketSettings):
        frames = packet_network(plan, settings)
        switches = pattern_fabric(frames, point.load)
        waiting = new_packet_state(frames, switches, point.seed)
        room: Longs = np.full(frames.nodes, switches.buffer, dtype=np.int64)
        if settings.shared:
            room = np.append(switches.memory, 1)[switches.place]
        return _Rerun(
            lambda time: packets.run(switches, waiting, time),
            lambda: packets_check.waiting_cycle(switches, waiting).tolist(),
            lambda: (waiting.held / np.maximum(room, 1))[: frames.priorities * channels],
            lambda time: f"{time / 1e9:.2f} ms",
        )
    network = Network.from_routes(plan.topology, plan.routes, settings, plan.scenario.lab.seed)
    fabric = fabric_of(network, point.load)
    state = new_state(network, fabric, point.seed)
    return _Rerun(
        lambda time: flits.run(fabric, state, time),
        lambda: flits_check.waiting_cycle(fabric, state).tolist(),
        lambda: state.nodes.stored[: fabric.virtual] / settings.buffer,
        lambda time: f"cycle {time:,}",
    )
