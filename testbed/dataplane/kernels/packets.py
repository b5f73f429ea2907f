"""Store and forward, frame by frame, with PAUSE frames (IEEE 802.3x, Qbb) or drops: the events.

Hosts send datagrams at rates of their own, or what TCP lets them (packets_tcp), or messages at rates that congestion
control sets (packets_rdma), or what real hosts hand over, which switches then forward by the plan's tables
(packets_live). Functions are compiled once for each: of what is None nothing is left in the machine code.
"""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit, jit_inner
from testbed.dataplane.kernels.events import NEVER, pop, push, queue, unqueue
from testbed.dataplane.kernels.flits import histogram_place
from testbed.dataplane.kernels.flits_traffic import draw
from testbed.dataplane.kernels.packets_hosts import wake
from testbed.dataplane.kernels.packets_links import (
    ARRIVES,
    BITS,
    append,
    dequeue_frame,
    duplicate,
    link_of,
    release,
    reverse_link,
    send_pause,
    start,
    tagged_length,
)
from testbed.dataplane.kernels.packets_live import deliver_to_host, drop_frame, find_egress_ports, set_vlan_tag
from testbed.dataplane.kernels.packets_rdma import (
    choose_next_hop,
    handle_event,
    mark_frame,
    take_message_frame,
)
from testbed.dataplane.kernels.packets_state import (
    AS_ASKED,
    CONTROL_ARRIVES,
    CONTROL_ON_CHANNEL,
    CONTROL_ON_EDGE,
    DELIVERED,
    DROPPED,
    FRAME_ARRIVES,
    LANES,
    LINK_DOWN,
    NOW,
    TCP_LANES,
    PacketFabric,
    PacketLive,
    PacketRdma,
    PacketState,
    PacketTcp,
)
from testbed.dataplane.kernels.packets_tcp import arrive_at_host, expire, has_left
from testbed.dataplane.kernels.tie_breaking import next_of_tied

_HEAP = TCP_LANES
_32 = np.uint64(32)
_SMOOTHING = 16  # RFC 3550, section 6.4.1


def run(
    fabric: PacketFabric,
    state: PacketState,
    until: int,
    tcp: PacketTcp | None = None,
    live: PacketLive | None = None,
    rdma: PacketRdma | None = None,
) -> None:
    """Go on with every event before a time."""
    advance(fabric, state, tcp, live, rdma, until)


@jit
def advance(
    fabric: PacketFabric,
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    until: int,
) -> None:
    """As run(), for kernels."""
    _go_on(fabric, state, tcp, live, rdma, until)


@jit_inner
def _go_on(
    fabric: PacketFabric,
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    until: int,
) -> None:
    lanes, heap = state.lanes, state.heap
    while True:
        lane, now = -1, NEVER
        for other in range(LANES):
            if lanes.soonest[other] < now:
                lane, now = other, lanes.soonest[other]
        if tcp is not None:
            for other in range(LANES, TCP_LANES):
                if lanes.soonest[other] < now:
                    lane, now = other, lanes.soonest[other]
        if heap.count[0] and heap.time[0] < now:
            lane, now = _HEAP, heap.time[0]
        if now >= until:
            state.counts[NOW] = until
            return
        if fabric.tie_order:
            lane = next_of_tied(
                lanes, heap, LANES if tcp is None else TCP_LANES, fabric.tie_order, state.tie_random, now
            )
            lane = _HEAP if lane < 0 else lane
        state.counts[NOW] = now
        if lane == FRAME_ARRIVES:
            link = _arrive(fabric, state, tcp, live, rdma, unqueue(lanes, lane), now)
        elif lane == CONTROL_ARRIVES:
            link = _handle_pause(fabric, state, unqueue(lanes, lane), now)
        elif lane in (CONTROL_ON_CHANNEL, CONTROL_ON_EDGE):
            what = unqueue(lanes, lane)
            link = what >> BITS
            queue(lanes, CONTROL_ARRIVES, now + fabric.delay, what)
            state.busy[link] = False
        elif live is not None:
            link = pop(heap)
            if link >= ARRIVES:
                _arrive(fabric, state, tcp, live, rdma, link - ARRIVES, now)
                continue
            if link < len(live.byte_time):
                _finish_transmission(fabric, state, tcp, live, rdma, link, now)
            else:
                what = link - len(live.byte_time)
                link = what >> BITS
                queue(lanes, CONTROL_ARRIVES, now + live.delay[0], what)
            state.busy[link] = False
        elif lane == _HEAP:
            if tcp is not None:
                link = fabric.channels + expire(fabric, state, tcp, now)
            elif rdma is not None:
                host = handle_event(fabric, state, rdma, now)
                link = -1 if host < 0 else fabric.channels + host
            else:
                link = fabric.channels + wake(state)
        else:
            link = unqueue(lanes, lane)
            _finish_transmission(fabric, state, tcp, live, rdma, link, now)
            state.busy[link] = False
        if link >= 0 and not state.busy[link]:
            start(fabric, state, tcp, live, rdma, link, now)


