"""One packet-level run at one load: what came out, or the cycle of waits in which it deadlocked."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Longs
from testbed.dataplane.kernels.packets import run
from testbed.dataplane.kernels.packets_check import lost_frames, waiting_cycle
from testbed.dataplane.kernels.packets_state import (
    DELIVERED,
    DROPPED,
    FREE,
    MADE,
    NOW,
    PAUSES,
    RESUMES,
    PacketFabric,
    PacketState,
    PacketTcp,
)
from testbed.dataplane.kernels.tie_breaking import DOCUMENTED, REVERSED
from testbed.engines.simulate.flit_point import Latency, Links, Point, TieOrder, latency_of
from testbed.engines.simulate.packet_network import PacketNetwork, new_packet_state, packet_fabric
from testbed.engines.simulate.packet_settings import PICOSECONDS
from testbed.fabric.verify.deadlock import hop_name

# Frame timesampling interval, s for a deadlock, and between two chances to be interrupted.
STRETCH = 1024


class LostFramesError(AssertionError):
    """Frames or memory have vanished or come from nowhere, or PAUSE has dropped one: a fault of the simulator."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters at a time in ps."""

    now: int
    counts: Longs
    sent: Longs
    still: Longs

    @classmethod
    def from_state(cls, state: PacketState) -> Counters:
        """Read them; a pause that lasts counts up to now."""
        now = int(state.counts[NOW])
        still = state.still + np.where(state.stopped, now - state.since, 0)
        return cls(now, state.counts.copy(), state.sent.copy(), still)


def go_on(
    network: PacketNetwork, fabric: PacketFabric, state: PacketState, until: int, stopped: Callable[[], bool],
    tcp: PacketTcp | None = None,
) -> tuple[int, ...] | None:  # fmt: skip
    """Run to a time in ps, or to a deadlock.

    Returns:
        the nodes that wait for each other, each for the one after it; empty without any; None when stopped.
    """
    while state.counts[NOW] < until:
        if stopped():
            return None
        run(fabric, state, min(int(state.counts[NOW]) + STRETCH * network.channel_time, until), tcp)
        cycle = tuple(waiting_cycle(fabric, state, tcp).tolist())
        if cycle:
            return cycle
    return ()


def pattern_fabric(network: PacketNetwork, load: float, tie_order: int = DOCUMENTED) -> PacketFabric:
    """What does not change in a run of a pattern at a load, as of simulate_packets()."""
    flows = network.pattern_flows()
    return packet_fabric(network, flows, np.full(len(flows), network.edge_time / load), tie_order=tie_order)


def simulate_orders(
    network: PacketNetwork, load: float, seed: int, stopped: Callable[[], bool] = lambda: False
) -> Point | None:
    """As simulate_packets(), and as often again with other orders of events of one time as the settings ask for.

    The first is against the documented order, the others are random ones of their own seeds.
    """
    point, ties = simulate_packets(network, load, seed, stopped), []
    for order in range(REVERSED, REVERSED + network.settings.tie_orders):
        other = simulate_packets(network, load, seed, stopped, order)
        if other is None or other.links is None:
            return None
        latency = None if other.latency is None else other.latency.mean
        ties.append(TieOrder(other.accepted, latency, other.links.drops))
    return None if point is None else dataclasses.replace(point, ties=tuple(ties))


def simulate_packets(
    network: PacketNetwork, load: float, seed: int, stopped: Callable[[], bool] = lambda: False,
    tie_order: int = DOCUMENTED,
) -> Point | None:  # fmt: skip
    """Run one load with one seed.

    `load`: share of its link's rate that each host which sends makes, above 0 up to 1. `stopped` is asked now and then
    whether to give up. `tie_order`: of events of one time, see kernels.ties.

    Returns:
        what came of it, or None when stopped. Latencies are in seconds, `clocks` in picoseconds.

    Raises:
        LostFramesError: the simulator has a fault.
    """
    started = time.monotonic()
    fabric = pattern_fabric(network, load, tie_order)
    state = new_packet_state(network, fabric, seed)
    before = Counters.from_state(state)
    cycle: tuple[int, ...] = ()
    for end in (network.settings.warm_up, network.settings.duration):
        if cycle:
            break
        found = go_on(network, fabric, state, round(end * 1e9), stopped)
        if found is None:
            return None
        cycle = found
        if end == network.settings.warm_up and not cycle:
            before = Counters.from_state(state)
            state.histogram[:] = 0
            state.latencies[:] = 0
    check_frames(network, fabric, state)
    return _point(network, fabric, state, load, seed, before, cycle, time.monotonic() - started)


def check_frames(
    network: PacketNetwork, fabric: PacketFabric, state: PacketState, tcp: PacketTcp | None = None
) -> None:
    """Every frame is somewhere, all memory is counted, and PAUSE has dropped nothing.

    Raises:
        LostFramesError: that is not so.
    """
    held, used, frames = lost_frames(fabric, state, tcp)
    counts = state.counts
    on_their_way = network.frames - int(counts[FREE])
    lost = int(counts[MADE] - counts[DELIVERED] - counts[DROPPED]) - on_their_way
    if frames or lost or held.any() or used.any():
        sentence = f"{frames + lost} frames are lost, and memory of {int(np.abs(held).sum())} of them"
        raise LostFramesError(sentence)
    if fabric.lossless and counts[DROPPED]:
        raise LostFramesError(f"{counts[DROPPED]} frames were dropped although receivers pause senders in time")


def _point(
    network: PacketNetwork, fabric: PacketFabric, state: PacketState, load: float, seed: int, before: Counters,
    cycle: tuple[int, ...], seconds: float,
) -> Point:  # fmt: skip
    after, channels = Counters.from_state(state), fabric.channels
    duration = after.now - before.now
    counts = after.counts - before.counts
    on_channels = (after.sent - before.sent)[:channels]
    still = (after.still - before.still) / max(duration, 1)
    fullest = int(on_channels.argmax()) if channels else -1
    packets = int(counts[DELIVERED])
    sending = np.flatnonzero(np.diff(fabric.flows))
    return Point(
        load=load,
        seed=seed,
        clocks=after.now if cycle else duration,
        accepted=None if cycle else packets * network.edge_time / duration / len(sending),
        packets=packets,
        latency=_in_seconds(latency_of(state.histogram, float(state.latencies[0]))) if packets and not cycle else None,
        fullest=network.topology.channel_name(fullest) if channels else "",
        fullest_use=float(on_channels[fullest]) * network.channel_time / duration if channels and not cycle else None,
        cycle=tuple(hop_name(network.topology, hop, network.priorities) for hop in cycle),
        seconds=round(seconds, 3),
        channel_flits=tuple(on_channels.tolist()),
        links=Links(
            made=int(counts[MADE]),
            drops=int(counts[DROPPED]),
            pauses=int(counts[PAUSES]),
            resumes=int(counts[RESUMES]),
            channels_paused=float(still[: fabric.virtual].mean()) if channels else 0.0,
            hosts_paused=float(still[fabric.virtual + sending].mean()),
            most_frames=int(state.most.max()),
            frame_time=network.channel_time,
        ),
    )


def _in_seconds(latency: Latency) -> Latency:
    figures = (latency.mean, latency.p50, latency.p99, latency.most)
    return Latency(*(figure / PICOSECONDS for figure in figures))
