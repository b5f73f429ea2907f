"""Store and forward, frame by frame, with PAUSE frames (IEEE 802.3x, Qbb) or drops: the events.

A frame stands in the queue of the link it goes out by until its last bit is sent. Priorities of a link take turns.
"""

from __future__ import annotations

from testbed.kernels.flits import histogram_place
from testbed.kernels.jit import jit, jit_inner
from testbed.kernels.packets_events import pop, push, wake
from testbed.kernels.packets_hosts import make_frame
from testbed.kernels.packets_state import (
    CONTROL_ARRIVES,
    CONTROL_ON_CHANNEL,
    CONTROL_ON_EDGE,
    DELIVERED,
    DROPPED,
    FRAME_ARRIVES,
    FRAME_ON_CHANNEL,
    FRAME_ON_EDGE,
    FREE,
    LANES,
    NEVER,
    NOW,
    PAUSES,
    RESUMES,
    WAKES,
    PacketFabric,
    PacketState,
)

_BITS = 8  # of a number that stands for the priorities of a link
_SMOOTHING = 16  # RFC 3550, section 6.4.1


@jit
def run(fabric: PacketFabric, state: PacketState, until: int) -> None:
    """Go on with every event before a time."""
    _go_on(fabric, state, until)


@jit_inner
def _go_on(fabric: PacketFabric, state: PacketState, until: int) -> None:
    while True:
        lane, now = -1, NEVER
        for other in range(LANES):
            if state.soonest[other] < now:
                lane, now = other, state.soonest[other]
        if state.counts[WAKES] and state.wake_time[0] < now:
            lane, now = LANES, state.wake_time[0]
        if now >= until:
            state.counts[NOW] = until
            return
        state.counts[NOW] = now
        if lane in (FRAME_ON_CHANNEL, FRAME_ON_EDGE):
            link = pop(state, lane)
            _leave(fabric, state, state.sending[link], link, now)
            start(fabric, state, link, now)
        elif lane == FRAME_ARRIVES:
            _arrive(fabric, state, pop(state, lane), now)
        elif lane == CONTROL_ARRIVES:
            _obey(fabric, state, pop(state, lane), now)
        elif lane == LANES:
            host = wake(state)
            if not state.busy[fabric.channels + host]:
                start(fabric, state, fabric.channels + host, now)
        else:
            what = pop(state, lane)
            push(state, CONTROL_ARRIVES, now + fabric.delay, what)
            start(fabric, state, what >> _BITS, now)


@jit_inner
def start(fabric: PacketFabric, state: PacketState, link: int, now: int) -> None:
    """Let a link that has just become free, or has something to send, send it: PAUSE frames first."""
    channels, hosts = fabric.channels, fabric.hosts
    on_edge = link >= channels
    state.busy[link] = True
    if state.pending[link] and _control(fabric, state, link, now):
        return
    frame = -1
    if not on_edge:
        priority = state.turn[link]
        for _ in range(fabric.priorities):
            node = priority * channels + link
            priority = priority + 1 if priority + 1 < fabric.priorities else 0
            if state.first[node] >= 0 and not state.stopped[node]:
                state.turn[link] = priority
                frame = _take(state, node)
                break
    elif link >= channels + hosts:
        node = fabric.virtual + link - channels
        if state.first[node] >= 0:
            frame = _take(state, node)
    elif not state.stopped[fabric.virtual + link - channels]:
        frame = make_frame(fabric, state, link - channels, now)
    if frame < 0:
        state.busy[link] = False
        return
    state.sending[link] = frame
    push(state, FRAME_ON_EDGE if on_edge else FRAME_ON_CHANNEL, now + fabric.frame_time[link], link)


@jit_inner
def _take(state: PacketState, node: int) -> int:
    """Take the frame at the head of a queue."""
    frame = state.first[node]
    state.first[node] = state.behind[frame]
    state.by[frame] = node
    return int(frame)


@jit_inner
def _leave(fabric: PacketFabric, state: PacketState, frame: int, link: int, now: int) -> None:
    """The last bit of a frame has gone: the memory that it took is free."""
    state.sent[link] += 1
    push(state, FRAME_ARRIVES, now + fabric.delay, frame)
    node = state.holds[frame]
    if node < 0:
        return
    state.holds[frame] = -1
    state.held[node] -= 1
    switch = fabric.place[node]
    state.used[switch] -= 1
    if not fabric.lossless:
        return
    if not fabric.shared:
        if state.off[node] and state.held[node] <= fabric.xon:
            _want(fabric, state, node, False, now)
        return
    resume = limit(fabric, state, switch) >> 1
    for index in range(fabric.near[switch], fabric.near[switch + 1]):
        other = fabric.node[index]
        if state.off[other] and state.held[other] <= resume:
            _want(fabric, state, other, False, now)


@jit_inner
def limit(fabric: PacketFabric, state: PacketState, switch: int) -> int:
    """Frames that a node may take of a shared memory: as many as are free (Choudhury and Hahne 1998), at least one."""
    free: int = fabric.pool[switch] - state.used[switch]
    return max(1, free)


