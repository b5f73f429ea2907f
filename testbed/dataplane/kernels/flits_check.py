"""Questions about a flit-level simulation that stands still between two clocks."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit, jit_inner
from testbed.base.model import Ints, Longs
from testbed.dataplane.kernels.flits_state import SLOTS, FlitFabric, Records, State


@jit
def waiting_cycle(fabric: FlitFabric, state: State) -> Ints:
    """Virtual channels whose packets wait for each other for ever, each for the one after it; empty without any.

    A packet at the front of buffer b that wants node o, whose buffer has no room for it, waits for the packet at the
    front of o. A packet that holds its output has room for all its flits, so it waits for nothing that waits. Where a
    virtual channel has one copy, a front wants one node only, so from each buffer leads one way, and a cycle of such
    waits is a deadlock, exactly: room in o comes only from the front of o. With several copies a front waits for all of
    them at once; see _cycle_of_copies().
    """
    if fabric.copies > 1:
        return _cycle_of_copies(fabric, state)
    nodes = state.nodes
    seen = np.full(len(nodes), -1, dtype=np.int32)
    for root in range(len(nodes)):
        node = root
        while seen[node] < 0 and _is_stuck(nodes, node, fabric.packet):
            seen[node] = root
            node = nodes[node].wants
        if seen[node] == root and _is_stuck(nodes, node, fabric.packet):
            return _walk_round(nodes, node)
    return np.empty(0, dtype=np.int32)


@jit
def _cycle_of_copies(fabric: FlitFabric, state: State) -> Ints:
    """The same where a front may take any copy: it is stuck for ever if the fronts of all copies are.

    Of all that want something those go on whose wanted node has a copy with room, or one whose own front goes on.
    What is left when none is left to take out is deadlocked, and in it a cycle leads from copy to copy.
    """
    nodes = state.nodes
    stuck = np.zeros(len(nodes), dtype=np.bool_)
    for node in range(len(nodes)):
        stuck[node] = nodes[node].wants >= 0
    changed = True
    while changed:
        changed = False
        for node in range(len(nodes)):
            if not stuck[node]:
                continue
            wanted = nodes[node].wants
            for copy in range(fabric.copies if wanted < fabric.virtual else 1):
                other = wanted + copy * fabric.single
                if nodes[other].room >= fabric.packet or not stuck[other]:
                    stuck[node] = False
                    changed = True
                    break
    for node in range(len(nodes)):
        if stuck[node]:
            return _walk_round(nodes, node)
    return np.empty(0, dtype=np.int32)


@jit
def _walk_round(nodes: Records, start: int) -> Ints:
    """The cycle that wants lead to, smallest node first; first copies stand for what is wanted."""
    seen = np.zeros(len(nodes), dtype=np.bool_)
    node = start
    while not seen[node]:
        seen[node] = True
        node = nodes[node].wants
    length, smallest, at = 1, node, nodes[node].wants
    while at != node:
        smallest = min(smallest, at)
        length += 1
        at = nodes[at].wants
    cycle = np.empty(length, dtype=np.int32)
    for index in range(length):
        cycle[index] = smallest
        smallest = nodes[smallest].wants
    return cycle


@jit_inner
def _is_stuck(nodes: Records, node: int, packet: int) -> bool:
    """Whether the front of a buffer wants a node whose buffer has no room for it."""
    wanted = nodes[node].wants
    return bool(wanted >= 0 and nodes[wanted].room < packet)


@jit
def lost_flits(fabric: FlitFabric, state: State, depth: int) -> tuple[Longs, int]:
    """What does not add up: flits, and room promised or taken in buffers.

    `state` is between two clocks; `depth`: flits of a buffer.

    Returns:
        (N,) room that a buffer has too much (or too little, below 0), and the flits that went in, less those that came
        out and those that are on their way. All zero where nothing is lost.
    """
    first_exit = fabric.virtual + fabric.copies * fabric.hosts
    room = np.empty(len(state.nodes), dtype=np.int64)
    for node in range(len(room)):
        room[node] = state.nodes[node].room
    inside = 0
    for node in range(first_exit):
        room[node] += state.nodes[node].stored - depth
        inside += state.nodes[node].stored
    for slot in range(SLOTS):
        for index in range(state.lines[slot]):
            room[state.line[slot, index]] += 1
            inside += 1
    for link in range(len(state.links)):
        buffer = state.links[link].last
        for _ in range(state.links[link].sharing):
            buffer = state.nodes[buffer].beside
            if state.nodes[buffer].output < first_exit:
                room[state.nodes[buffer].output] += state.nodes[buffer].left
    for host in range(fabric.hosts):
        room[state.through[host]] += state.to_send[host]
    room[first_exit:] = 0
    links = len(state.links)
    sent, received = 0, 0
    for link in range(links - 2 * fabric.hosts, links - fabric.hosts):
        sent += state.links[link].sent
    for link in range(links - fabric.hosts, links):
        received += state.links[link].sent
    return room, sent - received - inside
