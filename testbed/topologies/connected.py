"""Which switches a fabric's links hold together."""

from __future__ import annotations

import numpy as np

from testbed.model import Bools, Ints


def components(switch_count: int, links: Ints) -> tuple[Ints, Bools]:
    """Find the connected parts.

    Args:
        switch_count: S.
        links: (L, 2) ends.

    Returns:
        (S,) the lowest switch of each switch's part; (L,) True where a link closes a cycle with earlier ones, so
        that taking it out, alone, divides nothing.
    """
    lowest = list(range(switch_count))

    def find(switch: int) -> int:
        while lowest[switch] != switch:
            lowest[switch] = lowest[lowest[switch]]
            switch = lowest[switch]
        return switch

    closing = np.zeros(len(links), dtype=bool)
    for row, (a, b) in enumerate(links.tolist()):
        low, high = sorted((find(a), find(b)))
        closing[row] = low == high
        lowest[high] = low
    return np.array([find(switch) for switch in range(switch_count)], dtype=np.int32), closing


def divided_pair(switch_count: int, links: Ints) -> tuple[int, int] | None:
    """Two switches between which there is no path, or None."""
    part, _ = components(switch_count, links)
    others = np.flatnonzero(part != 0)
    return (0, int(others[0])) if len(others) else None
