"""Virtual cut-through, flit by flit: the clock.

The model of Koibuchi et al. 2003, section 5.1, with what the paper leaves open decided in docs/simulator.md. A packet
takes an output node only if no other packet holds it and the next buffer has room for the whole packet. Several virtual
channels of a link take turns, flit by flit. Each clock costs what happens in it: lists hold the links, hosts and
nodes with something to do.
"""

from __future__ import annotations

from testbed.kernels.flits_state import (
    BUSY,
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
    Fabric,
    State,
)
from testbed.kernels.flits_traffic import destination, gap, lay_path
from testbed.kernels.jit import jit


@jit
def run(fabric: Fabric, state: State, until: int) -> None:
    """Go on until the clock has a value.

    Within a clock flits arrive, headers that have been routed ask for their outputs, outputs are given away, and then
    each link and each host sends a flit. What a clock's flits free can be taken in the next.
    """
    counts = state.counts
    while counts[CLOCK] < until:
        clock = counts[CLOCK]
        _wake(state, fabric, clock)
        _arrive(state, clock, fabric.routing)
        _ask(state, fabric, clock)
        _give(state, fabric, clock)
        _send(state, fabric, clock)
        _inject(state, fabric, clock)
        counts[CLOCK] = clock + 1


@jit
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


@jit
def _try(state: State, node: int) -> None:
    """Look at a node when outputs are given away next."""
    if not state.tried[node]:
        state.tried[node] = True
        state.trying[state.counts[TRYING]] = node
        state.counts[TRYING] += 1


@jit
def _wake(state: State, fabric: Fabric, clock: int) -> None:
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


@jit
def _arrive(state: State, clock: int, routing: int) -> None:
    """Flits come out of the links."""
    slot = clock & (SLOTS - 1)
    for index in range(state.lines[slot]):
        state.stored[state.line[slot, index]] += 1
    state.lines[slot] = 0
    for index in range(state.heads[slot]):
        node, packet = state.head_node[slot, index], state.head_packet[slot, index]
        if state.queued[node] == 0:
            _get_ready(state, node, clock + routing)
        state.queue[node, (state.front[node] + state.queued[node]) % state.queue.shape[1]] = packet
        state.queued[node] += 1
    state.heads[slot] = 0


@jit
def _get_ready(state: State, node: int, clock: int) -> None:
    """Let the front of a buffer ask for its output at a clock."""
    slot = clock % len(state.readies)
    state.ready[slot, state.readies[slot]] = node
    state.readies[slot] += 1


@jit
def _ask(state: State, fabric: Fabric, clock: int) -> None:
    """Headers that have been routed wait for their outputs, if only for this clock."""
    slot = clock % len(state.readies)
    for index in range(state.readies[slot]):
        node = state.ready[slot, index]
        packet = state.queue[node, state.front[node]]
        if state.step[packet] < state.hops[packet]:
            wanted = state.way[packet, state.step[packet]]
            state.step[packet] += 1
        else:
            wanted = fabric.virtual + fabric.hosts + state.goal[packet]
        state.wants[node] = wanted
        state.after[node] = state.waiting[wanted]
        state.waiting[wanted] = node
        _try(state, wanted)
    state.readies[slot] = 0


@jit
def _give(state: State, fabric: Fabric, clock: int) -> None:
    """Give outputs that are free, and whose buffer has room for a packet, to those that wait: round robin."""
    counts = state.counts
    nodes = len(state.room)
    first_host, first_exit = fabric.virtual, fabric.virtual + fabric.hosts
    for index in range(counts[TRYING]):
        node = state.trying[index]
        state.tried[node] = False
        if state.room[node] < fabric.packet:
            continue
        if first_host <= node < first_exit:
            _begin(state, fabric, node - first_host, clock)
            continue
        if state.holder[node] >= 0 or state.waiting[node] < 0:
            continue
        chosen, least, before_chosen = -1, nodes, -1
        before, waits = -1, state.waiting[node]
        while waits >= 0:
            distance = waits - state.served[node] - 1
            if distance < 0:
                distance += nodes
            if distance < least:
                chosen, least, before_chosen = waits, distance, before
            before, waits = waits, state.after[waits]
        if before_chosen < 0:
            state.waiting[node] = state.after[chosen]
        else:
            state.after[before_chosen] = state.after[chosen]
        state.wants[chosen] = -1
        state.holder[node] = chosen
        state.served[node] = chosen
        state.left[chosen] = fabric.packet
        if node < first_host:
            state.room[node] -= fabric.packet
        link = state.link[node]
        if state.actives[link] == 0:
            state.busy[counts[BUSY]] = link
            counts[BUSY] += 1
        state.active[link, state.actives[link]] = node
        state.actives[link] += 1
    counts[TRYING] = 0


