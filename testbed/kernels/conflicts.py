"""Rows of a forwarding table that cannot share one table."""

from __future__ import annotations

import numpy as np

from testbed.kernels.jit import jit
from testbed.model import Bools, Ints


@jit
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
