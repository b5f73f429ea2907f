"""A graph of channel dependencies that grows turn by turn and never gets a cycle.

Its nodes are channels and its possible edges the turns of a fabric, numbered as all_turns() orders them. A
topological order is kept. A turn that fits it costs nothing; for any other the places between its two channels are
searched from both ends, and what one side has found moves past the other (after Marchetti-Spaccamela, Nanni, Rohnert,
Maintaining a topological order under edge insertions, 1996).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Codes, Ints, Longs

UNKNOWN, USED, BLOCKED = 0, 1, 2
AHEAD, BEHIND = 1, 2


class Dependencies(NamedTuple):
    """The turns of a fabric and which of them are in the graph."""

    start: Longs  # (C + 1,) offsets of the turns from each channel
    before: Ints  # (A,) channel before a turn
    after: Ints  # (A,) channel after it, ascending for one channel before
    entering_start: Longs  # (C + 1,) offsets into `entering`
    entering: Ints  # (A,) turns by the channel after
    state: Codes  # (A,) UNKNOWN, USED (in the graph), or BLOCKED (would close a cycle; kept by the caller)
    place: Ints  # (C,) each channel's place in the topological order
    at: Ints  # (C,) the channel at each place
    mark: Codes  # (C,) scratch, 0 between calls
    moved: Ints  # (C,) scratch
    ahead: Ints  # (C,) scratch
    behind: Ints  # (C,) scratch


@jit_unless_small
def no_dependencies(channels: int, before: Ints, after: Ints) -> Dependencies:
    """Graph of all channels without any turn."""
    turns = len(before)
    start = np.zeros(channels + 1, dtype=np.int64)
    entering_start = np.zeros(channels + 1, dtype=np.int64)
    for turn in range(turns):
        start[before[turn] + 1] += 1
        entering_start[after[turn] + 1] += 1
    for channel in range(channels):
        start[channel + 1] += start[channel]
        entering_start[channel + 1] += entering_start[channel]
    free = entering_start[:-1].copy()
    entering = np.empty(turns, dtype=np.int32)
    for turn in range(turns):
        entering[free[after[turn]]] = turn
        free[after[turn]] += 1
    order = np.arange(channels).astype(np.int32)
    nothing = np.empty(channels, dtype=np.int32)
    return Dependencies(
        start, before, after, entering_start, entering, np.zeros(turns, dtype=np.int8), order, order.copy(),
        np.zeros(channels, dtype=np.int8), nothing, nothing.copy(), nothing.copy(),
    )  # fmt: skip


@jit_unless_small
def turn_of(start: Longs, after: Ints, first: int, second: int) -> int:
    """Number of the turn from one channel to another, -1 if there is none."""
    low, high = start[first], start[first + 1]
    while low < high:
        middle = (low + high) // 2
        if after[middle] < second:
            low = middle + 1
        else:
            high = middle
    return low if low < start[first + 1] and after[low] == second else -1


@jit_unless_small
def add_turn(graph: Dependencies, turn: int) -> bool:
    """Put a turn into the graph unless that closes a cycle; say whether it is in now. BLOCKED is not looked at."""
    if graph.state[turn] == USED:
        return True
    first, second = graph.before[turn], graph.after[turn]
    place, mark, ahead, behind = graph.place, graph.mark, graph.ahead, graph.behind
    low, high = place[second], place[first]
    if low < high:
        # What follows `second` and what leads to `first`, by turns, until one side is known or the two meet.
        ahead[0], behind[0] = second, first
        mark[second], mark[first] = AHEAD, BEHIND
        a, aheads, b, behinds = 0, 1, 0, 1
        closed = False
        while a < aheads and b < behinds and not closed:
            for edge in range(graph.start[ahead[a]], graph.start[ahead[a] + 1]):
                channel = graph.after[edge]
                if graph.state[edge] == USED and mark[channel] != AHEAD and place[channel] <= high:
                    if mark[channel] == BEHIND:
                        closed = True
                        break
                    mark[channel] = AHEAD
                    ahead[aheads] = channel
                    aheads += 1
            a += 1
            if a == aheads or closed:
                break
            for index in range(graph.entering_start[behind[b]], graph.entering_start[behind[b] + 1]):
                edge = graph.entering[index]
                channel = graph.before[edge]
                if graph.state[edge] == USED and mark[channel] != BEHIND and place[channel] >= low:
                    if mark[channel] == AHEAD:
                        closed = True
                        break
                    mark[channel] = BEHIND
                    behind[behinds] = channel
                    behinds += 1
            b += 1
        if not closed:
            if a == aheads:
                _move_up(graph, low, high)
            else:
                _move_down(graph, low, high)
        for index in range(aheads):
            mark[ahead[index]] = 0
        for index in range(behinds):
            mark[behind[index]] = 0
        if closed:
            return False
    graph.state[turn] = USED
    return True


@jit_unless_small
def _move_up(graph: Dependencies, low: int, high: int) -> None:
    """Move what is marked AHEAD to the end of the places low..high, in the order it has."""
    count = 0
    for position in range(low, high + 1):
        channel = graph.at[position]
        if graph.mark[channel] == AHEAD:
            graph.moved[count] = channel
            count += 1
        else:
            graph.at[position - count] = channel
            graph.place[channel] = position - count
    for index in range(count):
        position = high + 1 - count + index
        graph.at[position] = graph.moved[index]
        graph.place[graph.moved[index]] = position


@jit_unless_small
def _move_down(graph: Dependencies, low: int, high: int) -> None:
    """Move what is marked BEHIND to the beginning of the places low..high, in the order it has."""
    count = 0
    for position in range(high, low - 1, -1):
        channel = graph.at[position]
        if graph.mark[channel] == BEHIND:
            graph.moved[count] = channel
            count += 1
        else:
            graph.at[position + count] = channel
            graph.place[channel] = position + count
    for index in range(count):
        position = low + count - 1 - index
        graph.at[position] = graph.moved[index]
        graph.place[graph.moved[index]] = position