@jit
def _begin(state: State, fabric: Fabric, host: int, clock: int) -> None:
    """Let a host send its next packet if that is there and the last one is out."""
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
    state.room[fabric.virtual + host] -= fabric.packet
    state.sending[counts[SENDING]] = host
    counts[SENDING] += 1


@jit
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


@jit
def _send(state: State, fabric: Fabric, clock: int) -> None:
    """Each link sends a flit of one of its virtual channels, and no port lets in flits of two.

    The link that chooses first changes from clock to clock.
    """
    counts = state.counts
    stored, room, left, holder, link_of = state.stored, state.room, state.left, state.holder, state.link
    active, actives, turn, used, busy = state.active, state.actives, state.turn, state.used, state.busy
    slot = (clock + HOP) & (SLOTS - 1)
    packet_flits, first_exit = fabric.packet, fabric.virtual + fabric.hosts
    arriving = state.lines[slot]
    links = counts[BUSY]
    if links == 0:
        return
    at = clock % links
    emptied = 0
    for _ in range(links):
        link = busy[at]
        at += 1
        if at == links:
            at = 0
        shared = actives[link]
        choice = turn[link]
        for _ in range(shared):
            if choice >= shared:
                choice = 0
            node = active[link, choice]
            choice += 1
            buffer = holder[node]
            port = link_of[buffer]
            if stored[buffer] == 0 or used[port] == clock:
                continue
            used[port] = clock
            stored[buffer] -= 1
            room[buffer] += 1
            if room[buffer] == packet_flits:
                _try(state, buffer)
            state.sent[link] += 1
            if node < first_exit:
                state.line[slot, arriving] = node
                arriving += 1
                if left[buffer] == packet_flits:
                    state.head_node[slot, state.heads[slot]] = node
                    state.head_packet[slot, state.heads[slot]] = state.queue[buffer, state.front[buffer]]
                    state.heads[slot] += 1
            left[buffer] -= 1
            if left[buffer] == 0:
                _let_go(state, fabric, buffer, node, clock)
                choice -= 1
                actives[link] = shared - 1
                for index in range(choice, shared - 1):
                    active[link, index] = active[link, index + 1]
                if shared == 1:
                    emptied += 1
            break
        turn[link] = choice
    state.lines[slot] = arriving
    if emptied:
        kept = 0
        for index in range(links):
            link = busy[index]
            if actives[link]:
                busy[kept] = link
                kept += 1
        counts[BUSY] = kept


@jit
def _let_go(state: State, fabric: Fabric, buffer: int, node: int, clock: int) -> None:
    """The last flit of a packet has left a buffer: its output is free, and the packet behind it is routed."""
    counts = state.counts
    packet = state.queue[buffer, state.front[buffer]]
    state.holder[node] = -1
    if state.waiting[node] >= 0:
        _try(state, node)
    if node >= fabric.virtual + fabric.hosts:
        latency = clock + HOP - state.birth[packet]
        state.histogram[histogram_place(latency)] += 1
        counts[LATENCIES] += latency
        counts[DELIVERED] += 1
        if len(state.finished):
            state.finished[state.entry[packet]] = clock + HOP
        state.free[counts[FREE]] = packet
        counts[FREE] += 1
    state.front[buffer] = (state.front[buffer] + 1) % state.queue.shape[1]
    state.queued[buffer] -= 1
    if state.queued[buffer]:
        _get_ready(state, buffer, clock + 1 + fabric.routing)


@jit
def _inject(state: State, fabric: Fabric, clock: int) -> None:
    """Hosts send a flit each."""
    counts = state.counts
    slot = (clock + 1) & (SLOTS - 1)
    index = 0
    while index < counts[SENDING]:
        host = state.sending[index]
        node = fabric.virtual + host
        state.line[slot, state.lines[slot]] = node
        state.lines[slot] += 1
        if state.to_send[host] == fabric.packet:
            state.head_node[slot, state.heads[slot]] = node
            state.head_packet[slot, state.heads[slot]] = state.current[host]
            state.heads[slot] += 1
        state.sent[state.link[node]] += 1
        state.to_send[host] -= 1
        if state.to_send[host]:
            index += 1
            continue
        counts[SENDING] -= 1
        state.sending[index] = state.sending[counts[SENDING]]
        if state.due[host] <= clock + 1:
            _try(state, node)
        else:
            schedule(state, host)
