"""Shortest legal paths on a graph of virtual channels, for one destination at a time.

A legal path is a walk on that graph, so distances are between virtual channels and never between switches.
"""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs

FAR = 1 << 30
# The second pass takes a twentieth off the greatest load of random networks; a third one would take nothing more.
_PASSES = 2


@jit_unless_small
def reversed_graph(start: Longs, following: Ints) -> tuple[Longs, Ints]:
    """(N + 1,) offsets and predecessors of a graph given by its followers."""
    nodes = len(start) - 1
    before_start = np.zeros(nodes + 1, dtype=np.int64)
    for after in following:
        before_start[after + 1] += 1
    for node in range(nodes):
        before_start[node + 1] += before_start[node]
    place = before_start[:-1].copy()
    before = np.empty(len(following), dtype=np.int32)
    for node in range(nodes):
        for index in range(start[node], start[node + 1]):
            after = following[index]
            before[place[after]] = node
            place[after] += 1
    return before_start, before


@jit_unless_small
def hops_to(destination: int, arriving: Ints, before_start: Longs, before: Ints, distance: Ints, order: Ints) -> int:
    """Hops from each virtual channel to a switch, its own included, by breadth first search backward.

    `arriving` are those that enter it. `distance` (N,) gets the hops, FAR where there is no way; `order` (N,) the
    virtual channels in the order of reaching, nearest first.

    Returns:
        number of virtual channels that reach the destination.
    """
    distance[:] = FAR
    tail = 0
    for channel in arriving:
        distance[channel] = 1
        order[tail] = channel
        tail += 1
    head = 0
    while head < tail:
        channel = order[head]
        head += 1
        for index in range(before_start[channel], before_start[channel + 1]):
            earlier = before[index]
            if distance[earlier] == FAR:
                distance[earlier] = distance[channel] + 1
                order[tail] = earlier
                tail += 1
    return tail


@jit_unless_small
def may_begin(entry: Bools, leaving_start: Longs, leaving: Ints) -> tuple[Longs, Ints]:
    """(S + 1,) offsets and virtual channels by which a path may leave each switch first, in the order given."""
    start = np.zeros_like(leaving_start)
    first = np.empty_like(leaving)
    count = 0
    for switch in range(len(leaving_start) - 1):
        for index in range(leaving_start[switch], leaving_start[switch + 1]):
            if entry[leaving[index]]:
                first[count] = leaving[index]
                count += 1
        start[switch + 1] = count
    return start, first[:count]


@jit_unless_small
def find_fewest_hops(options: Ints, distance: Ints) -> int:
    """Hops by the shortest of some ways; FAR if none leads there."""
    fewest = FAR
    for hop in options:
        fewest = min(fewest, distance[hop])
    return fewest


@jit_unless_small
def _bottlenecks(
    order: Ints, start: Longs, following: Ints, distance: Ints, load: Longs, channels: int, ahead: Longs
) -> None:
    """Least load that the most loaded channel can have on a shortest way from each virtual channel, its own included.

    `order` has those that reach the destination, nearest first; `distance` (N,) is in hops; `load` is (C,); `ahead`
    (N,) gets the loads.
    """
    for hop in order:
        least = -1
        for index in range(start[hop], start[hop + 1]):
            after = following[index]
            if distance[after] == distance[hop] - 1 and (least < 0 or ahead[after] < least):
                least = ahead[after]
        ahead[hop] = max(least, load[hop % channels])


@jit_unless_small
def _least_loaded(
    options: Ints, wanted: int, distance: Ints, load: Longs, channels: int, through: Longs, ahead: Longs
) -> int:
    """Of the options `wanted` hops away that whose way has the least bottleneck, then load, then number."""
    best, worst, least = -1, 0, 0
    for hop in options:
        if distance[hop] != wanted:
            continue
        here = load[hop % channels] + through[hop]
        bottleneck = max(here, ahead[hop])
        if best < 0 or bottleneck < worst or (bottleneck == worst and (here < least or (here == least and hop < best))):
            best, worst, least = hop, bottleneck, here
    return best


