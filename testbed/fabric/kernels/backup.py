"""A second path for each pair that shares no link with the first."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs
from testbed.fabric.kernels.turns import FAR, hops_to, reversed_graph


@jit_unless_small
def disjoint_paths(
    ends: Ints,
    first_start: Longs,
    first_hop: Ints,
    start: Longs,
    following: Ints,
    entry: Bools,
    leaving_start: Longs,
    leaving: Ints,
    arriving_start: Longs,
    arriving: Ints,
    channels: int,
) -> tuple[Longs, Ints]:
    """Shortest legal paths that share no link with those given; of several one over channels with little load.

    For each pair an A* search (Hart et al. 1968): the hops still to go, found once a destination without regard to
    the first path, are a bound that is never too large. Among virtual channels with the same sum of hops the last
    found is followed, so that a search without obstacle visits one path only, and of those found together the one
    whose channel has the fewest backup paths.

    `first_start` are (E·E + 1,) offsets into `first_hop`, the virtual channels of the paths to avoid; `leaving` and
    `arriving` are virtual channels too.

    Returns:
        (E·E + 1,) offsets and hops by (source, destination); a pair without such a path has no hop.
    """
    nodes = len(start) - 1
    count = len(ends)
    before_start, before = reversed_graph(start, following)
    distance = np.empty(nodes, dtype=np.int32)
    order = np.empty(nodes, dtype=np.int32)
    load = np.zeros(channels, dtype=np.int64)
    avoided = np.full(channels // 2 + 1, -1, dtype=np.int64)
    reached = np.full(nodes, -1, dtype=np.int64)  # pair whose search has found the virtual channel
    closed = np.full(nodes, -1, dtype=np.int64)
    hops_so_far = np.empty(nodes, dtype=np.int32)
    # What is found but not yet followed, in stacks by the sum of hops.
    most = len(following) + nodes
    node_of = np.empty(most, dtype=np.int32)
    came_from = np.empty(most, dtype=np.int32)
    below = np.empty(most, dtype=np.int32)
    top = np.full(2 * nodes + 2, -1, dtype=np.int32)
    length = np.zeros((count, count), dtype=np.int32)  # [source, destination]
    place = np.zeros((count, count), dtype=np.int64)
    pool = np.empty(max(2 * len(first_hop), 16), dtype=np.int32)
    filled = 0
    for end in range(count):
        switch = ends[end]
        own = arriving[arriving_start[switch] : arriving_start[switch + 1]]
        hops_to(switch, own, before_start, before, distance, order)
        for source in range(count):
            pair = source * count + end
            if source == end or first_start[pair] == first_start[pair + 1]:
                continue
            for index in range(first_start[pair], first_start[pair + 1]):
                avoided[first_hop[index] % channels // 2] = pair
            entries, at, cost = 0, -1, 0
            found, lowest, highest = -1, 2 * nodes + 1, -1
            while True:
                # Entries of the source first, then what may follow the virtual channel just closed.
                if at < 0:
                    low, high = leaving_start[ends[source]], leaving_start[ends[source] + 1]
                else:
                    low, high = start[node_of[at]], start[node_of[at] + 1]
                fresh = entries
                for index in range(low, high):
                    node = leaving[index] if at < 0 else following[index]
                    if at < 0 and not entry[node]:
                        continue
                    if distance[node] == FAR or closed[node] == pair or avoided[node % channels // 2] == pair:
                        continue
                    if reached[node] == pair and hops_so_far[node] <= cost + 1:
                        continue
                    reached[node] = pair
                    hops_so_far[node] = cost + 1
                    # The least loaded is put on top of the stacks, so it comes last.
                    slot = entries
                    while slot > fresh and (
                        load[node_of[slot - 1] % channels] < load[node % channels]
                        or (load[node_of[slot - 1] % channels] == load[node % channels] and node_of[slot - 1] < node)
                    ):
                        node_of[slot] = node_of[slot - 1]
                        slot -= 1
                    node_of[slot] = node
                    entries += 1
                for slot in range(fresh, entries):
                    came_from[slot] = at
                    total = cost + distance[node_of[slot]]
                    below[slot] = top[total]
                    top[total] = slot
                    lowest = min(lowest, total)
                    highest = max(highest, total)
                at = -1
                while lowest <= highest:
                    if top[lowest] < 0:
                        lowest += 1
                        continue
                    at = top[lowest]
                    top[lowest] = below[at]
                    if closed[node_of[at]] != pair:
                        break
                    at = -1
                if at < 0:
                    break
                closed[node_of[at]] = pair
                cost = hops_so_far[node_of[at]]
                if distance[node_of[at]] == 1:
                    found = at
                    break
            for total in range(lowest, highest + 1):
                top[total] = -1
            if found < 0:
                continue
            if filled + cost > len(pool):
                larger = np.empty(2 * (filled + cost), dtype=np.int32)
                larger[:filled] = pool[:filled]
                pool = larger
            place[source, end] = filled
            length[source, end] = cost
            at = found
            for step in range(filled + cost - 1, filled - 1, -1):
                pool[step] = node_of[at]
                load[node_of[at] % channels] += 1
                at = came_from[at]
            filled += cost
    offsets = np.zeros(count * count + 1, dtype=np.int64)
    for pair in range(count * count):
        offsets[pair + 1] = offsets[pair] + length[pair // count, pair % count]
    hops = np.empty(offsets[-1], dtype=np.int32)
    for source in range(count):
        for end in range(count):
            pair = source * count + end
            for step in range(length[source, end]):
                hops[offsets[pair] + step] = pool[place[source, end] + step]
    return offsets, hops
