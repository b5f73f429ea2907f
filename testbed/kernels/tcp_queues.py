"""Queues of shaped ports and the order of events, for a simulation of TCP."""

from __future__ import annotations

import numpy as np

from testbed.kernels.flits_traffic import draw
from testbed.kernels.jit import jit_inner
from testbed.kernels.tcp_state import LEAVES, TcpFabric, TcpState

_MANTISSA = 2.0**-53
_SPARE_BITS = np.uint64(11)


@jit_inner
def chance(state: TcpState) -> float:
    """A number from 0 to 1."""
    return np.float64(draw(state.random, 0) >> _SPARE_BITS) * _MANTISSA


@jit_inner
def push(state: TcpState, time: float, kind: int, what: int) -> None:
    """Add an event."""
    place = state.events[0]
    state.events[0] += 1
    while place:
        above = (place - 1) >> 1
        if state.time[above] <= time:
            break
        state.time[place], state.kind[place], state.what[place] = (
            state.time[above],
            state.kind[above],
            state.what[above],
        )
        place = above
    state.time[place], state.kind[place], state.what[place] = time, kind, what


@jit_inner
def pop(state: TcpState) -> None:
    """Take the first event away."""
    state.events[0] -= 1
    count = state.events[0]
    time, kind, what = state.time[count], state.kind[count], state.what[count]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and state.time[below + 1] < state.time[below]:
            below += 1
        if state.time[below] >= time:
            break
        state.time[place], state.kind[place], state.what[place] = (
            state.time[below],
            state.kind[below],
            state.what[below],
        )
        place = below
    state.time[place], state.kind[place], state.what[place] = time, kind, what


@jit_inner
def join(
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
        schedule(fabric, state, channel, now)


@jit_inner
def schedule(fabric: TcpFabric, state: TcpState, channel: int, now: float) -> None:
    """Say when the first frame of a queue leaves: when HTB has tokens for it, and a little later.

    The little, up to a frame's time, costs no bandwidth, since tokens gather meanwhile. Without it flows could run in
    step for ever, as no real ones do (Floyd and Jacobson, On traffic phase effects in packet-switched gateways, 1992).
    """
    unit = fabric.frame_time[channel]
    tokens = refill(fabric, state, channel, now)
    pause = -tokens * unit if tokens < 0 else 0.0
    state.leaving[channel] = True
    push(state, now + pause + unit * 0.1 * chance(state), LEAVES, channel)


@jit_inner
def refill(fabric: TcpFabric, state: TcpState, channel: int, now: float) -> float:
    """Tokens that a port has now."""
    tokens = state.tokens[channel] + (now - state.filled[channel]) / fabric.frame_time[channel]
    tokens = min(tokens, fabric.burst[channel])
    state.tokens[channel] = tokens
    state.filled[channel] = now
    return float(tokens)