@jit_unless_small
def _take_out(order: Ints, distance: Ints, chosen: Ints, channels: int, through: Longs, load: Longs) -> None:
    """Subtract the paths to one destination; `through` holds those that begin with a virtual channel."""
    for place in range(len(order) - 1, -1, -1):
        hop = order[place]
        if through[hop]:
            load[hop % channels] -= through[hop]
            if distance[hop] > 1:
                through[chosen[hop]] += through[hop]


@jit_unless_small
def consistent_paths(
    ends: Ints,
    hosts: Ints,
    start: Longs,
    following: Ints,
    entry: Bools,
    leaving_start: Longs,
    leaving: Ints,
    arriving_start: Longs,
    arriving: Ints,
    channels: int,
    turns: Ints,
) -> tuple[Longs, Ints, Ints]:
    """Choose one shortest legal path a pair so that each virtual channel has one next hop a destination.

    Destinations are taken in the given order, then once more with the load of all others known. For each, virtual
    channels are visited from the farthest to the nearest, so that the number of paths through one is known when its
    next hop is chosen: among those one hop nearer the one from where the most loaded channel ahead has least load.

    The weight of a pair is the product of its hosts. `leaving` and `arriving` are virtual channels; load counts on
    channels, all layers together; `turns` (E,) is the order in which destinations are taken, as indices into `ends`.

    Returns:
        (E·E + 1,) offsets and (M,) hops of the paths by (source, destination), and the first pair without a path
        as [source index, destination index], empty if there is none.
    """
    nodes = len(start) - 1
    count = len(ends)
    before_start, before = reversed_graph(start, following)
    first_start, may_be_first = may_begin(entry, leaving_start, leaving)
    load = np.zeros(channels, dtype=np.int64)
    distance = np.empty(nodes, dtype=np.int32)
    order = np.empty(nodes, dtype=np.int32)
    through = np.zeros(nodes, dtype=np.int64)
    ahead = np.zeros(nodes, dtype=np.int64)
    first = np.full((count, count), -1, dtype=np.int32)  # [destination, source] first hop
    chosen = np.full((count, nodes), -1, dtype=np.int32)  # [destination, virtual channel] next hop
    length = np.zeros((count, count), dtype=np.int32)  # [source, destination]
    for again in range(_PASSES):
        for turn in turns:
            switch = ends[turn]
            own = arriving[arriving_start[switch] : arriving_start[switch + 1]]
            reaching = order[: hops_to(switch, own, before_start, before, distance, order)]
            through[:] = 0
            if again:
                for source in range(count):
                    if source != turn:
                        through[first[turn, source]] += hosts[source] * hosts[turn]
                _take_out(reaching, distance, chosen[turn], channels, through, load)
                through[:] = 0
            _bottlenecks(reaching, start, following, distance, load, channels, ahead)
            for source in range(count):
                if source == turn:
                    continue
                options = may_be_first[first_start[ends[source]] : first_start[ends[source] + 1]]
                fewest = find_fewest_hops(options, distance)
                if fewest == FAR:
                    return (
                        np.empty(0, dtype=np.int64),
                        np.empty(0, dtype=np.int32),
                        np.array([source, turn], dtype=np.int32),
                    )
                best = _least_loaded(options, fewest, distance, load, channels, through, ahead)
                first[turn, source] = best
                through[best] += hosts[source] * hosts[turn]
                length[source, turn] = fewest
            for place in range(len(reaching) - 1, -1, -1):
                hop = reaching[place]
                if through[hop] == 0:
                    continue
                load[hop % channels] += through[hop]
                if distance[hop] == 1:
                    continue
                options = following[start[hop] : start[hop + 1]]
                best = _least_loaded(options, distance[hop] - 1, distance, load, channels, through, ahead)
                chosen[turn, hop] = best
                through[best] += through[hop]
    offsets = np.zeros(count * count + 1, dtype=np.int64)
    for source in range(count):
        for end in range(count):
            pair = source * count + end
            offsets[pair + 1] = offsets[pair] + length[source, end]
    hops = np.empty(offsets[-1], dtype=np.int32)
    for end in range(count):  # one row of next hops at a time stays in the cache
        for source in range(count):
            pair = source * count + end
            if length[source, end]:
                hop = first[end, source]
                for index in range(offsets[pair], offsets[pair + 1]):
                    hops[index] = hop
                    hop = chosen[end, hop]
    return offsets, hops, np.empty(0, dtype=np.int32)
