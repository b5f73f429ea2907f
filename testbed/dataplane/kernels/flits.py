"""Virtual cut-through, flit by flit: the clock.

The model of Koibuchi et al. 2003, section 5.1, with what the paper leaves open decided in docs/simulator.md. A packet
takes an output node only if no other packet holds it and the next buffer has room for the whole packet. Several virtual
channels of a link take turns, flit by flit. Each clock costs what happens in it: lists, and bits for links, tell
who has something to do.
"""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit, jit_inner
from testbed.dataplane.kernels.flits_state import (
    CLOCK,
    DELIVERED,
    EXACT,
    FREE,
    HOP,
    LATENCIES,
    LISTED,
    NEVER,
    OCTAVE,
    SENDING,
    SLOTS,
    TRYING,
    FlitFabric,
    State,
)
from testbed.dataplane.kernels.flits_traffic import destination, gap, lay_path

_ONE, _58, _ALL = np.uint64(1), np.uint64(58), np.uint64(2**64 - 1)
# Each six bits in a row of this number are different (Leiserson, Prokop, Randall 1998): they tell a power of two.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_PLACE = np.zeros(64, dtype=np.int64)
_PLACE[[(1 << place) * int(_DE_BRUIJN) % 2**64 >> 58 for place in range(64)]] = np.arange(64)


@jit
def run(fabric: FlitFabric, state: State, until: int) -> None:
    """Go on until the clock has a value.

    Within a clock flits arrive, headers that have been routed ask for their outputs, outputs are given away, and then
    each link and each host sends a flit. What a clock's flits free can be taken in the next.
    """
    _go_on(fabric, state, until)


@jit_inner
def _go_on(fabric: FlitFabric, state: State, until: int) -> None:
    counts = state.counts
    while counts[CLOCK] < until:
        clock = counts[CLOCK]
        _wake(state, fabric, clock)
        _arrive(state, fabric, clock)
        if fabric.output_gap:
            _free_again(state, fabric, clock)
        _ask(state, fabric, clock)
        _give(state, fabric, clock)
        _send(state, fabric, clock)
        _inject(state, fabric, clock)
        counts[CLOCK] = clock + 1


@jit_inner
def histogram_place(latency: int) -> int:
    """Place of a latency in the histogram: its own below EXACT, else one that is within 0.1 % of it."""
    shift = 0
    while latency >> shift >= EXACT:
        shift += 1
    return latency if shift == 0 else EXACT + (shift - 1) * OCTAVE + (latency >> shift) - OCTAVE


@jit
def schedule(state: State, host: int) -> None:
    """Wake a host at the clock at which its next packet is due."""
    slot = state.due[host] & (len(state.wheel) - 1)
    state.wheel_next[host] = state.wheel[slot]
    state.wheel[slot] = host


@jit_inner
def _first_copy(fabric: FlitFabric, node: int) -> int:
    """The first of the copies of which a node is one."""
    if fabric.copies == 1:
        return node
    if node < fabric.virtual:
        return node % fabric.single
    first_exit = fabric.virtual + fabric.copies * fabric.hosts
    return node if node >= first_exit else fabric.virtual + (node - fabric.virtual) % fabric.hosts


@jit_inner
def _try(state: State, node: int) -> None:
    """Look at a node, a first copy, when outputs are given away next."""
    if not state.nodes[node].tried:
        state.nodes[node].tried = True
        state.trying[state.counts[TRYING]] = node
        state.counts[TRYING] += 1


@jit_inner
def _wake(state: State, fabric: FlitFabric, clock: int) -> None:
    """Hosts that make a packet at this clock; those of a later turn of the wheel stay on it."""
    slot = clock & (len(state.wheel) - 1)
    host = state.wheel[slot]
    state.wheel[slot] = -1
    while host >= 0:
        following = state.wheel_next[host]
        if state.due[host] <= clock:
            _try(state, fabric.virtual + host)
        else:
            schedule(state, host)
        host = following


