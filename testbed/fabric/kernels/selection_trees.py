"""Legal source trees: one virtual channel of arrival for every switch, so that all paths of a source are legal.

The search grows a tree level by level. A virtual channel is alive while it may still become part of the tree: some
walk from the tree so far leads to it over alive ones. Taking one for a switch kills all others that enter that switch,
and whatever only they led to; where that would cut a switch off, the search turns back. Virtual channels have no cycle
of dependencies, so counting those that lead to each tells exactly which are alive.

Arguments named alike are the same in all functions:

    source, target    (N,) switch that a virtual channel leaves and enters
    needed            (S,) True for switches that the tree must reach
    alive             (N,)
    support           (N,) alive virtual channels that lead to each, and one more where a path may begin
    supply            (S,) alive virtual channels that enter each switch
    killed            (N,) virtual channels in the order of their death
    hosts             (E,) hosts of each end switch; the weight of a pair is the product
    channels          C; load counts on channels, all layers together
    remaining         (N,) what remaining_hops() returns
"""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit
from testbed.base.model import Bools, Ints, Longs
from testbed.fabric.kernels.selection import SelectionGraph, first_hops, hops_to_end
from testbed.fabric.kernels.turns import FAR

NONE, ROOT = -1, -2
# What is kept of every virtual channel taken, for turning back: itself, and how far each list had grown before.
_TAKEN, _KILLED, _PLACE, _OPTIONS, _REACHED, _LEVEL = 0, 1, 2, 3, 4, 5


@jit
def remaining_hops(
    graph: SelectionGraph,
    hosts: Longs,
    switches: int,
) -> Longs:
    """(N,) hops of the shortest paths from each virtual channel to all hosts, summed; S where there is no path."""
    nodes = len(graph.start) - 1
    distance = np.empty(nodes, dtype=np.int32)
    order = np.empty(nodes, dtype=np.int32)
    total = np.zeros(nodes, dtype=np.int64)
    for index in range(len(graph.ends)):
        hops_to_end(graph, index, distance, order)
        for node in range(nodes):
            total[node] += hosts[index] * (distance[node] if distance[node] < FAR else switches)
    return total


@jit
def _mark_active(
    root: int,
    start: Longs,
    following: Ints,
    entries: Ints,
    target: Ints,
    alive: Bools,
    support: Ints,
    supply: Ints,
    queue: Ints,
) -> None:
    """Bring every virtual channel to life that a walk from the root leads to, without coming back to the root."""
    alive[:] = False
    support[:] = 0
    supply[:] = 0
    tail = len(entries)
    queue[:tail] = entries
    for node in entries:
        alive[node] = True
        support[node] = 1
    head = 0
    while head < tail:
        node = queue[head]
        head += 1
        supply[target[node]] += 1
        for place in range(start[node], start[node + 1]):
            after = following[place]
            if target[after] == root:
                continue
            support[after] += 1
            if not alive[after]:
                alive[after] = True
                queue[tail] = after
                tail += 1


@jit
def _remove_channel(
    node: int, target: Ints, needed: Bools, alive: Bools, supply: Ints, killed: Ints, count: int
) -> int:
    """Kill a virtual channel; return the switch that this cuts off, or NONE."""
    alive[node] = False
    killed[count] = node
    switch = target[node]
    supply[switch] -= 1
    return switch if needed[switch] and supply[switch] == 0 else NONE


@jit
def _spread(
    root: int,
    start: Longs,
    following: Ints,
    target: Ints,
    needed: Bools,
    alive: Bools,
    support: Ints,
    supply: Ints,
    killed: Ints,
    done: int,
    count: int,
) -> tuple[int, int, int]:
    """Kill what only dead virtual channels lead to, until nothing is left to kill or a switch is cut off.

    Returns:
        how many of the dead have been looked at, how many there are, and the switch cut off or NONE.
    """
    cut_off = NONE
    while done < count and cut_off == NONE:
        for place in range(start[killed[done]], start[killed[done] + 1]):
            after = following[place]
            if target[after] == root:
                continue
            support[after] -= 1
            if alive[after] and support[after] == 0:
                cut_off = max(cut_off, _remove_channel(after, target, needed, alive, supply, killed, count))
                count += 1
        done += 1
    return done, count, cut_off


@jit
def _restore_channel(
    root: int,
    start: Longs,
    following: Ints,
    target: Ints,
    alive: Bools,
    support: Ints,
    supply: Ints,
    killed: Ints,
    done: int,
    count: int,
    kept: int,
) -> None:
    """Undo all deaths but the first `kept`; `done` and `count` are what _spread() returned."""
    for place in range(count - 1, kept - 1, -1):
        node = killed[place]
        alive[node] = True
        supply[target[node]] += 1
        if place < done:
            for follow in range(start[node], start[node + 1]):
                if target[following[follow]] != root:
                    support[following[follow]] += 1


@jit
def _by_preference(
    options: Ints, remaining: Longs, all_hosts: int, source: Ints, load: Longs, channels: int, bottleneck: Longs
) -> Ints:
    """Order virtual channels by the hops that remain, in half hops a host, then by the load of the bottleneck."""
    hops = np.empty(len(options), dtype=np.int64)
    worst = np.empty(len(options), dtype=np.int64)
    for place in range(len(options)):
        node = options[place]
        hops[place] = 2 * remaining[node] // all_hosts
        worst[place] = max(bottleneck[source[node]], load[node % channels])
    rank = np.argsort(worst, kind="mergesort")
    return options[rank[np.argsort(hops[rank], kind="mergesort")]]


