"""TCP Reno over shaped ports, frame by frame: the events and the receivers."""

from __future__ import annotations

from testbed.kernels.jit import jit, jit_inner
from testbed.kernels.tcp_queues import join, pop, push, refill, schedule
from testbed.kernels.tcp_sender import acknowledge, patience, time_out, transmit
from testbed.kernels.tcp_state import ACKNOWLEDGES, BEGINS, COUNTS, ENDS, LEAVES, TIMES_OUT, TcpFabric, TcpState

_DELAYED = 0.04  # seconds that Linux keeps an acknowledgement for the next segment
_SEGMENTS_TO_SAY = 2


@jit
def run(fabric: TcpFabric, state: TcpState, until: float) -> None:
    """Go on with every event before a time."""
    _go_on(fabric, state, until)


@jit_inner
def _go_on(fabric: TcpFabric, state: TcpState, until: float) -> None:
    while state.events[0] and state.time[0] < until:
        now, kind, what = state.time[0], state.kind[0], state.what[0]
        pop(state)
        if kind == LEAVES:
            _leave(fabric, state, what, now)
        elif kind == ACKNOWLEDGES:
            state.to_say[what] = False
            if state.unsaid[what]:
                _say(fabric, state, what, state.wanted[what] - 1, now)
        elif kind == COUNTS:
            state.counted[what] -= state.arrived[what]
            push(state, now + fabric.seconds, ENDS, what)
        elif kind == ENDS:
            state.counted[what] += state.arrived[what]
        else:
            if kind == BEGINS:
                state.deadline[what] = now + patience(state, what)
                push(state, now + fabric.omit, COUNTS, what)
            elif state.deadline[what] <= now:
                time_out(state, what, now)
            transmit(fabric, state, what, now)
            push(state, max(state.deadline[what], now), TIMES_OUT, what)


@jit_inner
def _leave(fabric: TcpFabric, state: TcpState, channel: int, now: float) -> None:
    """The first frame of a queue goes to the next one, or arrives."""
    flows = len(fabric.hops) >> 1
    place = state.head[channel]
    walk, segment = state.walk[channel, place], state.segment[channel, place]
    note, hop = state.note[channel, place], state.hop[channel, place]
    state.head[channel] = (place + 1) % state.walk.shape[1]
    state.waiting[channel] -= 1
    refill(fabric, state, channel, now)
    state.tokens[channel] -= 1.0 if walk < flows else fabric.acknowledgement
    state.leaving[channel] = False
    if state.waiting[channel]:
        schedule(fabric, state, channel, now)
    if hop + 1 < fabric.hops[walk]:
        join(fabric, state, fabric.way[walk, hop + 1], walk, segment, note, hop + 1, now)
    elif walk < flows:
        _receive(fabric, state, walk, segment, now)
    else:
        acknowledge(state, walk - flows, segment, note, now)
        transmit(fabric, state, walk - flows, now)
    if walk < flows and not hop:
        state.at_home[walk] -= 1
        transmit(fabric, state, walk, now)


@jit_inner
def _receive(fabric: TcpFabric, state: TcpState, flow: int, segment: int, now: float) -> None:
    """Acknowledge every second segment, and at once where one is missing (RFC 5681, section 4.2)."""
    ring = state.got.shape[1] - 1
    in_order = segment == state.wanted[flow]
    if segment >= state.wanted[flow] and not state.got[flow, segment & ring]:
        state.got[flow, segment & ring] = True
        state.arrived[flow] += 1
        while state.got[flow, state.wanted[flow] & ring]:
            state.got[flow, state.wanted[flow] & ring] = False
            state.wanted[flow] += 1
    state.unsaid[flow] += 1
    if not in_order or state.unsaid[flow] >= _SEGMENTS_TO_SAY:
        _say(fabric, state, flow, segment, now)
    elif not state.to_say[flow]:
        state.to_say[flow] = True
        push(state, now + _DELAYED, ACKNOWLEDGES, flow)


@jit_inner
def _say(fabric: TcpFabric, state: TcpState, flow: int, segment: int, now: float) -> None:
    walk = flow + (len(fabric.hops) >> 1)
    state.unsaid[flow] = 0
    join(fabric, state, fabric.way[walk, 0], walk, segment, state.wanted[flow], 0, now)
