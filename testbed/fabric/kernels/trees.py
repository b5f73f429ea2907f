"""Many trees at once, each an array of the channel that leads from a switch towards the root."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Floats, Ints, Longs

OFF_TREE = -1
LOOP = -2


@jit_unless_small
def depths(tree: Ints, toward_root: Ints, roots: Ints) -> Ints:
    """Hops from each switch to the root of each tree.

    Returns:
        (T, S) hops; OFF_TREE where the root is not reached, LOOP where a loop is.
    """
    trees, switches = tree.shape
    depth = np.full((trees, switches), -3, dtype=np.int32)
    chain = np.empty(switches + 1, dtype=np.int32)
    for t in range(trees):
        depth[t, roots[t]] = 0
        for start in range(switches):
            at, length = start, 0
            while depth[t, at] == -3:
                depth[t, at] = LOOP  # until its own is known
                chain[length] = at
                length += 1
                channel = tree[t, at]
                if channel < 0:
                    depth[t, at] = OFF_TREE
                    length -= 1
                    break
                at = toward_root[channel]
            below = depth[t, at]
            for step in range(length - 1, -1, -1):
                if below >= 0:
                    below += 1
                depth[t, chain[step]] = below
    return depth


@jit_unless_small
def by_depth(depth: Ints) -> Ints:
    """(S,) switches of one tree ordered by hops to the root, those off the tree first."""
    order = np.empty(len(depth), dtype=np.int32)
    deepest = 0
    for switch in range(len(depth)):
        deepest = max(deepest, depth[switch])
    place = np.zeros(deepest + 3, dtype=np.int32)
    for switch in range(len(depth)):
        place[max(depth[switch], -1) + 2] += 1
    for bucket in range(deepest + 2):
        place[bucket + 1] += place[bucket]
    for switch in range(len(depth)):
        bucket = max(depth[switch], -1) + 1
        order[place[bucket]] = switch
        place[bucket] += 1
    return order


@jit_unless_small
def channel_weights(
    tree: Ints, toward_root: Ints, depth: Ints, root_weight: Floats, switch_weight: Floats, channels: int
) -> Floats:
    """Sum over all trees and switches of root weight × switch weight on each channel between switch and root.

    `root_weight` is (T,), `switch_weight` (S,).

    Returns:
        (C,).
    """
    trees, switches = tree.shape
    load = np.zeros(channels)
    for t in range(trees):
        below = switch_weight.copy()
        order = by_depth(depth[t])
        for place in range(switches - 1, -1, -1):
            switch = order[place]
            if depth[t, switch] > 0:
                channel = tree[t, switch]
                load[channel] += root_weight[t] * below[switch]
                below[toward_root[channel]] += below[switch]
    return load


@jit_unless_small
def explicit(
    tree: Ints, toward_root: Ints, depth: Ints, ends: Ints, from_root: bool, trees_are_rows: bool
) -> tuple[Longs, Ints]:
    """Write every path between the root of a tree and an end switch down, hop by hop.

    Paths lead away from the root where `from_root`. The pair (tree, end) is row `tree * E + end` where
    `trees_are_rows`, else `end * T + tree`.

    Returns:
        (T·E + 1,) offsets and (N,) channels.
    """
    trees = len(tree)
    rows, columns = (trees, len(ends)) if trees_are_rows else (len(ends), trees)
    start = np.zeros(rows * columns + 1, dtype=np.int64)
    for row in range(rows):
        for column in range(columns):
            t, e = (row, column) if trees_are_rows else (column, row)
            hops = max(depth[t, ends[e]], 0)
            start[row * columns + column + 1] = start[row * columns + column] + hops
    hop = np.empty(start[-1], dtype=np.int32)
    for row in range(rows):
        for column in range(columns):
            t, e = (row, column) if trees_are_rows else (column, row)
            pair = row * columns + column
            at = ends[e]
            count = start[pair + 1] - start[pair]
            for step in range(count):
                channel = tree[t, at]
                hop[start[pair + 1] - 1 - step if from_root else start[pair] + step] = channel
                at = toward_root[channel]
    return start, hop
