"""Hops from switches to all others, and trees of fewest hops with even load: breadth first."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Ints, Longs


@jit_unless_small
def shortest_trees(
    ends: Ints, hosts: Ints, source: Ints, target: Ints, leaving_start: Longs, leaving: Ints,
    arriving_start: Longs, arriving: Ints, balanced: bool,
) -> Ints:  # fmt: skip
    """Trees of fewest hops toward each end switch; among those the least sum of load, then the lowest port.

    Destinations are taken in order; after each the load of a channel grows by the host pairs that cross it.

    Load does not count unless `balanced`.

    Returns:
        (E, S) channel by which a frame for the end leaves each switch, -1 at the end and beyond reach.
    """
    switches = len(leaving_start) - 1
    load = np.zeros(len(source), dtype=np.int64)
    tree = np.full((len(ends), switches), -1, dtype=np.int32)
    level = np.empty(switches, dtype=np.int32)
    weight = np.empty(switches, dtype=np.int64)
    order = np.empty(switches, dtype=np.int32)
    through = np.empty(switches, dtype=np.int64)
    for end in range(len(ends)):
        level[:] = -1
        level[ends[end]] = 0
        order[0] = ends[end]
        head, tail = 0, 1
        while head < tail:
            switch = order[head]
            head += 1
            for index in range(arriving_start[switch], arriving_start[switch + 1]):
                farther = source[arriving[index]]
                if level[farther] < 0:
                    level[farther] = level[switch] + 1
                    order[tail] = farther
                    tail += 1
        weight[ends[end]] = 0
        for place in range(1, tail):
            switch = order[place]
            best, least = -1, 0
            for index in range(leaving_start[switch], leaving_start[switch + 1]):
                channel = leaving[index]
                nearer = target[channel]
                if level[nearer] == level[switch] - 1:
                    sum_of_load = weight[nearer] + load[channel]
                    if best < 0 or sum_of_load < least:
                        best, least = channel, sum_of_load
            tree[end, switch] = best
            weight[switch] = least
        if not balanced:
            continue
        through[:] = 0
        through[ends] = hosts
        for place in range(tail - 1, 0, -1):
            switch = order[place]
            channel = tree[end, switch]
            load[channel] += through[switch] * hosts[end]
            through[target[channel]] += through[switch]
    return tree


@jit_unless_small
def from_switches(roots: Ints, start: Longs, leaving: Ints, target: Ints) -> Ints:
    """Walk the fabric breadth first from each root.

    `roots`: (R,) switches; `start`: (S + 1,) offsets into `leaving`.

    Returns:
        (R, S) hops; -1 beyond reach.
    """
    switches = len(start) - 1
    hops = np.full((len(roots), switches), -1, dtype=np.int32)
    order = np.empty(switches, dtype=np.int32)
    for r in range(len(roots)):
        row = hops[r]
        row[roots[r]] = 0
        order[0] = roots[r]
        head, tail = 0, 1
        while head < tail:
            switch = order[head]
            head += 1
            for index in range(start[switch], start[switch + 1]):
                neighbour = target[leaving[index]]
                if row[neighbour] < 0:
                    row[neighbour] = row[switch] + 1
                    order[tail] = neighbour
                    tail += 1
    return hops
