"""How a deadlock came about: the run that found it once more, with a look at the memory at some moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from testbed.kernels import flits, flits_check, packets, packets_check
from testbed.model import Floats, Longs
from testbed.plan import Plan
from testbed.simulate.levels import packet_network
from testbed.simulate.network import Network, fabric_of, new_state
from testbed.simulate.packet_network import new_packet_state
from testbed.simulate.packet_point import pattern_fabric
from testbed.simulate.packet_settings import PacketSettings
from testbed.simulate.point import Point
from testbed.simulate.settings import Settings

_LOOKS = 256
MOMENTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A fabric at a time.

    Attributes:
        time: in words.
        fill: (C,) share of the memory at the end of each channel that is full; of its layers, the fullest.
        cycle: channels that wait for each other; empty before the deadlock.
    """

    time: str
    fill: Floats
    cycle: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Tape:
    """A run that can be looked at.

    Attributes:
        go_on: runs to a time, in clocks or ps.
        cycle: nodes that wait for each other at that time.
        fill: (layers·C,) share of each memory that is full.
        words: a time in words.
    """

    go_on: Callable[[int], None]
    cycle: Callable[[], list[int]]
    fill: Callable[[], Floats]
    words: Callable[[int], str]


def moments_of(plan: Plan, settings: Settings | PacketSettings, point: Point) -> tuple[Moment, ...]:
    """Look at a run that stood still at its start, half of the time to the deadlock, a quarter before it, and so on.

    Args:
        plan: what was simulated.
        settings: as they were then.
        point: the run.
    """
    formed = _formed(plan, settings, point)
    times = [formed - formed // 2**power for power in range(MOMENTS - 1)] + [formed]
    tape, channels = _tape(plan, settings, point), len(plan.topology.channel_source)
    found = []
    for time in sorted(set(times)):
        tape.go_on(time)
        cycle = tuple(node % channels for node in tape.cycle()) if time == formed else ()
        found.append(Moment(tape.words(time), tape.fill().reshape(-1, channels).max(axis=0), cycle))
    return tuple(found)


def _formed(plan: Plan, settings: Settings | PacketSettings, point: Point) -> int:
    """The time by which the deadlock is there, to one in 256: a deadlock stays, so the first look that finds it."""
    tape = _tape(plan, settings, point)
    for look in range(1, _LOOKS):
        time = point.clocks * look // _LOOKS
        tape.go_on(time)
        if tape.cycle():
            return time
    return point.clocks


def _tape(plan: Plan, settings: Settings | PacketSettings, point: Point) -> _Tape:
    channels = len(plan.topology.channel_source)
    if isinstance(settings, PacketSettings):
        frames = packet_network(plan, settings)
        switches = pattern_fabric(frames, point.load)
        waiting = new_packet_state(frames, switches, point.seed)
        room: Longs = np.full(frames.nodes, switches.buffer, dtype=np.int64)
        if settings.shared:
            room = np.append(switches.memory, 1)[switches.place]
        return _Tape(
            lambda time: packets.run(switches, waiting, time),
            lambda: packets_check.waiting_cycle(switches, waiting).tolist(),
            lambda: (waiting.held / np.maximum(room, 1))[: frames.priorities * channels],
            lambda time: f"{time / 1e9:.2f} ms",
        )
    network = Network.of(plan.topology, plan.routes, settings, plan.scenario.lab.seed)
    fabric = fabric_of(network, point.load)
    state = new_state(network, fabric, point.seed)
    return _Tape(
        lambda time: flits.run(fabric, state, time),
        lambda: flits_check.waiting_cycle(fabric, state).tolist(),
        lambda: state.nodes.stored[: fabric.virtual] / settings.buffer,
        lambda time: f"clock {time:,}",
    )
