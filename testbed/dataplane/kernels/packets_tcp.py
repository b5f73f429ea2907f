"""Hosts that speak TCP: their own queues, what becomes of frames at their goals, and timers.

A host hears of an acknowledgement within a segment's time of its arrival, at random and in order. That costs no
bandwidth; without it flows could run in step for ever, as no real ones do (Floyd and Jacobson, On traffic phase effects
in packet-switched gateways, 1992).
"""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_inner
from testbed.dataplane.kernels.events import pop, push
from testbed.dataplane.kernels.flits import histogram_place
from testbed.dataplane.kernels.flits_traffic import draw, lay_path
from testbed.dataplane.kernels.packets_links import append, release
from testbed.dataplane.kernels.packets_state import DELIVERED, FREE, MADE, PacketFabric, PacketState, PacketTcp
from testbed.dataplane.kernels.tcp_ends import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_LATER,
    DELAYED,
    acknowledge,
    compute_rto,
    next_segment,
    receive,
    time_out,
)

# Events of the heap, each of a flow or a frame; what happens is `which * KINDS + kind`.
BEGINS, TIMES_OUT, SAYS, HEARS = range(4)
KINDS = 4
SECOND = 1_000_000_000_000  # in ps

_11 = np.uint64(11)


@jit_inner
def expire(fabric: PacketFabric, state: PacketState, tcp: PacketTcp, now: int) -> int:
    """The next event of the heap.

    Returns:
        a host that may have something to send.
    """
    ends, event = tcp.ends, pop(state.heap)
    kind, which, seconds = event % KINDS, event // KINDS, now / SECOND
    if kind == SAYS:
        ends.to_say[which] = False
        if ends.unsaid[which]:
            _send_ack(fabric, state, tcp, which, int(ends.wanted[which]) - 1, now)
        return int(tcp.goal[which])
    flow = which
    if kind == HEARS:
        flow = state.flow[which]
        acknowledge(ends, flow, tcp.segment[which], tcp.wanted[which], seconds)
        state.counts[DELIVERED] += 1
        tcp.unheard[0] -= 1
        release(state, which)
    elif kind == BEGINS:
        ends.deadline[flow] = seconds + compute_rto(ends, flow)
    elif ends.deadline[flow] <= seconds:
        time_out(ends, flow, seconds)
    _transmit(fabric, state, tcp, flow, now)
    if kind != HEARS:
        # A picosecond late, so that rounding does not make it early.
        push(state.heap, max(int(ends.deadline[flow] * SECOND), now) + 1, flow * KINDS + TIMES_OUT)
    return int(tcp.source[flow])


@jit_inner
def has_left(fabric: PacketFabric, state: PacketState, tcp: PacketTcp, link: int, frame: int, now: int) -> None:
    """The last bit of a frame has gone: if it was a segment in its host's queue, there is room for another."""
    if tcp.wanted[frame] >= 0:
        tcp.acks[link] += 1
    elif fabric.channels <= link < fabric.channels + fabric.hosts:
        flow = state.flow[frame]
        tcp.ends.at_home[flow] -= 1
        _transmit(fabric, state, tcp, flow, now)


@jit_inner
def arrive_at_host(fabric: PacketFabric, state: PacketState, tcp: PacketTcp, host: int, frame: int, now: int) -> None:
    """A host takes a frame in."""
    flow = state.flow[frame]
    if tcp.wanted[frame] >= 0:
        chance = np.float64(draw(state.random, flow) >> _11) * 2.0**-53
        tcp.heard[host] = max(now + int(chance * tcp.spread), tcp.heard[host])
        tcp.unheard[0] += 1
        push(state.heap, tcp.heard[host], frame * KINDS + HEARS)
        return
    latency, segment = now - state.birth[frame], int(tcp.segment[frame])
    state.histogram[histogram_place(latency)] += 1
    state.latencies[0] += latency
    state.delivered[flow] += 1
    state.counts[DELIVERED] += 1
    release(state, frame)
    answer = receive(tcp.ends, flow, segment)
    if answer == ACKNOWLEDGE:
        _send_ack(fabric, state, tcp, flow, segment, now)
    elif answer == ACKNOWLEDGE_LATER:
        push(state.heap, now + int(DELAYED * SECOND), flow * KINDS + SAYS)


@jit_inner
def _transmit(fabric: PacketFabric, state: PacketState, tcp: PacketTcp, flow: int, now: int) -> None:
    """Send what the window allows."""
    while True:
        segment = next_segment(tcp.ends, flow, now / SECOND)
        if segment < 0:
            return
        state.made[flow] += 1
        _enqueue(fabric, state, tcp, flow, tcp.source[flow], tcp.goal[flow], segment, now)


@jit_inner
def _send_ack(fabric: PacketFabric, state: PacketState, tcp: PacketTcp, flow: int, segment: int, now: int) -> None:
    """Acknowledge a segment, and all before the first one that is missing; lost where the host's own queue is full."""
    tcp.ends.unsaid[flow] = 0
    host = tcp.goal[flow]
    if tcp.waiting[fabric.virtual + host] < tcp.limit:
        frame = _enqueue(fabric, state, tcp, flow, host, tcp.source[flow], segment, now)
        tcp.wanted[frame] = tcp.ends.wanted[flow]


@jit_inner
def _enqueue(
    fabric: PacketFabric, state: PacketState, tcp: PacketTcp, flow: int, host: int, goal: int, segment: int, now: int
) -> int:
    """Put a new frame of a segment into its host's queue; who calls lets the host send."""
    state.counts[FREE] -= 1
    frame = state.free[state.counts[FREE]]
    lay_path(fabric.paths, state, frame, host, goal)
    state.birth[frame] = now
    state.flow[frame] = flow
    state.holds[frame] = -1
    tcp.segment[frame] = segment
    tcp.wanted[frame] = -1
    state.counts[MADE] += 1
    append(state, tcp, None, None, fabric.virtual + host, frame, now)
    return int(frame)
