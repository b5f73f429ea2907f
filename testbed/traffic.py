"""Traffic patterns over hosts (Koibuchi 2003, section 5; Koibuchi 2011, section 5.3).

Hosts are numbered from 0. Pairs of a host with itself are left out: a host that a permutation maps to itself
is idle.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from testbed.model import Topology

Flows = tuple[tuple[int, int], ...]


class PatternError(ValueError):
    """A pattern that does not exist for this number of hosts; the text says what would be right."""


def flows(pattern: str, topology: Topology, seed: int) -> Flows:
    """Return the (source, destination) host pairs of a pattern.

    Raises:
        PatternError: the pattern needs another number of hosts.
        KeyError: no such pattern.
    """
    return tuple(pair for pair in PATTERNS[pattern](topology, seed) if pair[0] != pair[1])


def _address_bits(topology: Topology, pattern: str) -> int:
    bits = max(topology.host_count, 1).bit_length() - 1
    if topology.host_count != 1 << bits or bits == 0:
        raise PatternError(f'pattern "{pattern}" needs a power of two of hosts, not {topology.host_count}')
    return bits


def _neighbour(topology: Topology, seed: int) -> Flows:
    """Next switch in the first dimension, same place on it; without a grid the next host number."""
    del seed
    count = topology.host_count
    if not topology.sizes or topology.sizes[0] < 2:
        return tuple((host, (host + 1) % count) for host in range(count))
    size = topology.sizes[0]
    per_switch = count // topology.switch_count
    pairs = []
    for host in range(count):
        switch, place = divmod(host, per_switch)
        x = switch % size
        pairs.append((host, (switch - x + (x + 1) % size) * per_switch + place))
    return tuple(pairs)


def _all_to_all(topology: Topology, seed: int) -> Flows:
    """Every host to every other."""
    del seed
    hosts = range(topology.host_count)
    return tuple((source, destination) for source in hosts for destination in hosts)


def _bit_reversal(topology: Topology, seed: int) -> Flows:
    """Host a0 a1 … an to an … a1 a0."""
    del seed
    bits = _address_bits(topology, "bit_reversal")
    return tuple((host, int(format(host, f"0{bits}b")[::-1], 2)) for host in range(topology.host_count))


def _transpose(topology: Topology, seed: int) -> Flows:
    """(x, y) to (k-1-y, k-1-x), and to (k-1-x, k-1-y) where x + y = k-1; k·k hosts."""
    del seed
    k = math.isqrt(topology.host_count)
    if k * k != topology.host_count:
        raise PatternError(f'pattern "transpose" needs a square number of hosts, not {topology.host_count}')
    pairs = []
    for host in range(topology.host_count):
        y, x = divmod(host, k)
        to_x, to_y = (k - 1 - x, k - 1 - y) if x + y == k - 1 else (k - 1 - y, k - 1 - x)
        pairs.append((host, to_y * k + to_x))
    return tuple(pairs)


def _butterfly(topology: Topology, seed: int) -> Flows:
    """Swap the most and the least significant bit."""
    del seed
    top = 1 << (_address_bits(topology, "butterfly") - 1)
    pairs = []
    for host in range(topology.host_count):
        differ = bool(host & top) != bool(host & 1)
        pairs.append((host, host ^ top ^ 1 if differ else host))
    return tuple(pairs)


def _complement(topology: Topology, seed: int) -> Flows:
    """All bits of the host number inverted."""
    del seed
    mask = (1 << _address_bits(topology, "complement")) - 1
    return tuple((host, host ^ mask) for host in range(topology.host_count))


def _pairwise(topology: Topology, seed: int) -> Flows:
    """Random disjoint pairs, both directions; with an odd number one host is idle."""
    hosts = list(range(topology.host_count))
    random.Random(seed).shuffle(hosts)
    pairs = list(zip(hosts[::2], hosts[1::2], strict=False))
    return tuple(sorted(pairs + [(destination, source) for source, destination in pairs]))


def _uniform(topology: Topology, seed: int) -> Flows:
    """Every host to one other host, drawn independently and uniformly."""
    generator = random.Random(seed)
    count = topology.host_count
    if count < 2:
        return ()
    return tuple((host, (host + generator.randrange(1, count)) % count) for host in range(count))


PATTERNS: dict[str, Callable[[Topology, int], Flows]] = {
    "neighbour": _neighbour,
    "all_to_all": _all_to_all,
    "bit_reversal": _bit_reversal,
    "transpose": _transpose,
    "butterfly": _butterfly,
    "complement": _complement,
    "pairwise": _pairwise,
    "uniform": _uniform,
}
