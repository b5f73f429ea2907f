"""A sender of TCP Reno with selective acknowledgements (RFC 5681, 6298, 6675, 8985), for a simulation."""

from __future__ import annotations

from testbed.kernels.jit import jit_inner
from testbed.kernels.tcp_queues import join
from testbed.kernels.tcp_state import ARRIVED, DONE, LOST, NOWHERE, UNDER_WAY, TcpFabric, TcpState

_AT_HOME = 2  # frames of a flow in its host's own queue at most: TCP small queues
_OVERTAKEN = 3  # later transmissions that have arrived when one is taken for lost
_LEAST_WAIT = 0.2  # seconds, as in Linux
_FIRST_ROUND_TRIP = 0.8
_MOST_DOUBLED = 6


@jit_inner
def transmit(fabric: TcpFabric, state: TcpState, flow: int, now: float) -> None:
    """Send what the window allows: first what was lost."""
    ring = state.fate.shape[1] - 1
    while state.at_home[flow] < _AT_HOME and state.flying[flow] < int(state.window[flow]):
        if state.lost[flow]:
            segment = state.oldest[flow]
            while state.fate[flow, segment & ring] != LOST:
                segment += 1
            state.lost[flow] -= 1
        elif state.next[flow] - state.oldest[flow] < ring:
            segment = state.next[flow]
            state.next[flow] += 1
        else:
            return
        place = segment & ring
        state.fate[flow, place] = UNDER_WAY
        state.made[flow] += 1
        state.number[flow, place] = state.made[flow]
        state.sent[flow, place] = now
        if not state.flying[flow]:
            state.deadline[flow] = now + patience(state, flow)
        state.flying[flow] += 1
        state.at_home[flow] += 1
        join(fabric, state, fabric.way[flow, 0], flow, segment, 0, 0, now)
    if state.flying[flow] >= int(state.window[flow]):
        state.limited[flow] = state.next[flow]


@jit_inner
def patience(state: TcpState, flow: int) -> float:
    """Seconds that a flow waits for an acknowledgement."""
    round_trip = state.round_trip[flow] if state.round_trip[flow] > 0 else _FIRST_ROUND_TRIP
    wait = round_trip + max(4 * state.variation[flow], _LEAST_WAIT)
    return float(wait * 2 ** min(state.doubled[flow], _MOST_DOUBLED))


@jit_inner
def acknowledge(state: TcpState, flow: int, segment: int, wanted: int, now: float) -> None:
    """An acknowledgement says that a segment has arrived, and which is the first that has not."""
    ring = state.fate.shape[1] - 1
    fresh = 0
    if state.oldest[flow] <= segment < state.next[flow]:
        place = segment & ring
        fate = state.fate[flow, place]
        if fate in (UNDER_WAY, LOST):
            fresh += _arrived(state, flow, place)
            state.fate[flow, place] = ARRIVED
            _measure(state, flow, now - state.sent[flow, place])
    while state.oldest[flow] < wanted:
        place = state.oldest[flow] & ring
        if state.fate[flow, place] in (UNDER_WAY, LOST):
            fresh += _arrived(state, flow, place)
        state.fate[flow, place] = DONE
        state.oldest[flow] += 1
    if not fresh:
        return
    state.doubled[flow] = 0
    state.deadline[flow] = now + patience(state, flow)
    if state.recovery[flow] != NOWHERE and state.oldest[flow] >= state.recovery[flow]:
        state.recovery[flow] = NOWHERE
    _find_losses(state, flow)
    if state.recovery[flow] != NOWHERE:
        return
    slow_start = state.window[flow] < state.threshold[flow]
    # Else it is not the window that limits (RFC 7661); in slow start Linux lets it be twice what is under way.
    if state.oldest[flow] <= state.limited[flow] or (
        slow_start and state.window[flow] < 2 * (state.flying[flow] + fresh)
    ):
        state.window[flow] += fresh if slow_start else fresh / int(state.window[flow])


@jit_inner
def _arrived(state: TcpState, flow: int, place: int) -> int:
    if state.fate[flow, place] == UNDER_WAY:
        state.flying[flow] -= 1
        state.newest[flow] = max(state.newest[flow], state.number[flow, place])
    else:
        state.lost[flow] -= 1
    return 1


@jit_inner
def _measure(state: TcpState, flow: int, seconds: float) -> None:
    if state.round_trip[flow] < 0:
        state.round_trip[flow] = seconds
        state.variation[flow] = seconds / 2
        return
    state.variation[flow] += (abs(seconds - state.round_trip[flow]) - state.variation[flow]) / 4
    state.round_trip[flow] += (seconds - state.round_trip[flow]) / 8


@jit_inner
def _find_losses(state: TcpState, flow: int) -> None:
    """Take for lost what later transmissions have overtaken; halve the window once in a round trip for it."""
    ring = state.fate.shape[1] - 1
    found = False
    for segment in range(state.oldest[flow], state.next[flow]):
        place = segment & ring
        if state.fate[flow, place] == UNDER_WAY and state.number[flow, place] <= state.newest[flow] - _OVERTAKEN:
            state.fate[flow, place] = LOST
            state.flying[flow] -= 1
            state.lost[flow] += 1
            found = True
    if found and state.recovery[flow] == NOWHERE:
        state.recovery[flow] = state.next[flow]
        state.threshold[flow] = state.window[flow] = max(int(state.window[flow]) >> 1, 2)


@jit_inner
def time_out(state: TcpState, flow: int, now: float) -> None:
    """Nothing was heard for too long: all that is under way counts as lost."""
    ring = state.fate.shape[1] - 1
    for segment in range(state.oldest[flow], state.next[flow]):
        place = segment & ring
        if state.fate[flow, place] == UNDER_WAY:
            state.fate[flow, place] = LOST
            state.flying[flow] -= 1
            state.lost[flow] += 1
    state.threshold[flow] = max(int(state.window[flow]) >> 1, 2)
    state.window[flow] = 1.0
    state.recovery[flow] = NOWHERE
    state.doubled[flow] += 1
    state.deadline[flow] = now + patience(state, flow)
