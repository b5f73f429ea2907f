"""Hops between switches by the fewest links, whatever a routing does."""

from __future__ import annotations

import numpy as np

from testbed.kernels.jit import jit
from testbed.model import Ints, Longs


@jit
def from_switches(roots: Ints, start: Longs, leaving: Ints, target: Ints) -> Ints:
    """Walk the fabric breadth first from each root.

    `roots`: (R,) switches; `start`: (S + 1,) offsets into `leaving`.

    Returns:
        (R, S) hops; -1 beyond reach.
    """
    switches = len(start) - 1
    hops = np.full((len(roots), switches), -1, dtype=np.int32)
    order = np.empty(switches, dtype=np.int32)
    for r in range(len(roots)):
        row = hops[r]
        row[roots[r]] = 0
        order[0] = roots[r]
        head, tail = 0, 1
        while head < tail:
            switch = order[head]
            head += 1
            for index in range(start[switch], start[switch + 1]):
                neighbour = target[leaving[index]]
                if row[neighbour] < 0:
                    row[neighbour] = row[switch] + 1
                    order[tail] = neighbour
                    tail += 1
    return hops
