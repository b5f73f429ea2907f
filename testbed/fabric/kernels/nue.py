"""Destination trees found on the dependency graph itself, so that no cycle can ever form."""

from __future__ import annotations

import heapq

import numpy as np

from testbed.base.jit import jit
from testbed.base.model import Ints, Longs
from testbed.fabric.kernels.dependencies import BLOCKED, Dependencies, add_turn, no_dependencies, turn_of

ROOT = -1
UNREACHED = -2


@jit
def route_layer(
    destinations: Ints, hosts: Ints, source: Ints, target: Ints, arriving_start: Longs, arriving: Ints,
    before: Ints, after: Ints, up: Ints, load: Longs,
) -> tuple[Ints, int]:  # fmt: skip
    """One tree toward each destination of a layer.

    `destinations` are (D,) switches, in the order in which they are routed; switches without `hosts` (S,) may be left
    out of a tree; `up` is the (S,) channel toward the root of the tree of escape paths, -1 at the root; `load` are the
    (C,) host pairs on each channel, and grows.

    Returns:
        (D, S) channel by which a frame for the destination leaves each switch, negative at the destination and where
        the tree does not go; and how many of these had to be those of escape paths.
    """
    switches = len(hosts)
    graph = no_dependencies(len(source), before, after)
    tree = np.full((len(destinations), switches), UNREACHED, dtype=np.int32)
    escape = np.empty(switches, dtype=np.int32)
    for destination in destinations:
        escape_paths(destination, up, target, escape)
        for switch in range(switches):
            if escape[switch] >= 0 and target[escape[switch]] != destination:
                add_turn(graph, turn_of(graph.start, after, escape[switch], escape[target[escape[switch]]]))
    hops = np.empty(switches, dtype=np.int64)
    weight = np.empty(switches, dtype=np.int64)
    forced = 0
    for row in range(len(destinations)):
        destination, way = destinations[row], tree[row]
        escape_paths(destination, up, target, escape)
        way[destination] = ROOT
        hops[destination] = weight[destination] = 0
        candidates = [(np.int64(0), np.int64(0), np.int64(0))]
        candidates.pop()  # an empty list of known type
        _offer(candidates, destination, way, hops, weight, load, source, arriving_start, arriving, graph)
        while True:
            while candidates:
                length, sum_of_load, channel = heapq.heappop(candidates)
                switch = source[channel]
                if way[switch] != UNREACHED:
                    continue
                # The next switch may have been forced off the channel that it had when it made the offer.
                following = way[target[channel]]
                if following != ROOT and not _fits(graph, int(channel), int(following)):
                    continue
                way[switch] = channel
                hops[switch], weight[switch] = length, sum_of_load
                _offer(candidates, switch, way, hops, weight, load, source, arriving_start, arriving, graph)
            lost = first_lost(way, hosts)
            if lost < 0:
                break
            changed = force(lost, destination, way, escape, source, target, arriving_start, arriving, graph)
            forced += len(changed)
            for switch in changed:
                hops[switch] = weight[switch] = 0
                at = switch
                while at != destination:
                    hops[switch] += 1
                    weight[switch] += load[way[at]]
                    at = target[way[at]]
            for switch in changed:
                _offer(candidates, switch, way, hops, weight, load, source, arriving_start, arriving, graph)
        for switch in range(switches):
            at = switch
            while hosts[switch] and at != destination:
                load[way[at]] += hosts[switch] * hosts[destination]
                at = target[way[at]]
    return tree, forced


@jit
def escape_paths(destination: int, up: Ints, target: Ints, escape: Ints) -> None:
    """Turn the tree of escape paths toward a destination: fill `escape` (S,), -1 at the destination."""
    escape[:] = up
    escape[destination] = -1
    at = destination
    while up[at] >= 0:
        escape[target[up[at]]] = up[at] ^ 1
        at = target[up[at]]


@jit
def _offer(
    candidates: list[tuple[np.int64, np.int64, np.int64]], switch: int, way: Ints, hops: Longs, weight: Longs,
    load: Longs, source: Ints, arriving_start: Longs, arriving: Ints, graph: Dependencies,
) -> None:  # fmt: skip
    """Let the neighbours that have no way yet come to a switch: push (hops, sum of load, channel)."""
    for index in range(arriving_start[switch], arriving_start[switch + 1]):
        channel = arriving[index]
        if way[source[channel]] != UNREACHED:
            continue
        if way[switch] != ROOT:
            turn = turn_of(graph.start, graph.after, channel, way[switch])
            if turn < 0 or graph.state[turn] == BLOCKED:
                continue
        heapq.heappush(candidates, (hops[switch] + 1, weight[switch] + load[channel], np.int64(channel)))


@jit
def first_lost(way: Ints, hosts: Ints) -> int:
    """The first switch that has hosts and no way; -1 if there is none."""
    for switch in range(len(way)):
        if way[switch] == UNREACHED and hosts[switch]:
            return switch
    return -1


@jit
def force(
    lost: int, destination: int, way: Ints, escape: Ints, source: Ints, target: Ints,
    arriving_start: Longs, arriving: Ints, graph: Dependencies,
) -> Ints:  # fmt: skip
    """Put a switch on its escape path, and those after it on that path until a turn to a way they have fits.

    Turns between escape channels are in the graph from the start, so the path can always be followed to its end. A
    switch on it gives up its channel c for its escape channel e where the turn to c closes a cycle or goes back by the
    same link. In both cases the graph leads from c to e already, so what came to the switch and went on by c can go on
    by e: that closes no cycle. As every two channels that follow each other on a way stay a turn of the graph, no way
    comes back to where it was.

    Returns:
        (F,) switches that changed.
    """
    changed = np.empty(len(way), dtype=np.int32)
    count, switch = 0, lost
    while True:
        way[switch] = escape[switch]
        changed[count] = switch
        count += 1
        for index in range(arriving_start[switch], arriving_start[switch + 1]):
            if way[source[arriving[index]]] == arriving[index]:
                _fits(graph, int(arriving[index]), int(way[switch]))
        nearer = target[way[switch]]
        if nearer == destination or way[nearer] == escape[nearer]:
            break
        if way[nearer] != UNREACHED and _fits(graph, int(way[switch]), int(way[nearer])):
            break
        switch = nearer
    return changed[:count]


@jit
def _fits(graph: Dependencies, first: int, second: int) -> bool:
    """Put the turn between two channels into the graph if that can be done; say whether it is in now."""
    turn = turn_of(graph.start, graph.after, first, second)
    if turn < 0 or graph.state[turn] == BLOCKED:
        return False
    if add_turn(graph, turn):
        return True
    graph.state[turn] = BLOCKED
    return False
