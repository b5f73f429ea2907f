"""Links that a grid has between its two halves."""

from __future__ import annotations

import math

from testbed.model import Topology


def bisection_links(topology: Topology) -> int | None:
    """Fewest links whose cut leaves two halves of the switches, one more in one half where their number is odd.

    Exact for a mesh of any sizes and for a torus without dimensions of size 2, whose rings are no rings (Aroca and
    Fernández Anta 2014, *Bisection (Band)Width of Product Networks*, section 4: the sum over the dimensions, largest
    first, up to the first of even size, of the product of all smaller ones; twice that for rings). None for any other
    fabric, where it is a hard problem, and for one with faults.
    """
    sizes = sorted((size for size in topology.sizes if size > 1), reverse=True)
    rings = topology.kind in ("torus", "ring") and any(size > 2 for size in sizes)
    if not topology.sizes or topology.faults or (rings and 2 in sizes):
        return None
    links = 0
    for place, size in enumerate(sizes):
        links += math.prod(sizes[place + 1 :])
        if size % 2 == 0:
            break
    return links * (2 if rings else 1) * topology.parallel_links
