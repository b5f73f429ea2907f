"""Events of a packet-level simulation, in order of time: one lane for each delay, and a heap of hosts that sleep."""

from __future__ import annotations

from testbed.kernels.jit import jit_inner
from testbed.kernels.packets_state import NEVER, WAKES, PacketState


@jit_inner
def push(state: PacketState, lane: int, time: int, what: int) -> None:
    """Add an event to a lane; no event of that lane is later."""
    ring = state.time.shape[1] - 1
    place = (state.start[lane] + state.length[lane]) & ring
    state.time[lane, place] = time
    state.what[lane, place] = what
    if state.length[lane] == 0:
        state.soonest[lane] = time
    state.length[lane] += 1


@jit_inner
def pop(state: PacketState, lane: int) -> int:
    """Take the first event of a lane."""
    ring = state.time.shape[1] - 1
    place = state.start[lane]
    what = state.what[lane, place]
    following = (place + 1) & ring
    state.start[lane] = following
    state.length[lane] -= 1
    state.soonest[lane] = state.time[lane, following] if state.length[lane] else NEVER
    return int(what)


@jit_inner
def sleep(state: PacketState, host: int, time: int) -> None:
    """Wake a host at a time, unless it is to be woken already."""
    if state.waking[host]:
        return
    state.waking[host] = True
    place = state.counts[WAKES]
    state.counts[WAKES] += 1
    while place:
        above = (place - 1) >> 1
        if state.wake_time[above] <= time:
            break
        state.wake_time[place] = state.wake_time[above]
        state.wake_host[place] = state.wake_host[above]
        place = above
    state.wake_time[place] = time
    state.wake_host[place] = host


@jit_inner
def wake(state: PacketState) -> int:
    """Take the host that wakes first."""
    host = state.wake_host[0]
    state.waking[host] = False
    state.counts[WAKES] -= 1
    count = state.counts[WAKES]
    time, last = state.wake_time[count], state.wake_host[count]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and state.wake_time[below + 1] < state.wake_time[below]:
            below += 1
        if state.wake_time[below] >= time:
            break
        state.wake_time[place] = state.wake_time[below]
        state.wake_host[place] = state.wake_host[below]
        place = below
    state.wake_time[place] = time
    state.wake_host[place] = last
    return int(host)
