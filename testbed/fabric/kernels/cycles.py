"""Cycles of directed graphs given as adjacency (start, following)."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs


@jit_unless_small
def on_cycles(start: Longs, following: Ints) -> Bools:
    """(N,) True for nodes left after taking away, again and again, those that nothing enters or nothing leaves.

    No node is left exactly for a graph without a cycle.
    """
    nodes = len(start) - 1
    entering = np.zeros(nodes, dtype=np.int64)
    for after in following:
        entering[after] += 1
    before_start = np.zeros(nodes + 1, dtype=np.int64)
    for node in range(nodes):
        before_start[node + 1] = before_start[node] + entering[node]
    place = before_start[:-1].copy()
    before = np.empty(len(following), dtype=np.int32)
    leaving = np.empty(nodes, dtype=np.int64)
    for node in range(nodes):
        leaving[node] = start[node + 1] - start[node]
        for index in range(start[node], start[node + 1]):
            before[place[following[index]]] = node
            place[following[index]] += 1
    left = np.ones(nodes, dtype=np.bool_)
    waiting = np.empty(nodes, dtype=np.int32)
    count = 0
    for node in range(nodes):
        if entering[node] == 0 or leaving[node] == 0:
            left[node] = False
            waiting[count] = node
            count += 1
    while count:
        count -= 1
        node = waiting[count]
        for index in range(start[node], start[node + 1]):
            after = following[index]
            entering[after] -= 1
            if left[after] and entering[after] == 0:
                left[after] = False
                waiting[count] = after
                count += 1
        for index in range(before_start[node], before_start[node + 1]):
            other = before[index]
            leaving[other] -= 1
            if left[other] and leaving[other] == 0:
                left[other] = False
                waiting[count] = other
                count += 1
    return left


@jit_unless_small
def shortest_cycle(start: Longs, following: Ints, inside: Bools) -> Ints:
    """One shortest cycle among the nodes inside, its smallest node first; empty if there is none.

    Breadth first from every node inside, no deeper than the best cycle known.
    """
    nodes = len(start) - 1
    best = np.empty(0, dtype=np.int32)
    came_from = np.empty(nodes, dtype=np.int32)
    seen = np.full(nodes, -1, dtype=np.int32)
    depth = np.empty(nodes, dtype=np.int32)
    waiting = np.empty(nodes, dtype=np.int32)
    for root in range(nodes):
        if not inside[root]:
            continue
        longest = len(best) - 1 if len(best) else nodes
        seen[root] = root
        depth[root] = 1
        waiting[0] = root
        head, tail, closed = 0, 1, -1
        while head < tail and closed < 0:
            node = waiting[head]
            head += 1
            if depth[node] > longest:
                break
            for index in range(start[node], start[node + 1]):
                after = following[index]
                if after == root:
                    closed = node
                    break
                if inside[after] and seen[after] != root:
                    seen[after] = root
                    depth[after] = depth[node] + 1
                    came_from[after] = node
                    waiting[tail] = after
                    tail += 1
        if closed >= 0:
            best = np.empty(depth[closed], dtype=np.int32)
            node = closed
            for place in range(len(best) - 1, -1, -1):
                best[place] = node
                node = came_from[node]
            if len(best) == 1:
                break
    if len(best):
        smallest = np.argmin(best)
        best = np.concatenate((best[smallest:], best[:smallest]))
    return best


@jit_unless_small
def cycle_through(start: Longs, following: Ints, inside: Bools, roots: Bools) -> Ints:
    """A shortest cycle among the nodes inside through the first of `roots` (N,) that is on any, from there on.

    Empty if none of them is on a cycle.
    """
    nodes = len(start) - 1
    came_from = np.empty(nodes, dtype=np.int32)
    seen = np.full(nodes, -1, dtype=np.int32)
    waiting = np.empty(nodes, dtype=np.int32)
    for root in range(nodes):
        if not (inside[root] and roots[root]):
            continue
        waiting[0] = root
        head, tail = 0, 1
        while head < tail:
            node = waiting[head]
            head += 1
            for index in range(start[node], start[node + 1]):
                after = following[index]
                if after == root:
                    length = 1
                    at = node
                    while at != root:
                        length += 1
                        at = came_from[at]
                    cycle = np.empty(length, dtype=np.int32)
                    at = node
                    for place in range(length - 1, 0, -1):
                        cycle[place] = at
                        at = came_from[at]
                    cycle[0] = root
                    return cycle
                if inside[after] and seen[after] != root:
                    seen[after] = root
                    came_from[after] = node
                    waiting[tail] = after
                    tail += 1
    return np.empty(0, dtype=np.int32)
