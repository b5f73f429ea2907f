"""From explicit paths to a table of next hops, and the first place where no such table exists."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs

NEVER = -2
DELIVER = -1


@jit_unless_small
def next_hops(
    start: Longs, hop: Ints, source_class: Ints, channel_class: Ints, classes: int, destinations: int
) -> tuple[Ints, Ints]:
    """Fill the table (class, destination) → next hop that all paths together ask for.

    `start` are (A·B + 1,) offsets into `hop`, the virtual channels of the paths of A source and B destination keys;
    `source_class` is the (A,) class of frames that a source key sends, `channel_class` the (layers·C,) class of those
    that arrive by a virtual channel.

    Returns:
        (classes, B) next virtual channel, DELIVER or NEVER; and the first conflict as [class, destination key,
        next hop one path wants, next hop another wants, source key of that other, virtual channel of arrival or
        -1], empty if there is none.
    """
    table = np.full((classes, destinations), NEVER, dtype=np.int32)
    pair = 0
    for source in range(len(source_class)):
        for destination in range(destinations):
            here = source_class[source]
            arrived_by = -1
            for index in range(start[pair], start[pair + 1] + 1):
                following = hop[index] if index < start[pair + 1] else DELIVER
                known = table[here, destination]
                if known == NEVER:
                    table[here, destination] = following
                elif known != following:
                    return table, np.array([here, destination, known, following, source, arrived_by], dtype=np.int32)
                if following >= 0:
                    arrived_by = following
                    here = channel_class[following]
            pair += 1
    return table, np.empty(0, dtype=np.int32)


@jit_unless_small
def next_hops_of_trees(tree: Ints, root: Ints, ends: Ints, target: Ints) -> Ints:
    """The table (switch, tree) → next channel of destination trees, where frames from some end come.

    `tree` (T, S) has the channel by which frames leave each switch, `root` (T,) where they end.

    Returns:
        (S, T) channel, DELIVER or NEVER.
    """
    trees, switches = tree.shape
    table = np.full((switches, trees), NEVER, dtype=np.int32)
    for t in range(trees):
        table[root[t], t] = DELIVER
        for end in ends:
            at = end
            while table[at, t] == NEVER and tree[t, at] >= 0:
                table[at, t] = tree[t, at]
                at = target[tree[t, at]]
    return table


@jit_unless_small
def one_tree_a_source(
    start: Longs, hop: Ints, target: Ints, roots: Ints, destinations: int, switches: int
) -> tuple[Ints, Ints]:
    """Fill the tree of each source key, if its paths are one.

    Paths are as in next_hops(), of channels; `roots` is the (A,) switch of each source key; `destinations` is B,
    `switches` S.

    Returns:
        (A, S) channel by which the tree enters each switch or -1; and the first conflict as [source key, switch,
        channel or -2 at the root, other channel, destination key of the first, destination key of the other], empty
        if there is none.
    """
    sources = len(roots)
    tree = np.full((sources, switches), -1, dtype=np.int32)
    reaches = np.empty(switches, dtype=np.int32)
    pair = 0
    for source in range(sources):
        tree[source, roots[source]] = -2
        reaches[roots[source]] = 0
        for destination in range(destinations):
            for index in range(start[pair], start[pair + 1]):
                channel = hop[index]
                switch = target[channel]
                known = tree[source, switch]
                if known == -1:
                    tree[source, switch] = channel
                    reaches[switch] = destination
                elif known != channel:
                    return tree, np.array(
                        [source, switch, known, channel, reaches[switch], destination], dtype=np.int32
                    )
            pair += 1
        tree[source, roots[source]] = -1
    return tree, np.empty(0, dtype=np.int32)


@jit_unless_small
def conflicts(table: Ints, rows: Ints, never: int) -> Bools:
    """Compare rows pairwise.

    `table` is (N, D) next hop by row and destination, `rows` the (n,) rows to compare, `never` the value for a
    destination no frame comes for.

    Returns:
        (n, n) True where two rows want different next hops for some destination.
    """
    count = len(rows)
    found = np.zeros((count, count), dtype=np.bool_)
    for a in range(count):
        one = table[rows[a]]
        for b in range(a):
            other = table[rows[b]]
            for destination in range(table.shape[1]):
                if one[destination] != other[destination] and one[destination] != never and other[destination] != never:
                    found[a, b] = found[b, a] = True
                    break
    return found
