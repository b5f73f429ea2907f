"""Shortest legal paths of every pair: how long, how many, and some or one of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testbed.base.jit import jit
from testbed.base.model import Floats, Ints, Longs
from testbed.fabric.kernels.turns import FAR, find_fewest_hops, hops_to


class SelectionGraph(NamedTuple):
    """Virtual channels, N of them, between E switches with hosts."""

    ends: Ints  # (E,) switches with hosts
    start: Longs  # (N + 1,) offsets into
    following: Ints  # virtual channels that may follow each
    first_start: Longs  # (S + 1,) offsets into
    first: Ints  # virtual channels by which a path may leave each switch first
    arriving_start: Longs  # (S + 1,) offsets into
    arriving: Ints  # virtual channels that enter each switch
    before_start: Longs  # (N + 1,) offsets into
    before: Ints  # virtual channels that may come before each


@jit
def hops_to_end(graph: SelectionGraph, end: int, distance: Ints, order: Ints) -> int:
    """As hops_to(), to the end switch of an index."""
    switch = graph.ends[end]
    own = graph.arriving[graph.arriving_start[switch] : graph.arriving_start[switch + 1]]
    return hops_to(switch, own, graph.before_start, graph.before, distance, order)


@jit
def first_hops(graph: SelectionGraph, source: int) -> Ints:
    """Virtual channels by which a path may leave the end switch of an index."""
    switch = graph.ends[source]
    return graph.first[graph.first_start[switch] : graph.first_start[switch + 1]]


@jit
def _count_ways(order: Ints, start: Longs, following: Ints, distance: Ints, ways: Floats) -> None:
    """Get (N,) the number of shortest paths from each virtual channel of `order`, nearest first, to the destination.

    Numbers are exact up to 2⁵³.
    """
    for hop in order:
        total = 0.0
        for index in range(start[hop], start[hop + 1]):
            after = following[index]
            if distance[after] == distance[hop] - 1:
                total += ways[after]
        ways[hop] = total if distance[hop] > 1 else 1.0


@jit
def _ways_by(options: Ints, wanted: int, distance: Ints, ways: Floats) -> float:
    """Number of shortest paths that begin with one of some options, `wanted` hops away."""
    total = 0.0
    for hop in options:
        if distance[hop] == wanted:
            total += ways[hop]
    return total


@jit
def _at_rank(options: Ints, wanted: int, distance: Ints, ways: Floats, rank: float) -> tuple[int, float]:
    """Find the option that the path of a rank goes by, and how many paths go by the options before it."""
    best, passed, total = -1, 0.0, 0.0
    for hop in options:
        if distance[hop] == wanted:
            best, passed = hop, total
            total += ways[hop]
            if rank < total:
                break
    return best, passed


@jit
def lengths_and_ways(
    graph: SelectionGraph,
    most: int,
) -> tuple[Ints, Ints, Ints]:
    """Hops of a shortest path of every pair, and how many shortest paths there are, up to `most`; 0: do not count.

    Returns:
        (E, E) hops and (E, E) paths by [source, destination], 0 on the diagonal; and the first pair without a path
        as [source index, destination index], empty if there is none.
    """
    start, following = graph.start, graph.following
    nodes, count = len(start) - 1, len(graph.ends)
    distance = np.empty(nodes, dtype=np.int32)
    order = np.empty(nodes, dtype=np.int32)
    ways = np.zeros(nodes, dtype=np.float64)
    length = np.zeros((count, count), dtype=np.int32)
    paths = np.zeros((count, count), dtype=np.int32)
    for end in range(count):
        reaching = order[: hops_to_end(graph, end, distance, order)]
        if most:
            _count_ways(reaching, start, following, distance, ways)
        for source in range(count):
            if source == end:
                continue
            options = first_hops(graph, source)
            fewest = find_fewest_hops(options, distance)
            if fewest == FAR:
                return length, paths, np.array([source, end], dtype=np.int32)
            length[source, end] = fewest
            if most:
                paths[source, end] = int(min(_ways_by(options, fewest, distance, ways), float(most)))
    return length, paths, np.empty(0, dtype=np.int32)


@jit
def ranked_paths(
    graph: SelectionGraph,
    rank: Ints,
    path_start: Longs,
) -> Ints:
    """Follow, from every source, the next hop of lowest rank among those that are one hop nearer.

    `rank` is (N,), no two alike that leave one switch.

    Returns:
        hops of all paths.
    """
    start, following = graph.start, graph.following
    nodes, count = len(start) - 1, len(graph.ends)
    distance = np.empty(nodes, dtype=np.int32)
    order = np.empty(nodes, dtype=np.int32)
    hops = np.empty(path_start[-1], dtype=np.int32)
    for end in range(count):
        hops_to_end(graph, end, distance, order)
        for source in range(count):
            pair = source * count + end
            options = first_hops(graph, source)
            for index in range(path_start[pair], path_start[pair + 1]):
                best = -1
                for hop in options:
                    if distance[hop] == path_start[pair + 1] - index and (best < 0 or rank[hop] < rank[best]):
                        best = hop
                hops[index] = best
                options = following[start[best] : start[best + 1]]
    return hops


@jit
def draw_paths(
    end: int,
    graph: SelectionGraph,
    path_start: Longs,
    draws: Floats,
    hops: Ints,
) -> None:
    """Draw a path from every source to the destination of index `end`, all shortest ones being equally likely.

    A next hop is drawn with the number of shortest paths that go by it as its weight. `draws` are numbers in [0, 1),
    one a hop, source by source; `hops` gets the hops of these paths.
    """
    start, following = graph.start, graph.following
    nodes, count = len(start) - 1, len(graph.ends)
    distance = np.empty(nodes, dtype=np.int32)
    order = np.empty(nodes, dtype=np.int32)
    ways = np.zeros(nodes, dtype=np.float64)
    reaching = order[: hops_to_end(graph, end, distance, order)]
    _count_ways(reaching, start, following, distance, ways)
    used = 0
    for source in range(count):
        pair = source * count + end
        options = first_hops(graph, source)
        for index in range(path_start[pair], path_start[pair + 1]):
            wanted = path_start[pair + 1] - index
            total = _ways_by(options, wanted, distance, ways)
            hops[index], _ = _at_rank(options, wanted, distance, ways, draws[used] * total)
            used += 1
            options = following[start[hops[index]] : start[hops[index] + 1]]


@jit
def candidate_paths(
    graph: SelectionGraph,
    length: Longs,
    wanted: Longs,
    base: Longs,
) -> Ints:
    """Write some shortest paths of every pair down: all, or as many as wanted in even steps through all of them.

    `length` is (E·E,) hops of each pair, `wanted` (E·E,) its candidates, `base` (E·E + 1,) the offset of the first
    hop of its first candidate; the others follow.

    Returns:
        hops of all candidates.
    """
    start, following = graph.start, graph.following
    nodes, count = len(start) - 1, len(graph.ends)
    distance = np.empty(nodes, dtype=np.int32)
    order = np.empty(nodes, dtype=np.int32)
    ways = np.zeros(nodes, dtype=np.float64)
    hops = np.empty(base[-1], dtype=np.int32)
    for end in range(count):
        reaching = order[: hops_to_end(graph, end, distance, order)]
        _count_ways(reaching, start, following, distance, ways)
        for source in range(count):
            pair = source * count + end
            place = base[pair]
            for candidate in range(wanted[pair]):
                options = first_hops(graph, source)
                total = _ways_by(options, length[pair], distance, ways)
                rank = np.floor(candidate * total / wanted[pair])
                for left in range(length[pair], 0, -1):
                    hop, passed = _at_rank(options, left, distance, ways, rank)
                    rank -= passed
                    hops[place] = hop
                    place += 1
                    options = following[start[hop] : start[hop + 1]]
    return hops
