"""Prohibited turns allowed again where that closes no cycle."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs


@jit_unless_small
def release(start: Longs, after: Ints, allowed: Bools) -> Bools:
    """Allow one turn after the other, in their order, unless it would close a cycle of allowed turns.

    A topological order of the channels is kept up to date (Pearce and Kelly 2007), so that most turns need no search.

    `start` are (C + 1,) offsets into `after`, turns being ordered by the channel before; `allowed` the (A,) turns
    allowed already, which form no cycle.

    Returns:
        (A,) True for turns allowed at last; none of the others could be added.
    """
    nodes = len(start) - 1
    open_turn = allowed.copy()
    before = np.empty(len(after), dtype=np.int32)
    entering_start = np.zeros(nodes + 1, dtype=np.int64)
    for node in range(nodes):
        for turn in range(start[node], start[node + 1]):
            before[turn] = node
            entering_start[after[turn] + 1] += 1
    for node in range(nodes):
        entering_start[node + 1] += entering_start[node]
    place = entering_start[:-1].copy()
    entering = np.empty(len(after), dtype=np.int32)  # turns by the channel after
    for turn in range(len(after)):
        entering[place[after[turn]]] = turn
        place[after[turn]] += 1

    waits_for = np.zeros(nodes, dtype=np.int64)
    for turn in range(len(after)):
        if open_turn[turn]:
            waits_for[after[turn]] += 1
    order = np.empty(nodes, dtype=np.int64)  # place of each channel
    node_at = np.empty(nodes, dtype=np.int64)
    stack = np.empty(nodes, dtype=np.int32)
    tail, count = 0, 0
    for node in range(nodes):
        if waits_for[node] == 0:
            stack[tail] = node
            tail += 1
    while tail:
        tail -= 1
        node = stack[tail]
        order[node] = count
        node_at[count] = node
        count += 1
        for turn in range(start[node], start[node + 1]):
            if open_turn[turn]:
                waits_for[after[turn]] -= 1
                if waits_for[after[turn]] == 0:
                    stack[tail] = after[turn]
                    tail += 1

    seen = np.full(nodes, -1, dtype=np.int64)
    ahead = np.empty(nodes, dtype=np.int64)
    behind = np.empty(nodes, dtype=np.int64)
    for wanted in range(len(after)):
        if open_turn[wanted]:
            continue
        first, last = before[wanted], after[wanted]
        low, high = order[last], order[first]
        if high < low:
            open_turn[wanted] = True
            continue
        stack[0] = last
        seen[last] = wanted
        tail, forward, closes = 1, 0, False
        while tail and not closes:
            tail -= 1
            node = stack[tail]
            ahead[forward] = order[node]
            forward += 1
            for turn in range(start[node], start[node + 1]):
                other = after[turn]
                if open_turn[turn] and order[other] <= high and seen[other] != wanted:
                    if other == first:
                        closes = True
                        break
                    seen[other] = wanted
                    stack[tail] = other
                    tail += 1
        if closes:
            continue
        stack[0] = first
        seen[first] = wanted
        tail, backward = 1, 0
        while tail:
            tail -= 1
            node = stack[tail]
            behind[backward] = order[node]
            backward += 1
            for index in range(entering_start[node], entering_start[node + 1]):
                turn = entering[index]
                other = before[turn]
                if open_turn[turn] and order[other] >= low and seen[other] != wanted:
                    seen[other] = wanted
                    stack[tail] = other
                    tail += 1
        # What reaches the channel before goes first, what the channel after reaches goes last, in the same places.
        places = np.sort(np.concatenate((behind[:backward], ahead[:forward])))
        moved = np.concatenate((node_at[np.sort(behind[:backward])], node_at[np.sort(ahead[:forward])]))
        for index in range(len(places)):
            order[moved[index]] = places[index]
            node_at[places[index]] = moved[index]
        open_turn[wanted] = True
    return open_turn
