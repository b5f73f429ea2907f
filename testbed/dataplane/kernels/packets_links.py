"""Sending ends of links: their queues, which frame is next, and PAUSE frames before all others.

A frame stands in the queue of the link it goes out by until it is sent. Priorities of a link take turns.
"""

from __future__ import annotations

from testbed.base.ethernet import CUT_THROUGH, MIN_FRAME, VLAN_TAG, wire_bytes
from testbed.base.jit import jit_inner
from testbed.dataplane.kernels.events import push, queue
from testbed.dataplane.kernels.packets_clock import stamp
from testbed.dataplane.kernels.packets_hosts import make_frame
from testbed.dataplane.kernels.packets_rdma import make_message_frame
from testbed.dataplane.kernels.packets_state import (
    ACK_ON_CHANNEL,
    ACK_ON_EDGE,
    CONTROL_ON_CHANNEL,
    CONTROL_ON_EDGE,
    FRAME_ON_CHANNEL,
    FRAME_ON_EDGE,
    FREE,
    NO_ROOM,
    PAUSES,
    RESUMES,
    PacketFabric,
    PacketLive,
    PacketRdma,
    PacketState,
    PacketTcp,
)

BITS = 8  # of a number that stands for the priorities of a link

ARRIVES = 1 << 40  # in the heap, plus a frame that comes by a link which takes longer than others, or cut through

_wire_bytes = jit_inner(wire_bytes)


@jit_inner
def start(
    fabric: PacketFabric,
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    link: int,
    now: int,
) -> None:
    """Let a link that has just become free, or has something to send, send it: PAUSE frames first."""
    channels, hosts = fabric.channels, fabric.hosts
    on_edge = link >= channels
    state.busy[link] = True
    if state.pending[link] and _control(fabric, state, live, link, now):
        return
    frame = -1
    if not on_edge:
        priority = state.turn[link]
        for _ in range(fabric.priorities):
            node = priority * channels + link
            priority = priority + 1 if priority + 1 < fabric.priorities else 0
            if state.first[node] >= 0 and not state.stopped[node]:
                state.turn[link] = priority
                frame = dequeue_frame(state, tcp, live, rdma, node, now)
                break
    elif link >= channels + hosts:
        node = fabric.virtual + link - channels
        if state.first[node] >= 0 and not state.stopped[node]:
            frame = dequeue_frame(state, tcp, live, rdma, node, now)
    elif not state.stopped[fabric.virtual + link - channels]:
        if tcp is None and live is None:
            if rdma is None:
                frame = make_frame(fabric, state, link - channels, now)
            else:
                frame = make_message_frame(fabric, state, rdma, link - channels, now)
        elif state.first[fabric.virtual + link - channels] >= 0:
            frame = dequeue_frame(state, tcp, live, rdma, fabric.virtual + link - channels, now)
    if frame < 0:
        state.busy[link] = False
        return
    state.sending[link] = frame
    if live is not None:
        if live.watched[link]:
            show(live, link, frame, 0, now)
        push(state.heap, now + wire_time(live, link, frame), link)
        if live.cuts[link] and state.counts[FREE] > 0:
            # Each of the two takes memory of its own switch, until its last bit has left that.
            copy = duplicate(state, live, frame)
            live.early[link] = True
            push(
                state.heap, now + CUT_THROUGH * live.byte_time[link] + live.delay[0] + live.longer[link], ARRIVES + copy
            )
    elif tcp is not None and tcp.wanted[frame] >= 0:
        queue(state.lanes, ACK_ON_EDGE if on_edge else ACK_ON_CHANNEL, now + tcp.ack_time[link], link)
    else:
        queue(state.lanes, FRAME_ON_EDGE if on_edge else FRAME_ON_CHANNEL, now + fabric.frame_time[link], link)


@jit_inner
def duplicate(state: PacketState, live: PacketLive, frame: int) -> int:
    """A copy of a frame that has not been stored yet; -1 where there is no room for one."""
    if state.counts[FREE] == 0:
        live.refused[NO_ROOM] += 1
        return -1
    state.counts[FREE] -= 1
    copy = int(state.free[state.counts[FREE]])
    length = int(live.length[frame])
    for place in range(length):
        live.data[copy, place] = live.data[frame, place]
    live.length[copy], live.tag[copy] = length, live.tag[frame]
    live.memory[copy] = live.memory[frame]
    state.holds[copy], state.birth[copy] = -1, state.birth[frame]
    state.by[copy] = state.by[frame]
    return copy