@jit_inner
def _arrive(state: State, fabric: FlitFabric, clock: int) -> None:
    """Flits come out of the links."""
    slot = clock & (SLOTS - 1)
    for index in range(state.lines[slot]):
        state.nodes[state.line[slot, index]].stored += 1
    state.lines[slot] = 0
    for index in range(state.heads[slot]):
        node, packet = state.head_node[slot, index], state.head_packet[slot, index]
        if len(state.came):
            state.came[packet] = clock
        if state.nodes[node].queued == 0:
            _get_ready(state, node, clock + fabric.routing)
        state.queue[node, (state.nodes[node].front + state.nodes[node].queued) % state.queue.shape[1]] = packet
        state.nodes[node].queued += 1
    state.heads[slot] = 0


@jit_inner
def _get_ready(state: State, node: int, clock: int) -> None:
    """Let the front of a buffer ask for its output at a clock."""
    slot = clock % len(state.readies)
    state.ready[slot, state.readies[slot]] = node
    state.readies[slot] += 1


@jit_inner
def _ask(state: State, fabric: FlitFabric, clock: int) -> None:
    """Headers that have been routed wait for their outputs, if only for this clock."""
    slot = clock % len(state.readies)
    for index in range(state.readies[slot]):
        node = state.ready[slot, index]
        packet = state.queue[node, state.nodes[node].front]
        if state.step[packet] < state.hops[packet]:
            wanted = state.way[packet, state.step[packet]]
            state.step[packet] += 1
        else:
            wanted = fabric.virtual + fabric.copies * fabric.hosts + state.goal[packet]
        state.nodes[node].wants = wanted
        state.nodes[node].after = state.nodes[wanted].waiting
        state.nodes[wanted].waiting = node
        _try(state, wanted)
    state.readies[slot] = 0


@jit_inner
def _give(state: State, fabric: FlitFabric, clock: int) -> None:
    """Give outputs that are free, and whose buffer has room for a packet, to those that wait: round robin.

    Of several copies the first that is free is given.
    """
    counts = state.counts
    first_host, first_exit = fabric.virtual, fabric.virtual + fabric.copies * fabric.hosts
    for index in range(counts[TRYING]):
        first = state.trying[index]
        state.nodes[first].tried = False
        copies, apart = fabric.copies, fabric.single
        if first >= first_exit:
            copies = 1
        elif first >= first_host:
            apart = fabric.hosts
        for copy in range(copies):
            node = first + copy * apart
            if state.nodes[node].room < fabric.packet:
                continue
            if first_host <= node < first_exit:
                _begin(state, fabric, first - first_host, node, clock)
                break
            if state.nodes[first].waiting < 0:
                break
            if not state.nodes[node].held:
                _give_one(state, fabric, first, node)
    counts[TRYING] = 0


@jit_inner
def _give_one(state: State, fabric: FlitFabric, first: int, node: int) -> None:
    """Give a node to that of the buffers waiting for it, or for other copies of it, whose turn it is."""
    nodes = len(state.nodes)
    chosen, least, before_chosen = -1, nodes, -1
    before, waits = -1, state.nodes[first].waiting
    while waits >= 0:
        distance = waits - state.nodes[first].served - 1
        if distance < 0:
            distance += nodes
        if distance < least:
            chosen, least, before_chosen = waits, distance, before
        before, waits = waits, state.nodes[waits].after
    if before_chosen < 0:
        state.nodes[first].waiting = state.nodes[chosen].after
    else:
        state.nodes[before_chosen].after = state.nodes[chosen].after
    state.nodes[chosen].wants = -1
    state.nodes[node].held = True
    state.nodes[chosen].output = node
    state.nodes[first].served = chosen
    state.nodes[chosen].left = fabric.packet
    if node < fabric.virtual:
        state.nodes[node].room -= fabric.packet
    link = state.nodes[node].link
    state.busy[link >> 6] |= _ONE << np.uint64(link & 63)
    _take_a_place(state, link, chosen)


@jit_inner
def _take_a_place(state: State, link: int, buffer: int) -> None:
    """A buffer joins those that send over a link in turns, as the last of them."""
    last = state.links[link].last
    if state.links[link].sharing:
        state.nodes[buffer].beside = state.nodes[last].beside
        state.nodes[last].beside = buffer
    else:
        state.nodes[buffer].beside = buffer
    state.links[link].last = buffer
    state.links[link].sharing += 1


