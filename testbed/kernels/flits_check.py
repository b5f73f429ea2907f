"""Questions about a flit-level simulation that stands still between two clocks."""

from __future__ import annotations

import numpy as np

from testbed.kernels.flits_state import BUSY, SLOTS, Fabric, State
from testbed.kernels.jit import jit
from testbed.model import Ints, Longs


@jit
def waiting_cycle(fabric: Fabric, state: State) -> Ints:
    """Virtual channels whose packets wait for each other for ever, each for the one after it; empty without any.

    A packet at the front of buffer b that wants node o, whose buffer has no room for it, waits for the packet at the
    front of o. A packet that holds its output has room for all its flits, so it waits for nothing that waits. A front
    wants one node only, so from each buffer leads one way, and a cycle of such waits is a deadlock, exactly: room in
    o comes only from the front of o.
    """
    nodes = len(state.room)
    seen = np.full(nodes, -1, dtype=np.int32)
    for root in range(nodes):
        node = root
        while seen[node] < 0 and state.wants[node] >= 0 and state.room[state.wants[node]] < fabric.packet:
            seen[node] = root
            node = state.wants[node]
        if seen[node] == root and state.wants[node] >= 0 and state.room[state.wants[node]] < fabric.packet:
            length, smallest, at = 1, node, state.wants[node]
            while at != node:
                smallest = min(smallest, at)
                length += 1
                at = state.wants[at]
            cycle = np.empty(length, dtype=np.int32)
            for index in range(length):
                cycle[index] = smallest
                smallest = state.wants[smallest]
            return cycle
    return np.empty(0, dtype=np.int32)


@jit
def lost_flits(fabric: Fabric, state: State, depth: int) -> tuple[Longs, int]:
    """What does not add up: flits, and room promised or taken in buffers.

    Args:
        fabric: what is simulated.
        state: between two clocks.
        depth: flits of a buffer.

    Returns:
        (N,) room that a buffer has too much (or too little, below 0), and the flits that went in, less those that came
        out and those that are on their way. All zero where nothing is lost.
    """
    first_exit = fabric.virtual + fabric.hosts
    room = state.room.copy()
    inside = 0
    for node in range(first_exit):
        room[node] += state.stored[node] - depth
        inside += state.stored[node]
    for slot in range(SLOTS):
        for index in range(state.lines[slot]):
            room[state.line[slot, index]] += 1
            inside += 1
    for index in range(state.counts[BUSY]):
        link = state.busy[index]
        for turn in range(state.actives[link]):
            node = state.active[link, turn]
            if node < first_exit:
                room[node] += state.left[state.holder[node]]
    for host in range(fabric.hosts):
        room[fabric.virtual + host] += state.to_send[host]
    room[first_exit:] = 0
    links = len(state.sent)
    sent, received = 0, 0
    for link in range(links - 2 * fabric.hosts, links - fabric.hosts):
        sent += state.sent[link]
    for link in range(links - fabric.hosts, links):
        received += state.sent[link]
    return room, sent - received - inside