@jit_inner
def _arrive(fabric: PacketFabric, state: PacketState, frame: int, now: int) -> None:
    """A whole frame is there: at its host, or at a switch that stores it or has no memory for it."""
    node = state.by[frame]
    first_exit = fabric.virtual + fabric.hosts
    if node >= first_exit:
        _deliver(state, frame, now)
        return
    if state.step[frame] < state.hops[frame]:
        following = state.way[frame, state.step[frame]]
        state.step[frame] += 1
    else:
        following = first_exit + state.goal[frame]
    holder = node if fabric.lossless else following
    switch = fabric.place[holder]
    if fabric.shared:
        full = state.used[switch] >= fabric.memory[switch]
        if not fabric.lossless:
            full = full or state.held[holder] >= limit(fabric, state, switch)
    else:
        full = state.held[holder] >= fabric.buffer
    if full:
        state.dropped[state.flow[frame]] += 1
        state.counts[DROPPED] += 1
        _release(state, frame)
        return
    state.holds[frame] = holder
    state.held[holder] += 1
    state.most[holder] = max(state.most[holder], state.held[holder])
    state.used[switch] += 1
    if fabric.lossless and not state.off[node]:
        threshold = limit(fabric, state, switch) if fabric.shared else fabric.xoff
        if state.held[node] >= threshold:
            _want(fabric, state, node, True, now)
    state.behind[frame] = -1
    if state.first[following] < 0:
        state.first[following] = frame
    else:
        state.behind[state.last[following]] = frame
    state.last[following] = frame
    link = link_of(fabric, following)
    if not state.busy[link]:
        start(fabric, state, link, now)


@jit_inner
def link_of(fabric: PacketFabric, node: int) -> int:
    """The link that a node is part of."""
    if node < fabric.virtual:
        return int(node % fabric.channels)
    return int(node - fabric.virtual + fabric.channels)


@jit_inner
def _deliver(state: PacketState, frame: int, now: int) -> None:
    """A host takes a frame in."""
    latency = now - state.birth[frame]
    state.histogram[histogram_place(latency)] += 1
    state.latencies[0] += latency
    flow = state.flow[frame]
    if state.transit[flow] >= 0:
        state.jitter[flow] += (abs(latency - state.transit[flow]) - state.jitter[flow]) / _SMOOTHING
    state.transit[flow] = latency
    state.delivered[flow] += 1
    state.counts[DELIVERED] += 1
    _release(state, frame)


@jit_inner
def _release(state: PacketState, frame: int) -> None:
    state.free[state.counts[FREE]] = frame
    state.counts[FREE] += 1


@jit_inner
def _opposite(fabric: PacketFabric, link: int) -> int:
    """The other direction of a link."""
    channels, hosts = fabric.channels, fabric.hosts
    if link < channels:
        return link ^ 1
    return link + hosts if link < channels + hosts else link - hosts


@jit_inner
def _want(fabric: PacketFabric, state: PacketState, node: int, off: bool, now: int) -> None:
    """The receiver of a node wants its sender to pause, or to go on, and says so as soon as it can."""
    state.off[node] = off
    link = _opposite(fabric, link_of(fabric, node))
    state.pending[link] = True
    if not state.busy[link]:
        start(fabric, state, link, now)


@jit_inner
def _control(fabric: PacketFabric, state: PacketState, link: int, now: int) -> bool:
    """Send a PAUSE frame for all priorities of the other direction, unless it would say nothing new."""
    state.pending[link] = False
    other = _opposite(fabric, link)
    wanted = 0
    if other < fabric.channels:
        for priority in range(fabric.priorities):
            if state.off[priority * fabric.channels + other]:
                wanted |= 1 << priority
    elif state.off[fabric.virtual + other - fabric.channels]:
        wanted = 1
    if wanted == state.told[link]:
        return False
    state.counts[PAUSES if wanted & ~state.told[link] else RESUMES] += 1
    state.told[link] = wanted
    state.under_way[link] += 1
    lane = CONTROL_ON_CHANNEL if link < fabric.channels else CONTROL_ON_EDGE
    push(state, lane, now + fabric.control_time[link], link << _BITS | wanted)
    return True


@jit_inner
def _obey(fabric: PacketFabric, state: PacketState, what: int, now: int) -> None:
    """A PAUSE frame takes effect; a frame that is being sent is sent to its end."""
    link, wanted = what >> _BITS, what & ((1 << _BITS) - 1)
    state.under_way[link] -= 1
    other = _opposite(fabric, link)
    priorities = fabric.priorities if other < fabric.channels else 1
    for priority in range(priorities):
        if other < fabric.channels:
            node = priority * fabric.channels + other
        else:
            node = fabric.virtual + other - fabric.channels
        stop = (wanted >> priority) & 1 == 1
        if stop == state.stopped[node]:
            continue
        if not stop:
            state.still[node] += now - state.since[node]
        state.stopped[node] = stop
        state.since[node] = now
    if not state.busy[other]:
        start(fabric, state, other, now)