@jit_inner
def _begin(state: State, fabric: FlitFabric, host: int, node: int, clock: int) -> None:
    """Let a host send its next packet by a copy of its channel if that is there and the last one is out."""
    counts = state.counts
    if state.to_send[host] or state.due[host] > clock:
        return
    counts[FREE] -= 1
    packet = state.free[counts[FREE]]
    state.birth[packet] = state.due[host]
    if fabric.target[host] == LISTED:
        entry = _next_entry(state, host)
        state.entry[packet] = entry
        lay_path(fabric, state, packet, host, fabric.listed[entry])
        state.due[host] = clock + 1 if state.ring_at[host] >= 0 else NEVER
    else:
        lay_path(fabric, state, packet, host, destination(fabric, state.random, host))
        state.due[host] += gap(state.random, host, fabric.chance)
    state.current[host] = packet
    state.to_send[host] = fabric.packet
    state.through[host] = node
    state.nodes[node].room -= fabric.packet
    state.sending[counts[SENDING]] = host
    counts[SENDING] += 1


@jit_inner
def _next_entry(state: State, host: int) -> int:
    """The entry of a replay whose turn it is: each that has packets left sends one, round robin.

    An entry that has sent its last leaves the ring; without any `ring_at` is -1.
    """
    before = state.ring_at[host]
    entry = state.ring[before]
    state.unsent[entry] -= 1
    if state.unsent[entry]:
        state.ring_at[host] = entry
    elif entry == before:
        state.ring_at[host] = -1
    else:
        state.ring[before] = state.ring[entry]
    return int(entry)


@jit_inner
def _send(state: State, fabric: FlitFabric, clock: int) -> None:
    """Each link with something to do sends a flit.

    Links are looked at in the order of their numbers, since what stands side by side in memory takes less time, but
    which of them is the first, and the first of each word of bits, changes from clock to clock.
    """
    words = len(state.busy)
    at = clock % words
    later = _ALL << np.uint64(clock & 63)
    for _ in range(words):
        if state.busy[at]:
            _send_some(state, fabric, at, state.busy[at] & later, clock)
            _send_some(state, fabric, at, state.busy[at] & ~later, clock)
        at += 1
        if at == words:
            at = 0


@jit_inner
def _send_some(state: State, fabric: FlitFabric, word: int, bits: np.uint64, clock: int) -> None:
    """Links of a word of bits send."""
    while bits:
        lowest = bits & (~bits + _ONE)
        bits ^= lowest
        _send_over(state, fabric, 64 * word + _PLACE[(lowest * _DE_BRUIJN) >> _58], clock)


@jit_inner
def _send_over(state: State, fabric: FlitFabric, link: int, clock: int) -> None:
    """A link sends a flit of one of its virtual channels, and no port lets in flits of two."""
    nodes, links = state.nodes, state.links
    slot = (clock + HOP) & (SLOTS - 1)
    before = links[link].last
    for _ in range(links[link].sharing):
        buffer = nodes[before].beside
        port = nodes[buffer].port
        if nodes[buffer].stored == 0 or nodes[port].used == clock:
            before = buffer
            continue
        node = nodes[buffer].output
        nodes[port].used = clock
        nodes[buffer].stored -= 1
        nodes[buffer].room += 1
        if nodes[buffer].room == fabric.packet:
            _try(state, _first_copy(fabric, buffer))
        links[link].sent += 1
        if node < fabric.virtual:
            state.line[slot, state.lines[slot]] = node
            state.lines[slot] += 1
            if nodes[buffer].left == fabric.packet:
                state.head_node[slot, state.heads[slot]] = node
                state.head_packet[slot, state.heads[slot]] = state.queue[buffer, nodes[buffer].front]
                state.heads[slot] += 1
        nodes[buffer].left -= 1
        links[link].last = buffer
        if nodes[buffer].left == 0:
            _let_go(state, fabric, buffer, node, clock)
            nodes[before].beside = nodes[buffer].beside
            links[link].last = before
            links[link].sharing -= 1
            if links[link].sharing == 0:
                state.busy[link >> 6] &= ~(_ONE << np.uint64(link & 63))
        return


