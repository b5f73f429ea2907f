"""One next hop for each switch and destination that goes down where a way down is left, and up elsewhere."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs


@jit_unless_small
def toward_destinations(
    ends: Ints, weight: Longs, up: Bools, target: Ints, start: Longs, leaving: Ints, downward: Ints
) -> tuple[Ints, Ints]:
    """Shortest next hops of that kind, toward the least loaded channels, destination by destination.

    `ends` (E,) are switches with hosts, `weight` (S,) the hosts of each switch; `up` (C,) True for channels that go up;
    `start` (S + 1,) and `leaving` (C,) are channels by the switch they leave; `downward` (S,) has all switches in an
    order in which every channel up leads to an earlier one.

    Where a switch goes down to another, that one has a way down as well, and so goes down, too: no frame goes up after
    it has gone down.

    Returns:
        (E, S) channel by which frames to each end leave a switch, -1 at the end itself; and a pair (switch, end) of
        which one cannot reach the other, or nothing.
    """
    switches = len(downward)
    tree = np.full((len(ends), switches), -1, dtype=np.int32)
    load = np.zeros(len(up), dtype=np.int64)
    hops = np.empty(switches, dtype=np.int32)
    order = np.empty(switches, dtype=np.int32)  # nearest first where there is a way down, then downward
    through = np.empty(switches, dtype=np.int64)
    for place in range(len(ends)):
        end = ends[place]
        hops[:] = -1
        hops[end] = 0
        order[0] = end
        head, tail = 0, 1
        while head < tail:  # up from the end: who reaches it by going down
            switch = order[head]
            head += 1
            for index in range(start[switch], start[switch + 1]):
                if not up[leaving[index]]:
                    continue
                above, down = target[leaving[index]], leaving[index] ^ 1
                if hops[above] < 0:
                    hops[above] = hops[switch] + 1
                    order[tail] = above
                    tail += 1
                    tree[place, above] = down
                elif hops[above] == hops[switch] + 1 and load[down] < load[tree[place, above]]:
                    tree[place, above] = down
        for switch in downward:
            if hops[switch] >= 0:
                continue
            best, fewest = -1, 0
            for index in range(start[switch], start[switch + 1]):
                channel = leaving[index]
                if not up[channel] or hops[target[channel]] < 0:
                    continue
                here = hops[target[channel]] + 1
                if best < 0 or here < fewest or (here == fewest and load[channel] < load[best]):
                    best, fewest = channel, here
            if best < 0:
                return tree, np.array([switch, end], dtype=np.int32)
            hops[switch] = fewest
            tree[place, switch] = best
            order[tail] = switch
            tail += 1
        through[:] = weight
        for index in range(switches - 1, 0, -1):
            switch = order[index]
            channel = tree[place, switch]
            load[channel] += through[switch] * weight[end]
            through[target[channel]] += through[switch]
    return tree, np.zeros(0, dtype=np.int32)
