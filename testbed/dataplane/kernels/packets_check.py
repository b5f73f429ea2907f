"""Questions about a packet-level simulation that stands still between two events."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit
from testbed.base.model import Bools, Ints, Longs
from testbed.dataplane.kernels.packets_links import link_of
from testbed.dataplane.kernels.packets_state import (
    FRAME_ARRIVES,
    FRAME_ON_CHANNEL,
    FRAME_ON_EDGE,
    FREE,
    LANES,
    PacketFabric,
    PacketLive,
    PacketState,
    PacketTcp,
)


def _sizes(state: PacketState, tcp: PacketTcp | None, live: PacketLive | None) -> Longs:
    """(Q,) memory that each frame takes. By them what follows is the same for all and compiled once."""
    if live is not None:
        return live.memory.astype(np.int64)
    if tcp is not None:
        return np.where(tcp.wanted >= 0, tcp.size[1], tcp.size[0])
    return np.ones(len(state.holds), dtype=np.int64)


def waiting_cycle(
    fabric: PacketFabric, state: PacketState, tcp: PacketTcp | None = None, live: PacketLive | None = None
) -> Ints:
    """Nodes that are paused for ever, each by frames that wait for the one after it; empty without any.

    A node stays paused for ever if the frames in its memory that never leave are too many for it to go on. A frame
    never leaves if it waits in the queue of a node that stays paused for ever. Of the nodes that are paused now, with
    no PAUSE frame on its way that says otherwise, those that the others would let go on are taken out until none is
    left to take. The rest is a deadlock, exactly.
    """
    return _waiting_cycle(fabric, state, _sizes(state, tcp, live))


@jit
def _waiting_cycle(fabric: PacketFabric, state: PacketState, sizes: Longs) -> Ints:
    nodes = len(state.first)
    if not fabric.lossless:
        return np.empty(0, dtype=np.int32)
    for_ever = state.off & state.stopped
    for node in range(nodes):
        if for_ever[node]:
            link = link_of(fabric, node)
            back = link ^ 1 if link < fabric.channels else link + fabric.hosts
            priority = node // fabric.channels if node < fabric.virtual else 0
            told = (state.told[back] >> priority) & 1 == 1
            for_ever[node] = told and state.under_way[back] == 0
    stuck = np.zeros(nodes, dtype=np.int32)
    in_switch = np.zeros(len(state.used), dtype=np.int64)
    for node in range(nodes):
        if for_ever[node]:
            _count(fabric, state, sizes, node, stuck, in_switch)
    off = -sizes
    changed = True
    while changed:
        changed = False
        for node in range(nodes):
            if not for_ever[node]:
                continue
            resume = fabric.xon
            if fabric.shared:
                switch = fabric.place[node]
                resume = max(1, fabric.pool[switch] - in_switch[switch]) >> 1
            if stuck[node] <= resume:
                for_ever[node] = False
                _count(fabric, state, off, node, stuck, in_switch)
                changed = True
    return _cycle_of(state, for_ever)


@jit
def _count(fabric: PacketFabric, state: PacketState, sizes: Longs, node: int, stuck: Ints, in_switch: Longs) -> None:
    """Count the frames in a node's queue for the nodes whose memory they take; by sizes below 0, take them off."""
    frame = state.first[node]
    while frame >= 0:
        holder = state.holds[frame]
        if holder >= 0:  # what waits in a host takes nobody's memory
            stuck[holder] += sizes[frame]
            in_switch[fabric.place[holder]] += sizes[frame]
        frame = state.behind[frame]


@jit
def _cycle_of(state: PacketState, for_ever: Bools) -> Ints:
    """A cycle among nodes that are paused for ever: from each, to one of them that holds back some of its frames."""
    nodes = len(for_ever)
    waits = np.full(nodes, -1, dtype=np.int32)
    for node in range(nodes):
        if for_ever[node]:
            frame = state.first[node]
            while frame >= 0:
                if state.holds[frame] >= 0:
                    waits[state.holds[frame]] = node
                frame = state.behind[frame]
    seen = np.full(nodes, -1, dtype=np.int32)
    for root in range(nodes):
        node = root
        if not for_ever[root]:
            continue
        while seen[node] < 0:
            seen[node] = root
            node = waits[node]
        if seen[node] != root:
            continue
        length, smallest, at = 1, node, waits[node]
        while at != node:
            smallest = min(smallest, at)
            length += 1
            at = waits[at]
        cycle = np.empty(length, dtype=np.int32)
        for index in range(length):
            cycle[index] = smallest
            smallest = waits[smallest]
        return cycle
    return np.empty(0, dtype=np.int32)


def lost_frames(
    fabric: PacketFabric, state: PacketState, tcp: PacketTcp | None = None, live: PacketLive | None = None
) -> tuple[Longs, Longs, int]:
    """What does not add up.

    Returns:
        (N,) memory of a node that is counted too much (or too little, below 0), (S,) likewise of a switch's, and the
        frames that are neither free nor anywhere. All zero where nothing is lost.
    """
    return _lost_frames(fabric, state, _sizes(state, tcp, live), 0 if tcp is None else int(tcp.unheard[0]))


@jit
def _lost_frames(fabric: PacketFabric, state: PacketState, sizes: Longs, unheard: int) -> tuple[Longs, Longs, int]:
    held = state.held.astype(np.int64)
    used = state.used.copy()
    lanes = state.lanes
    inside = lanes.length[FRAME_ARRIVES] + unheard
    for node in range(len(state.first)):
        if fabric.place[node] >= 0:
            used[fabric.place[node]] -= state.held[node]
        frame = state.first[node]
        while frame >= 0:
            inside += 1
            if state.holds[frame] >= 0:
                held[state.holds[frame]] -= sizes[frame]
            frame = state.behind[frame]
    ring = lanes.time.shape[1] - 1
    for lane in range(len(lanes.length)):
        if lane not in (FRAME_ON_CHANNEL, FRAME_ON_EDGE) and lane < LANES:
            continue
        for index in range(lanes.length[lane]):
            frame = state.sending[lanes.what[lane, (lanes.start[lane] + index) & ring]]
            inside += 1
            if state.holds[frame] >= 0:
                held[state.holds[frame]] -= sizes[frame]
    return held, used, len(state.free) - state.counts[FREE] - inside
