"""TCP over shaped ports, frame by frame: HTB's tokens, queues that lose frames, and the events.

With F flows, walk f < F is the way of flow f's segments, walk F + f that of its acknowledgements. Each of the K
channels has one queue at its sending end. Times are seconds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testbed.base.jit import jit, jit_inner
from testbed.base.model import Bools, Floats, Ints, Longs
from testbed.dataplane.kernels.events import Heap, pop, push
from testbed.dataplane.kernels.flits_state import Randoms
from testbed.dataplane.kernels.flits_traffic import draw
from testbed.dataplane.kernels.tcp_ends import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_LATER,
    DELAYED,
    TcpEnds,
    acknowledge,
    compute_rto,
    next_segment,
    receive,
    time_out,
)

# Events, each of a channel or a flow; what happens is `which * KINDS + kind`.
LEAVES, TIMES_OUT, ACKNOWLEDGES, BEGINS, COUNTS, ENDS = range(6)
KINDS = 8

_MANTISSA = 2.0**-53
_SPARE_BITS = np.uint64(11)


class TcpFabric(NamedTuple):
    """What does not change while a simulation runs."""

    way: Ints  # (2F, longest) channels of a walk; the first is its host's own
    hops: Ints  # (2F,) how many
    frame_time: Floats  # (K,) of a full segment's frame
    burst: Floats  # (K,) frames that a port lets go at once after a rest, beside the first
    acknowledgement: float  # length of an acknowledgement's frame, as a share of a full one
    queue: int  # frames that wait at a port before one is lost
    head_drop: bool  # whether that is the first in the queue of a switch, else the new one
    omit: float  # from a flow's beginning until it counts
    seconds: float  # for which it does


class TcpState(NamedTuple):
    """Everything that changes. R frames at most in a queue."""

    heap: Heap  # events
    random: Randoms  # (1,) state of the random numbers
    walk: Ints  # (K, R) whose frame waits; each queue is a ring
    segment: Longs  # (K, R) its segment, or the one that an acknowledgement is sent for
    note: Longs  # (K, R) an acknowledgement's next segment wanted
    hop: Ints  # (K, R) channels that it has passed
    head: Longs  # (K,) place of the first frame
    waiting: Longs  # (K,) how many
    leaving: Bools  # (K,) whether an event for the first one is in the heap
    tokens: Floats  # (K,) frames that a port may let go at once, and one more; below 0 it has to wait
    filled: Floats  # (K,) time at which that was so
    counted: Longs  # (F,) segments that have arrived in the seconds that count; below 0 those before
    ends: TcpEnds  # senders and receivers


@jit
def run(fabric: TcpFabric, state: TcpState, until: float) -> None:
    """Go on with every event before a time."""
    _go_on(fabric, state, until)


@jit_inner
def _go_on(fabric: TcpFabric, state: TcpState, until: float) -> None:
    heap, ends = state.heap, state.ends
    while heap.count[0] and heap.time[0] < until:
        now = heap.time[0]
        event = pop(heap)
        kind, what = event % KINDS, event // KINDS
        if kind == LEAVES:
            _leave(fabric, state, what, now)
        elif kind == ACKNOWLEDGES:
            ends.to_say[what] = False
            if ends.unsaid[what]:
                _send_ack(fabric, state, what, ends.wanted[what] - 1, now)
        elif kind == COUNTS:
            state.counted[what] -= ends.arrived[what]
            push(heap, now + fabric.seconds, what * KINDS + ENDS)
        elif kind == ENDS:
            state.counted[what] += ends.arrived[what]
        else:
            if kind == BEGINS:
                ends.deadline[what] = now + compute_rto(ends, what)
                push(heap, now + fabric.omit, what * KINDS + COUNTS)
            elif ends.deadline[what] <= now:
                time_out(ends, what, now)
            _transmit(fabric, state, what, now)
            push(heap, max(ends.deadline[what], now), what * KINDS + TIMES_OUT)


@jit_inner
def _leave(fabric: TcpFabric, state: TcpState, channel: int, now: float) -> None:
    """The first frame of a queue goes to the next one, or arrives."""
    flows = len(fabric.hops) >> 1
    place = state.head[channel]
    walk, segment = state.walk[channel, place], state.segment[channel, place]
    note, hop = state.note[channel, place], state.hop[channel, place]
    state.head[channel] = (place + 1) % state.walk.shape[1]
    state.waiting[channel] -= 1
    _refill(fabric, state, channel, now)
    state.tokens[channel] -= 1.0 if walk < flows else fabric.acknowledgement
    state.leaving[channel] = False
    if state.waiting[channel]:
        _schedule(fabric, state, channel, now)
    if hop + 1 < fabric.hops[walk]:
        _join(fabric, state, fabric.way[walk, hop + 1], walk, segment, note, hop + 1, now)
    elif walk < flows:
        answer = receive(state.ends, walk, segment)
        if answer == ACKNOWLEDGE:
            _send_ack(fabric, state, walk, segment, now)
        elif answer == ACKNOWLEDGE_LATER:
            push(state.heap, now + DELAYED, walk * KINDS + ACKNOWLEDGES)
    else:
        acknowledge(state.ends, walk - flows, segment, note, now)
        _transmit(fabric, state, walk - flows, now)
    if walk < flows and not hop:
        state.ends.at_home[walk] -= 1
        _transmit(fabric, state, walk, now)


@jit_inner
def _transmit(fabric: TcpFabric, state: TcpState, flow: int, now: float) -> None:
    """Send what the window allows."""
    while True:
        segment = next_segment(state.ends, flow, now)
        if segment < 0:
            return
        _join(fabric, state, fabric.way[flow, 0], flow, segment, 0, 0, now)


@jit_inner
def _send_ack(fabric: TcpFabric, state: TcpState, flow: int, segment: int, now: float) -> None:
    """Acknowledge a segment, and all before the first one that is missing."""
    walk = flow + (len(fabric.hops) >> 1)
    state.ends.unsaid[flow] = 0
    _join(fabric, state, fabric.way[walk, 0], walk, segment, state.ends.wanted[flow], 0, now)


@jit_inner
def _join(
    fabric: TcpFabric, state: TcpState, channel: int, walk: int, segment: int, note: int, hop: int, now: float
) -> None:
    """Put a frame at the end of a queue, or lose one.

    A host's TCP puts no more segments into its own queue than fit (TCP small queues); it can lose acknowledgements.
    """
    at_home = hop == 0
    flows = len(fabric.hops) >> 1
    ring = state.walk.shape[1]
    if state.waiting[channel] >= fabric.queue and not (at_home and walk < flows):
        if at_home or not fabric.head_drop:
            return
        state.head[channel] = (state.head[channel] + 1) % ring
        state.waiting[channel] -= 1
    place = (state.head[channel] + state.waiting[channel]) % ring
    state.walk[channel, place] = walk
    state.segment[channel, place] = segment
    state.note[channel, place] = note
    state.hop[channel, place] = hop
    state.waiting[channel] += 1
    if not state.leaving[channel]:
        _schedule(fabric, state, channel, now)


@jit_inner
def _schedule(fabric: TcpFabric, state: TcpState, channel: int, now: float) -> None:
    """Say when the first frame of a queue leaves: when HTB has tokens for it, and a little later.

    The little, up to a frame's time, costs no bandwidth, since tokens gather meanwhile. Without it flows could run in
    step for ever, as no real ones do (Floyd and Jacobson, On traffic phase effects in packet-switched gateways, 1992).
    """
    unit = fabric.frame_time[channel]
    tokens = _refill(fabric, state, channel, now)
    pause = -tokens * unit if tokens < 0 else 0.0
    state.leaving[channel] = True
    push(state.heap, now + pause + unit * 0.1 * _chance(state), channel * KINDS + LEAVES)


@jit_inner
def _refill(fabric: TcpFabric, state: TcpState, channel: int, now: float) -> float:
    """Tokens that a port has now."""
    tokens = state.tokens[channel] + (now - state.filled[channel]) / fabric.frame_time[channel]
    tokens = min(tokens, fabric.burst[channel])
    state.tokens[channel] = tokens
    state.filled[channel] = now
    return float(tokens)


@jit_inner
def _chance(state: TcpState) -> float:
    """A number from 0 to 1."""
    return np.float64(draw(state.random, 0) >> _SPARE_BITS) * _MANTISSA
