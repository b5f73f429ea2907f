"""The order of switches in tree-based turn prohibition."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs


@jit_unless_small
def prohibit(leaving_start: Longs, leaving: Ints, target: Ints, tree: Bools) -> Ints:
    """Turns that tree-based turn prohibition prohibits, both ways.

    `tree`: (L,) True for the links of a spanning tree.

    Returns:
        (M, 2) channel that enters a switch and channel that leaves it.
    """
    switches = len(leaving_start) - 1
    left = ~tree  # (L,) non-tree links not yet taken away
    others = np.zeros(switches, dtype=np.int64)  # of each switch
    on_tree = np.zeros(switches, dtype=np.int64)
    for channel in range(len(target)):
        if tree[channel // 2]:
            on_tree[target[channel]] += 1
        else:
            others[target[channel]] += 1
    to_each = np.zeros(switches, dtype=np.int64)
    surplus = np.zeros(switches, dtype=np.int64)
    stale = np.ones(switches, dtype=np.bool_)
    pairs = 0
    for switch in range(switches):
        pairs += others[switch] * (others[switch] - 1) // 2 + others[switch] * on_tree[switch]
    found = np.empty((pairs, 2), dtype=np.int32)
    count = 0
    while True:
        best = -1
        for switch in range(switches):
            if others[switch] == 0:
                continue
            if stale[switch]:
                stale[switch] = False
                gain = 0
                for index in range(leaving_start[switch], leaving_start[switch + 1]):
                    channel = leaving[index]
                    if left[channel // 2]:
                        other = target[channel]
                        # The turn between two parallel links of the pair is one, not two.
                        gain += others[other] + on_tree[other] - 1 - to_each[other]
                        to_each[other] += 1
                for index in range(leaving_start[switch], leaving_start[switch + 1]):
                    to_each[target[leaving[index]]] = 0
                loss = others[switch] * (others[switch] - 1) // 2 + others[switch] * on_tree[switch]
                surplus[switch] = gain - loss
            if best < 0 or surplus[switch] > surplus[best]:
                best = switch
        if best < 0:
            return found[:count].copy()
        first, last = leaving_start[best], leaving_start[best + 1]
        for index in range(first, last):
            one = leaving[index]
            if not left[one // 2]:
                continue
            for place in range(first, last):
                other = leaving[place]
                if tree[other // 2] or (left[other // 2] and place > index):
                    found[count, 0] = one ^ 1
                    found[count, 1] = other
                    count += 1
        for index in range(first, last):
            channel = leaving[index]
            if left[channel // 2]:
                left[channel // 2] = False
                near = target[channel]
                others[near] -= 1
                # Its degree counts in the surplus of all its neighbours.
                stale[near] = True
                for place in range(leaving_start[near], leaving_start[near + 1]):
                    stale[target[leaving[place]]] = True
        others[best] = 0