@jit_inner
def dequeue_frame(
    state: PacketState, tcp: PacketTcp | None, live: PacketLive | None, rdma: PacketRdma | None, node: int, now: int
) -> int:
    """Take the frame at the head of a queue."""
    if tcp is not None:
        _tally(tcp, node, -1, now)
    if rdma is not None:
        rdma.waiting[node] -= 1
    frame = state.first[node]
    if live is not None:
        live.waiting[node] -= 1
        live.waiting_bytes[node] -= tagged_length(live, frame)
    state.first[node] = state.behind[frame]
    state.by[frame] = node
    return int(frame)


@jit_inner
def append(
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    node: int,
    frame: int,
    now: int,
) -> None:
    """Put a frame at the end of a node's queue."""
    if tcp is not None:
        _tally(tcp, node, 1, now)
    if rdma is not None:
        rdma.waiting[node] += 1
        rdma.peak[node] = max(rdma.peak[node], rdma.waiting[node])
    if live is not None:
        live.waiting[node] += 1
        live.waiting_bytes[node] += tagged_length(live, frame)
    state.behind[frame] = -1
    if state.first[node] < 0:
        state.first[node] = frame
    else:
        state.behind[state.last[node]] = frame
    state.last[node] = frame


@jit_inner
def _tally(tcp: PacketTcp, node: int, step: int, now: int) -> None:
    """Count the frames that wait in a queue, and how long."""
    tcp.area[node] += tcp.waiting[node] * (now - tcp.changed[node])
    tcp.changed[node] = now
    tcp.waiting[node] += step
    tcp.peak[node] = max(tcp.peak[node], tcp.waiting[node])


@jit_inner
def tagged_length(live: PacketLive, frame: int) -> int:
    """Bytes of a frame as it is on its link, without check sequence."""
    return int(live.length[frame] + (VLAN_TAG if live.tag[frame] >= 0 else 0))


@jit_inner
def wire_time(live: PacketLive, link: int, frame: int) -> int:
    """Picoseconds that a link takes for a frame."""
    return int(_wire_bytes(live.length[frame], VLAN_TAG if live.tag[frame] >= 0 else 0) * live.byte_time[link])


@jit_inner
def link_of(fabric: PacketFabric, node: int) -> int:
    """The link that a node is part of."""
    if node < fabric.virtual:
        return int(node % fabric.channels)
    return int(node - fabric.virtual + fabric.channels)


@jit_inner
def reverse_link(fabric: PacketFabric, link: int) -> int:
    """The other direction of a link."""
    channels, hosts = fabric.channels, fabric.hosts
    if link < channels:
        return link ^ 1
    return link + hosts if link < channels + hosts else link - hosts


@jit_inner
def send_pause(
    fabric: PacketFabric,
    state: PacketState,
    tcp: PacketTcp | None,
    live: PacketLive | None,
    rdma: PacketRdma | None,
    node: int,
    now: int,
) -> None:
    """The receiver of a node wants its sender to pause, or to go on, as in `off`, and says so as soon as it can."""
    link = reverse_link(fabric, link_of(fabric, node))
    state.pending[link] = True
    if not state.busy[link]:
        start(fabric, state, tcp, live, rdma, link, now)


@jit_inner
def _control(fabric: PacketFabric, state: PacketState, live: PacketLive | None, link: int, now: int) -> bool:
    """Send a PAUSE frame for all priorities of the other direction, unless it would say nothing new."""
    state.pending[link] = False
    other = reverse_link(fabric, link)
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
    if live is not None:
        live.pauses[link] += 1
        time = now + int(_wire_bytes(MIN_FRAME, 0) * live.byte_time[link])
        push(state.heap, time, len(live.byte_time) + (link << BITS | wanted))
        if live.watched[link]:
            show(live, link, -1, wanted, now)
        return True
    lane = CONTROL_ON_CHANNEL if link < fabric.channels else CONTROL_ON_EDGE
    queue(state.lanes, lane, now + fabric.control_time[link], link << BITS | wanted)
    return True


@jit_inner
def show(live: PacketLive, link: int, frame: int, stopped: int, now: int) -> None:
    """Show who listens a frame that a link begins to carry; -1 for a PAUSE frame, which stops some priorities."""
    place = live.seen[0] & (len(live.seen_at) - 1)
    live.seen_at[place], live.seen_link[place] = stamp(live.clock, now), link
    if frame < 0:
        live.seen_tag[place], live.seen_length[place] = -2, stopped
    else:
        live.seen_tag[place], live.seen_length[place] = live.tag[frame], live.length[frame]
        for byte in range(live.length[frame]):
            live.seen_data[place, byte] = live.data[frame, byte]
    live.seen[0] += 1


@jit_inner
def release(state: PacketState, frame: int) -> None:
    """A frame is no more."""
    state.free[state.counts[FREE]] = frame
    state.counts[FREE] += 1