@jit_inner
def _finish_transmission(
    fabric: PacketFabric,
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    link: int,
    now: int,
) -> None:
    """The last bit of a frame has gone: the memory that it took is free."""
    frame = state.sending[link]
    state.sent[link] += 1
    if live is None:
        queue(state.lanes, FRAME_ARRIVES, now + fabric.delay, frame)
    else:
        live.sent_bytes[link] += tagged_length(live, frame)
        if live.early[link]:
            live.early[link] = False
            _release_buffer(fabric, state, tcp, live, rdma, frame, now)
            release(state, frame)
            return
        if live.longer[link]:
            push(state.heap, now + live.delay[0] + live.longer[link], ARRIVES + frame)
        else:
            queue(state.lanes, FRAME_ARRIVES, now + live.delay[0], frame)
    if tcp is not None:
        has_left(fabric, state, tcp, link, frame, now)
    _release_buffer(fabric, state, tcp, live, rdma, frame, now)


@jit_inner
def _release_buffer(
    fabric: PacketFabric,
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    frame: int,
    now: int,
) -> None:
    """The memory that a frame took is free; who was paused for it may go on."""
    node = int(state.holds[frame])
    if node < 0:
        return
    state.holds[frame] = -1
    size = size_of(tcp, live, frame)
    state.held[node] -= size
    switch = fabric.place[node]
    state.used[switch] -= size
    if not fabric.lossless:
        return
    if not fabric.shared:
        if state.off[node] and state.held[node] <= fabric.xon:
            state.off[node] = False
            send_pause(fabric, state, tcp, live, rdma, node, now)
        return
    resume = limit(fabric, state, switch) >> 1
    for index in range(fabric.near[switch], fabric.near[switch + 1]):
        other = int(fabric.node[index])
        if state.off[other] and state.held[other] <= resume:
            state.off[other] = False
            send_pause(fabric, state, tcp, live, rdma, other, now)


@jit
def restart_links(fabric: PacketFabric, state: PacketState, live: PacketLive) -> None:
    """Let every link that is free look whether it has something to send, since a pause was taken back from outside."""
    for link in range(len(live.byte_time)):
        if not state.busy[link]:
            start(fabric, state, None, live, None, link, state.counts[NOW])


@jit
def drain_port(fabric: PacketFabric, state: PacketState, live: PacketLive, node: int) -> int:
    """Let a node drop what waits in its queue and what comes for it, as a PFC watchdog does; returns the former."""
    return _drain_port(fabric, state, live, node)


@jit_inner
def _drain_port(fabric: PacketFabric, state: PacketState, live: PacketLive, node: int) -> int:
    live.shut[node] = True
    now, dropped = state.counts[NOW], 0
    while state.first[node] >= 0:
        frame = dequeue_frame(state, None, live, None, node, now)
        _release_buffer(fabric, state, None, live, None, frame, now)
        release(state, frame)
        dropped += 1
    live.drops[node] += dropped
    state.counts[DROPPED] += dropped
    return dropped


@jit_inner
def size_of(tcp: PacketTcp | None, live: PacketLive | None, frame: int) -> int:
    """Memory that a frame takes."""
    if live is not None:
        return int(live.memory[frame])
    if tcp is None:
        return 1
    return int(tcp.size[1 if tcp.wanted[frame] >= 0 else 0])