@jit_inner
def _let_go(state: State, fabric: FlitFabric, buffer: int, node: int, clock: int) -> None:
    """The last flit of a packet has left a buffer: its output is free, and the packet behind it is routed."""
    counts = state.counts
    packet = state.queue[buffer, state.nodes[buffer].front]
    if fabric.output_gap:
        slot = (clock + 1 + fabric.output_gap) % len(state.lettings)
        state.letting[slot, state.lettings[slot]] = node
        state.lettings[slot] += 1
    else:
        _release_node(state, fabric, node)
    if node >= fabric.virtual:
        latency = clock + HOP - state.birth[packet]
        state.histogram[histogram_place(latency)] += 1
        counts[LATENCIES] += latency
        counts[DELIVERED] += 1
        if len(state.finished):
            state.finished[state.entry[packet]] = clock + HOP
            if len(state.missing):
                _count_arrival(state, fabric, clock, state.entry[packet])
        state.free[counts[FREE]] = packet
        counts[FREE] += 1
    state.nodes[buffer].front = (state.nodes[buffer].front + 1) % state.queue.shape[1]
    state.nodes[buffer].queued -= 1
    if state.nodes[buffer].queued:
        ready = clock + 1 + fabric.buffer_gap
        if len(state.came):
            ready = max(ready, state.came[state.queue[buffer, state.nodes[buffer].front]] + fabric.routing)
        _get_ready(state, buffer, ready)


@jit_inner
def _count_arrival(state: State, fabric: FlitFabric, clock: int, entry: int) -> None:
    """A packet of a replay in steps has arrived: with the last of an entry those begin that waited for nothing else."""
    state.missing[entry] -= 1
    if state.missing[entry]:
        return
    count = 0
    for index in range(fabric.arrived_start[entry], fabric.arrived_start[entry + 1]):
        waits = fabric.arrived[index]
        state.blocked[waits] -= 1
        if state.blocked[waits] == 0:
            state.releasing[count] = waits
            count += 1
    while count:
        count -= 1
        begins = state.releasing[count]
        release_entry(state, fabric.sender[begins], begins, clock + HOP)
        for index in range(fabric.released_start[begins], fabric.released_start[begins + 1]):
            waits = fabric.released[index]
            state.blocked[waits] -= 1
            if state.blocked[waits] == 0:
                state.releasing[count] = waits
                count += 1


@jit
def release_entry(state: State, host: int, entry: int, clock: int) -> None:
    """Let a host send an entry from a clock on; one that slept is woken."""
    before = state.ring_at[host]
    if before < 0:
        state.ring[entry] = entry
        state.ring_at[host] = entry
    else:
        state.ring[entry] = state.ring[before]
        state.ring[before] = entry
    if state.due[host] == NEVER:
        state.due[host] = clock
        if state.to_send[host] == 0:
            schedule(state, host)


@jit_inner
def _release_node(state: State, fabric: FlitFabric, node: int) -> None:
    """A packet holds a node no more."""
    state.nodes[node].held = False
    first = _first_copy(fabric, node)
    if state.nodes[first].waiting >= 0:
        _try(state, first)


@jit_inner
def _free_again(state: State, fabric: FlitFabric, clock: int) -> None:
    """Virtual channels whose idle clocks after a packet are over."""
    slot = clock % len(state.lettings)
    for index in range(state.lettings[slot]):
        _release_node(state, fabric, state.letting[slot, index])
    state.lettings[slot] = 0


@jit_inner
def _inject(state: State, fabric: FlitFabric, clock: int) -> None:
    """Hosts send a flit each."""
    counts = state.counts
    slot = (clock + 1) & (SLOTS - 1)
    index = 0
    while index < counts[SENDING]:
        host = state.sending[index]
        node = state.through[host]
        state.line[slot, state.lines[slot]] = node
        state.lines[slot] += 1
        if state.to_send[host] == fabric.packet:
            state.head_node[slot, state.heads[slot]] = node
            state.head_packet[slot, state.heads[slot]] = state.current[host]
            state.heads[slot] += 1
        state.links[state.nodes[node].link].sent += 1
        state.to_send[host] -= 1
        if state.to_send[host]:
            index += 1
            continue
        counts[SENDING] -= 1
        state.sending[index] = state.sending[counts[SENDING]]
        if state.due[host] <= clock + 1:
            _try(state, fabric.virtual + host)
        elif state.due[host] < NEVER:  # else it sleeps until a step of a replay wakes it
            schedule(state, host)
