"""Deleting paths through the most loaded channel (Sancho and Robles 2000)."""

from __future__ import annotations

import heapq

import numpy as np

from testbed.base.jit import jit
from testbed.base.model import Ints, Longs


@jit
def relieve(candidate_start: Longs, base: Longs, length: Longs, hops: Ints, weight: Longs, group: Ints) -> Longs:
    """Delete candidates until one a pair is left, always one through the virtual channel with the highest load.

    The highest of the group with the highest load, that is. Of the candidates through it that of the pair with most
    candidates left goes, then that of the lowest pair. A virtual channel through which no candidate can be spared is
    closed.

    `candidate_start` is the (P + 1,) number of the first candidate of each pair, `base` the (P + 1,) offset of its
    first hop in `hops`; `length` (P,) hops of each candidate of a pair, `weight` (P,) the load of one path of it;
    `group` (N,) is that of each virtual channel.

    Returns:
        (P,) which of its candidates a pair keeps, from 0; -1 for pairs without.
    """
    pairs = len(length)
    counters = len(group)
    owner = np.empty(candidate_start[-1], dtype=np.int64)
    load = np.zeros(counters, dtype=np.int64)
    together = np.zeros(counters, dtype=np.int64)  # load of a group
    through_start = np.zeros(counters + 1, dtype=np.int64)
    left = np.zeros(pairs, dtype=np.int64)
    for pair in range(pairs):
        left[pair] = candidate_start[pair + 1] - candidate_start[pair]
        owner[candidate_start[pair] : candidate_start[pair + 1]] = pair
        for index in range(base[pair], base[pair + 1]):
            through_start[hops[index] + 1] += 1
            load[hops[index]] += weight[pair]
            together[group[hops[index]]] += weight[pair]
    for number in range(counters):
        through_start[number + 1] += through_start[number]
    place = through_start[:-1].copy()
    through = np.empty(through_start[-1], dtype=np.int32)  # candidates, by counter
    for candidate in range(len(owner)):
        pair = owner[candidate]
        first = base[pair] + (candidate - candidate_start[pair]) * length[pair]
        for index in range(first, first + length[pair]):
            number = hops[index]
            through[place[number]] = candidate
            place[number] += 1
    alive = np.ones(len(owner), dtype=np.bool_)
    # Candidates left of a pair never grow more, so one walk through a counter's list for each number suffices.
    spare = np.full(counters, max(left.max(), 1) if pairs else 1, dtype=np.int64)
    place[:] = through_start[:-1]
    # Loads never grow, so what comes out of the heap with its load of now is the highest.
    highest = [(-together[group[number]], -load[number], number) for number in range(counters)]
    heapq.heapify(highest)
    while highest:
        known_together, known, number = highest[0]
        if known != -load[number] or known_together != -together[group[number]]:
            heapq.heapreplace(highest, (-together[group[number]], -load[number], number))
            continue
        while spare[number] > 1 and place[number] < through_start[number + 1]:
            candidate = through[place[number]]
            if alive[candidate] and left[owner[candidate]] >= spare[number]:
                break
            place[number] += 1
            if place[number] == through_start[number + 1]:
                spare[number] -= 1
                place[number] = through_start[number]
        if spare[number] <= 1 or through_start[number] == through_start[number + 1]:
            heapq.heappop(highest)
            continue
        candidate = through[place[number]]
        alive[candidate] = False
        pair = owner[candidate]
        left[pair] -= 1
        first = base[pair] + (candidate - candidate_start[pair]) * length[pair]
        for index in range(first, first + length[pair]):
            load[hops[index]] -= weight[pair]
            together[group[hops[index]]] -= weight[pair]
    kept = np.full(pairs, -1, dtype=np.int64)
    for candidate in range(len(owner)):
        if alive[candidate]:
            kept[owner[candidate]] = candidate - candidate_start[owner[candidate]]
    return kept