@jit_inner
def limit(fabric: PacketFabric, state: PacketState, switch: int) -> int:
    """What a node may take of a shared memory: as much as is free (Choudhury and Hahne 1998), at least one frame."""
    free: int = fabric.pool[switch] - state.used[switch]
    return max(1, free)


@jit_inner
def _arrive(
    fabric: PacketFabric,
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    frame: int,
    now: int,
) -> int:
    """A whole frame is there: at its host, or at a switch that stores it or has no memory for it.

    Returns:
        a link that may have something to send, or -1.
    """
    node = int(state.by[frame])
    first_exit = fabric.virtual + fabric.hosts
    if live is not None:
        came = link_of(fabric, node)
        if live.down[came]:
            drop_frame(state, live, frame, LINK_DOWN)
        elif live.loss[came] and np.int64(draw(state.random, 0) >> _32) < live.loss[came]:
            drop_frame(state, live, frame, AS_ASKED)
        elif node >= first_exit:
            deliver_to_host(state, live, frame, now)
        else:
            count = find_egress_ports(fabric, state, live, frame, node, now)
            for number in range(count):
                copy = frame if number == count - 1 else duplicate(state, live, frame)
                if copy >= 0:
                    following = set_vlan_tag(fabric, live, copy, int(live.chosen[number]))
                    link = _store(fabric, state, tcp, live, rdma, copy, node, following, now)
                    if link >= 0 and not state.busy[link]:
                        start(fabric, state, tcp, live, rdma, link, now)
        return -1
    if node >= first_exit:
        if tcp is None:
            if rdma is not None:
                take_message_frame(state, rdma, frame, now)
            _deliver(state, frame, now)
            return -1
        arrive_at_host(fabric, state, tcp, node - first_exit, frame, now)
        return int(fabric.channels + node - first_exit)
    following = -1
    if rdma is not None:
        following = choose_next_hop(fabric, state, rdma, frame, int(fabric.place[node]))
    if following < 0:
        following = int(first_exit + state.goal[frame])
        if state.step[frame] < state.hops[frame]:
            following = int(state.way[frame, state.step[frame]])
            state.step[frame] += 1
    return _store(fabric, state, tcp, live, rdma, frame, node, following, now)


@jit_inner
def _store(
    fabric: PacketFabric, state: PacketState, tcp: PacketTcp | None, live: PacketLive | None, rdma: PacketRdma | None,
    frame: int, node: int,
    following: int, now: int,
) -> int:  # fmt: skip
    """Put a frame that came by a node into the queue of another, where there is memory for it.

    Returns:
        a link that may have something to send, or -1.
    """
    holder = node if fabric.lossless else following
    switch, size = fabric.place[holder], size_of(tcp, live, frame)
    if fabric.shared:
        full = state.used[switch] + size > fabric.memory[switch]
        if not fabric.lossless:
            full = full or state.held[holder] >= limit(fabric, state, switch)
    else:
        full = state.held[holder] + size > fabric.buffer
    if live is not None:
        full = full or live.shut[following]
    if full:
        if live is not None:
            live.drops[following] += 1
        elif tcp is None:
            state.dropped[state.flow[frame]] += 1
        else:
            tcp.drops[following] += 1
        state.counts[DROPPED] += 1
        release(state, frame)
        return -1
    state.holds[frame] = holder
    state.held[holder] += size
    state.most[holder] = max(state.most[holder], state.held[holder])
    state.used[switch] += size
    if fabric.lossless and not state.off[node]:
        threshold = limit(fabric, state, switch) if fabric.shared else fabric.xoff
        if state.held[node] >= threshold:
            state.off[node] = True
            send_pause(fabric, state, tcp, live, rdma, node, now)
    if rdma is not None:
        mark_frame(state, rdma, following, frame)
    append(state, tcp, live, rdma, following, frame, now)
    return link_of(fabric, following)


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
    release(state, frame)


@jit_inner
def _handle_pause(fabric: PacketFabric, state: PacketState, what: int, now: int) -> int:
    """A PAUSE frame takes effect on a link, which is returned; a frame that is being sent is sent to its end."""
    link, wanted = what >> BITS, what & ((1 << BITS) - 1)
    state.under_way[link] -= 1
    other = reverse_link(fabric, link)
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
    return int(other)
