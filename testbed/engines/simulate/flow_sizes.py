"""How large flows are: published distributions, drawn by linear interpolation of their cumulative shares."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from testbed.base.errors import InputError, argument, did_you_mean
from testbed.base.model import Floats, Longs

_FIXED = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(B|[kKMG]i?B?)?")
_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}
_MOST = 1 << 40  # bytes of a flow


@dataclass(frozen=True, slots=True)
class SizeDistribution:
    """Sizes of flows."""

    name: str  # as it is asked for
    source: str  # where it was published
    points: tuple[tuple[float, float], ...]  # (bytes, percent of flows up to that size), both ascending

    @property
    def mean(self) -> float:
        """Bytes of a flow, on average."""
        size, share = np.array(self.points).T
        return float((np.diff(share) * (size[1:] + size[:-1]) / 2).sum() / 100)

    def draw(self, uniform: Floats) -> Longs:
        """(F,) bytes of flows, one or more, by numbers from 0 to 1."""
        size, share = np.array(self.points).T
        found: Longs = np.maximum(np.rint(np.interp(100 * uniform, share, size)), 1).astype(np.int64)
        return found


# As their cumulative shares are given with the simulator of Li et al., HPCC, SIGCOMM 2019.
DISTRIBUTIONS = {
    "web_search": SizeDistribution(
        "web_search",
        "Alizadeh et al., Data Center TCP, SIGCOMM 2010, figure 4",
        (
            (0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60),
            (1_000_000, 70), (2_000_000, 80), (5_000_000, 90), (10_000_000, 97), (30_000_000, 100),
        ),
    ),
    "hadoop": SizeDistribution(
        "hadoop",
        "Roy et al., Inside the Social Network's (Datacenter) Network, SIGCOMM 2015, figure 6",
        (
            (0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40), (700, 50), (1_000, 60),
            (2_000, 67), (7_000, 70), (30_000, 72), (50_000, 82), (80_000, 87), (120_000, 90), (300_000, 95),
            (1_000_000, 97.5), (2_000_000, 99), (10_000_000, 100),
        ),
    ),
}  # fmt: skip


def find_sizes(text: str) -> SizeDistribution:
    """A distribution by its name, or one size for all flows, such as 65536, 100kB or 2MB.

    Raises:
        InputError: neither a name nor a size.
    """
    word = text.strip()
    if word in DISTRIBUTIONS:
        return DISTRIBUTIONS[word]
    found = _FIXED.fullmatch(word)
    if found is None:
        sentence = (
            f'should be {", ".join(DISTRIBUTIONS)}, or a size such as 65536 or 2MB, not "{text}".'
            f"{did_you_mean(word, DISTRIBUTIONS)}"
        )
        raise InputError.one(argument("sizes"), sentence)
    unit = (found[2] or "").rstrip("B").upper()
    size = round(float(found[1]) * _UNITS[unit])
    if not 1 <= size <= _MOST:
        raise InputError.one(argument("sizes"), f"should be from 1 byte to 2^40, not {text}")
    return SizeDistribution(word, "one size", ((size, 0), (size, 100)))