@jit
def legal_trees(
    graph: SelectionGraph,
    hosts: Longs,
    source: Ints,
    target: Ints,
    channels: int,
    remaining: Longs,
    passes: int,
    patience: int,
) -> tuple[Ints, Ints]:
    """Find one tree of legal paths from every source to all ends.

    Of the virtual channels that lead one hop further the one from where least hops remain (in half hops a host) is
    taken first, then the one with the least loaded bottleneck on the path from the source.

    All sources are gone through `passes` times, from the second time on with the load of all others known. A source
    is given up after more than `patience` dead ends.

    Returns:
        (E, S) virtual channel by which the tree of each source enters each switch, NONE at its root and where it
        does not go; and, where there is no tree, [source index, a switch that is cut off, 1 if the search was
        given up and 0 if it has shown that there is none], else empty.
    """
    ends, start, following = graph.ends, graph.start, graph.following
    arriving_start, arriving = graph.arriving_start, graph.arriving
    nodes, switches, count = len(start) - 1, len(arriving_start) - 1, len(ends)
    tree = np.full((count, switches), NONE, dtype=np.int32)
    load = np.zeros(channels, dtype=np.int64)
    alive = np.zeros(nodes, dtype=np.bool_)
    support = np.zeros(nodes, dtype=np.int32)
    supply = np.zeros(switches, dtype=np.int32)
    needed = np.zeros(switches, dtype=np.bool_)
    needed[ends] = True
    of_switch = np.zeros(switches, dtype=np.int64)
    of_switch[ends] = hosts
    entered_by = np.full(switches, NONE, dtype=np.int32)
    bottleneck = np.zeros(switches, dtype=np.int64)
    options = np.empty(nodes, dtype=np.int32)  # level after level
    killed = np.empty(nodes, dtype=np.int32)
    reached = np.empty(switches, dtype=np.int32)  # level after level
    taken = np.empty((switches, 6), dtype=np.int64)
    below = np.zeros(switches, dtype=np.int64)
    for turn in range(count * passes):
        own, root = turn % count, ends[turn % count]
        if turn >= count:
            for end in range(count):
                at = ends[end]
                while at != root:
                    load[tree[own, at] % channels] -= hosts[own] * hosts[end]
                    at = source[tree[own, at]]
            tree[own] = NONE
        entries = first_hops(graph, own)
        _mark_active(root, start, following, entries, target, alive, support, supply, options)
        for switch in range(switches):
            if needed[switch] and switch != root and supply[switch] == 0:
                return tree, np.array([own, switch, 0], dtype=np.int32)
        entered_by[:] = NONE
        entered_by[root] = ROOT
        bottleneck[root] = 0
        reached[0] = root
        reached_count, level, option_count, now, killed_count, depth, dead_ends = 1, 0, 0, 0, 0, 0, 0
        while now < option_count or level < reached_count:
            if now == option_count:
                for place in range(level, reached_count):
                    switch = reached[place]
                    nexts = entries
                    if switch != root:
                        nexts = following[start[entered_by[switch]] : start[entered_by[switch] + 1]]
                    for node in nexts:
                        if alive[node] and entered_by[target[node]] == NONE:
                            options[option_count] = node
                            option_count += 1
                level = reached_count
                options[now:option_count] = _by_preference(
                    options[now:option_count], remaining, hosts.sum(), source, load, channels, bottleneck
                )
                continue
            node = options[now]
            now += 1
            switch = target[node]
            if not alive[node] or entered_by[switch] != NONE:
                continue
            taken[depth] = np.array([node, killed_count, now, option_count, reached_count, level])
            depth += 1
            entered_by[switch] = node
            bottleneck[switch] = max(bottleneck[source[node]], load[node % channels])
            reached[reached_count] = switch
            reached_count += 1
            done = killed_count
            for other in arriving[arriving_start[switch] : arriving_start[switch + 1]]:
                if other != node and alive[other]:
                    _remove_channel(other, target, needed, alive, supply, killed, killed_count)
                    killed_count += 1
            done, killed_count, cut_off = _spread(
                root, start, following, target, needed, alive, support, supply, killed, done, killed_count
            )
            while cut_off != NONE:
                if depth == 0 or dead_ends > patience:
                    return tree, np.array([own, cut_off, int(depth > 0)], dtype=np.int32)
                depth -= 1
                node = taken[depth, _TAKEN]
                kept = taken[depth, _KILLED]
                _restore_channel(
                    root, start, following, target, alive, support, supply, killed, done, killed_count, kept
                )
                done, killed_count = kept, kept
                now, option_count = taken[depth, _PLACE], taken[depth, _OPTIONS]
                reached_count, level = taken[depth, _REACHED], taken[depth, _LEVEL]
                entered_by[target[node]] = NONE
                cut_off = _remove_channel(node, target, needed, alive, supply, killed, killed_count)
                killed_count += 1
                if cut_off == NONE:
                    done, killed_count, cut_off = _spread(
                        root, start, following, target, needed, alive, support, supply, killed, done, killed_count
                    )
                # That a virtual channel cannot be taken is no dead end yet, but that it cannot be left out either is.
                dead_ends += cut_off != NONE
        below[:] = 0
        for place in range(reached_count - 1, 0, -1):
            switch = reached[place]
            tree[own, switch] = entered_by[switch]
            below[switch] += of_switch[switch]
            load[entered_by[switch] % channels] += below[switch] * hosts[own]
            below[source[entered_by[switch]]] += below[switch]
    return tree, np.empty(0, dtype=np.int32)
