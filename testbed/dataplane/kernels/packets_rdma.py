"""Messages of network cards (RoCE): sent at rates that congestion control sets, over switches that mark frames (ECN).

A switch marks a frame by the frames that wait in the queue which it joins (RED, as in Zhu et al. 2015, figure 5). The
host that gets a marked frame sends its sender a notification, at most one of a flow in each interval. Notifications
take the time of a short frame on an idle path, since switches carry them in a class before all others; the
rate that they take is left out.
"""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_inner
from testbed.dataplane.kernels.dcqcn import count_frame, heed_notification, increase_by_timer
from testbed.dataplane.kernels.events import NEVER, pop, push
from testbed.dataplane.kernels.flits_traffic import draw, lay_path, mix_bits
from testbed.dataplane.kernels.packets_state import FREE, MADE, MARKED, NOTIFIED, PacketFabric, PacketRdma, PacketState

# Events of the heap, each of a host or a flow; what happens is `which * KINDS + kind`.
WAKES, NOTIFIES, TICKS = range(3)
KINDS = 3

# How switches choose among next hops: not at all (the plan's path), by a hash of the flow, or anew for each frame.
BY_PATH, BY_FLOW, RANDOM, ROUND_ROBIN, LEAST_QUEUE = range(5)

_11 = np.uint64(11)
_STEP = np.uint64(0x9E3779B97F4A7C15)


@jit_inner
def handle_event(fabric: PacketFabric, state: PacketState, rdma: PacketRdma, now: int) -> int:
    """The next event of the heap.

    Returns:
        a host that may have something to send, or -1.
    """
    event, rates = pop(state.heap), rdma.rates
    kind, which = event % KINDS, event // KINDS
    if kind == WAKES:
        state.waking[which] = False
        return int(which)
    if kind == NOTIFIES:
        heed_notification(rates, which, now)
        if rates.ticking[which]:
            return -1
    elif rates.deadline[which] <= now:
        increase_by_timer(rates, which, now)
    rates.ticking[which] = rates.limited[which] and state.made[which] < rdma.size[which]
    if rates.ticking[which]:
        push(state.heap, rates.deadline[which], which * KINDS + TICKS)
    return -1


@jit_inner
def mark_frame(state: PacketState, rdma: PacketRdma, node: int, frame: int) -> None:
    """Mark a frame that joins a node's queue: never up to `k_min`, always from `k_max` on, by chance between them.

    Without congestion control none is, since nobody would heed it.
    """
    waiting = rdma.waiting[node]
    if rdma.marked[frame] or waiting <= rdma.k_min or not rdma.rates.controlled:
        return
    if waiting <= rdma.k_max:
        chance = rdma.p_max * (waiting - rdma.k_min) / (rdma.k_max - rdma.k_min)
        if np.float64(draw(state.random, state.flow[frame]) >> _11) * 2.0**-53 >= chance:
            return
    rdma.marked[frame] = True
    rdma.tally[MARKED] += 1


@jit_inner
def choose_next_hop(fabric: PacketFabric, state: PacketState, rdma: PacketRdma, frame: int, switch: int) -> int:
    """The node that a switch sends a frame to, as it chooses; -1 where it goes by the plan's path."""
    if rdma.next_hop == BY_PATH:
        return -1
    group = rdma.table[switch, rdma.key[state.goal[frame]]]
    if group < 0:
        return int(fabric.virtual + fabric.hosts + state.goal[frame])
    first = rdma.start[group]
    size = rdma.start[group + 1] - first
    flow = state.flow[frame]
    if rdma.next_hop == BY_FLOW:
        return int(rdma.channel[first + np.int64(_hash(flow, switch) % np.uint64(size))])
    if rdma.next_hop == ROUND_ROBIN:
        place = rdma.turn[group]
        rdma.turn[group] = place + 1 if place + 1 < size else 0
        return int(rdma.channel[first + place])
    drawn = np.int64(draw(state.random, flow) % np.uint64(size))
    if rdma.next_hop == RANDOM:
        return int(rdma.channel[first + drawn])
    best = rdma.channel[first + drawn]
    for number in range(1, size):  # from a drawn one on, so that of equal queues each is as likely
        other = rdma.channel[first + (drawn + number) % size]
        if _queue_of(fabric, state, rdma, other) < _queue_of(fabric, state, rdma, best):
            best = other
    return int(best)


@jit_inner
def _queue_of(fabric: PacketFabric, state: PacketState, rdma: PacketRdma, channel: int) -> int:
    """Frames that a frame would wait for on a channel."""
    waiting = 1 if state.busy[channel] else 0
    for priority in range(fabric.priorities):
        waiting += rdma.waiting[priority * fabric.channels + channel]
    return int(waiting)


@jit_inner
def _hash(flow: int, switch: int) -> np.uint64:
    """Bits of a flow's number and a switch, in place of a hash of addresses and ports."""
    return mix_bits(mix_bits(np.uint64(flow) * _STEP + _STEP) ^ np.uint64(switch))


@jit_inner
def take_message_frame(state: PacketState, rdma: PacketRdma, frame: int, now: int) -> None:
    """A host gets a frame: it may have to notify the sender, and the message may be complete."""
    flow = state.flow[frame]
    if rdma.marked[frame] and now >= rdma.next_notice[flow]:
        rdma.next_notice[flow] = now + rdma.interval
        rdma.tally[NOTIFIED] += 1
        push(state.heap, now + rdma.back[flow], flow * KINDS + NOTIFIES)
    if state.delivered[flow] + 1 == rdma.size[flow]:
        rdma.finished[flow] = now


@jit_inner
def make_message_frame(fabric: PacketFabric, state: PacketState, rdma: PacketRdma, host: int, now: int) -> int:
    """The frame that a host sends next, or -1: the host then sleeps until it has one.

    Of messages that have begun each has a time before which it sends no frame. Time that a message lost to a pause, or
    to others, is not made up for.
    """
    first, count = fabric.flows[host], rdma.open[host]
    soon = rdma.upcoming[host]
    while soon < fabric.flows[host + 1] and rdma.begin[soon] <= now:
        rdma.sending[first + count] = soon
        state.due[soon] = rdma.begin[soon]
        count += 1
        soon += 1
    rdma.upcoming[host], rdma.open[host] = soon, count
    place, soonest = -1, NEVER
    for other in range(first, first + count):
        if state.due[rdma.sending[other]] < soonest:
            place, soonest = other, state.due[rdma.sending[other]]
    if soonest > now:
        if soon < fabric.flows[host + 1]:
            soonest = min(soonest, rdma.begin[soon])
        if soonest < NEVER and not state.waking[host]:
            state.waking[host] = True
            push(state.heap, soonest, host * KINDS + WAKES)
        return -1
    flow = rdma.sending[place]
    counts, rates = state.counts, rdma.rates
    counts[FREE] -= 1
    frame = state.free[counts[FREE]]
    lay_path(fabric.paths, state, frame, host, fabric.goal[flow])
    state.birth[frame] = now
    state.flow[frame] = flow
    state.holds[frame] = -1
    state.by[frame] = fabric.virtual + host
    rdma.marked[frame] = False
    if rates.limited[flow]:
        count_frame(rates, flow)
    state.due[flow] = now + round(fabric.gap[flow] / rates.rate[flow])
    state.made[flow] += 1
    counts[MADE] += 1
    if state.made[flow] == rdma.size[flow]:
        rdma.open[host] -= 1
        rdma.sending[place] = rdma.sending[first + rdma.open[host]]
    return int(frame)
