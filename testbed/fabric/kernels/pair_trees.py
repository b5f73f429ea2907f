"""Paths of pairs, divided among trees."""

from __future__ import annotations

import numpy as np

from testbed.base.jit import jit_unless_small
from testbed.base.model import Bools, Ints, Longs
from testbed.fabric.kernels.vlans import find_root


@jit_unless_small
def fit_paths(start: Longs, hop: Ints, links: Ints, ends: Ints, switches: int, most: int) -> tuple[Bools, Ints]:
    """Put each path into the first tree in which its links make no loop.

    Args:
        start: (P + 1,) offset of the first channel of each path.
        hop: channels.
        links: (L, 2) the switches of each link.
        ends: (E,) switches that every tree must connect.
        switches: how many there are.
        most: trees; what fits into none of so many is put down for the last one, without its links.

    Returns:
        (T, L) links of each tree, and (P,) tree of each path.
    """
    paths, count = len(start) - 1, 0
    inside = np.zeros((8, len(links)), dtype=np.bool_)
    parent = np.empty((8, switches), dtype=np.int32)
    tree_of = np.zeros(paths, dtype=np.int32)
    trial = np.empty(switches, dtype=np.int32)
    for path in range(paths):
        if start[path] == start[path + 1]:
            continue
        for tree in range(count + 1):
            if tree == count == most:
                tree_of[path] = count - 1
                break
            if tree == count:
                if count == len(inside):
                    inside = np.concatenate((inside, np.zeros((count, len(links)), dtype=np.bool_)))
                    parent = np.concatenate((parent, np.empty((count, switches), dtype=np.int32)))
                for switch in range(switches):
                    parent[tree, switch] = switch
                count += 1
            trial[:] = parent[tree]
            fits = True
            for place in range(start[path], start[path + 1]):
                link = hop[place] // 2
                if inside[tree, link]:
                    continue
                a, b = find_root(trial, links[link, 0]), find_root(trial, links[link, 1])
                if a == b:
                    fits = False
                    break
                trial[a] = b
            if fits:
                parent[tree] = trial
                for place in range(start[path], start[path + 1]):
                    inside[tree, hop[place] // 2] = True
                tree_of[path] = tree
                break
    if count == 0:  # all hosts hang on one switch
        return np.zeros((1, len(links)), dtype=np.bool_), tree_of
    for tree in range(count):
        _complete(inside[tree], parent[tree], links, ends)
    return inside[:count].copy(), tree_of


@jit_unless_small
def _complete(inside: Bools, parent: Ints, links: Ints, ends: Ints) -> None:
    """Add links until a tree connects all ends, and take off again what leads to none."""
    for link in range(len(links)):
        a, b = find_root(parent, links[link, 0]), find_root(parent, links[link, 1])
        if a != b:
            parent[a] = b
            inside[link] = True
    degree = np.zeros(len(parent), dtype=np.int32)
    kept = np.zeros(len(parent), dtype=np.bool_)
    for end in ends:
        kept[end] = True
    for link in range(len(links)):
        if inside[link]:
            degree[links[link, 0]] += 1
            degree[links[link, 1]] += 1
    changed = True
    while changed:
        changed = False
        for link in range(len(links)):
            a, b = links[link, 0], links[link, 1]
            if inside[link] and ((degree[a] == 1 and not kept[a]) or (degree[b] == 1 and not kept[b])):
                inside[link] = False
                degree[a] -= 1
                degree[b] -= 1
                changed = True
