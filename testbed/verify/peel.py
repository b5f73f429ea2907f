"""Graphs without cycles are found by taking away their ends until nothing is left; numpy, one round for all ends."""

from __future__ import annotations

import numpy as np

from testbed.model import Bools, Ints


def peel_leaves(ends: Ints, nodes: int) -> Bools:
    """Take away edges at nodes of degree 1, again and again.

    Args:
        ends: (E, 2) the two nodes of each edge of an undirected graph.
        nodes: number of nodes.

    Returns:
        (E,) True for the edges that stay; all False exactly for a forest.
    """
    stays: Bools = np.ones(len(ends), dtype=bool)
    while stays.any():
        degree = np.bincount(ends[stays].reshape(-1), minlength=nodes)
        inner = stays & (degree[ends] > 1).all(axis=1)
        if (inner == stays).all():
            break
        stays = inner
    return stays


def peel_sources_and_sinks(pairs: Ints, nodes: int) -> Ints:
    """Take away edges from nodes nothing leads to, and to nodes nothing leaves, again and again.

    Args:
        pairs: (D, 2) directed edges.
        nodes: number of nodes.

    Returns:
        (R, 2) the edges that stay; none exactly for an acyclic graph.
    """
    while len(pairs):
        entered, left = (np.bincount(pairs[:, column], minlength=nodes) > 0 for column in (1, 0))
        inner = entered[pairs[:, 0]] & left[pairs[:, 1]]
        if inner.all():
            break
        pairs = pairs[inner]
    return pairs
