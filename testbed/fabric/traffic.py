"""Traffic patterns over hosts (Koibuchi 2003, section 5; Koibuchi 2011, section 5.3).

Hosts are numbered from 0. Pairs of a host with itself are left out: a host that a permutation maps to itself
is idle.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from testbed.base.errors import did_you_mean
from testbed.base.model import Topology
from testbed.base.synonyms import find_looked_for

Flows = tuple[tuple[int, int], ...]


class PatternError(ValueError):
    """A pattern that does not exist for this number of hosts; the text says what would be right."""


def flows(pattern: str, topology: Topology, seed: int, *, amounts: bool = False) -> Flows:
    """Return the (source, destination) host pairs of a pattern.

    `amounts` says that the caller asks weights() what each pair sends.

    Raises:
        PatternError: the pattern needs another number of hosts, or names one that there is not, or gives pairs amounts
            that the caller would not hear of.
        KeyError: no such pattern.
    """
    name, colon, parameter = pattern.partition(":")
    if is_weighted(pattern) and not amounts:
        raise PatternError(
            f'"{pattern}" gives pairs amounts, which only loads of UDP (kind iperf3) keep; leave them out'
        )
    made = FAMILIES[name].make(topology, parameter) if colon else PATTERNS[pattern](topology, seed)
    return tuple(pair for pair in made if pair[0] != pair[1])


def weights(pattern: str, topology: Topology) -> dict[tuple[int, int], float] | None:
    """How much each pair of a pattern sends beside the others; None = all of them as much as they can.

    Raises:
        PatternError: as for flows().
    """
    name, _, parameter = pattern.partition(":")
    if name != "pairs" or "*" not in parameter:
        return None
    amounts = (float(pair.partition("*")[2] or 1) for pair in parameter.split(","))
    return dict(zip(_pairs(topology, parameter), amounts, strict=True))


def is_weighted(pattern: str | None) -> bool:
    """Whether the pairs of a pattern send different amounts."""
    return pattern is not None and pattern.startswith("pairs:") and "*" in pattern


def is_pattern(pattern: str) -> bool:
    """Whether there is a pattern of that name, or of that name and parameter."""
    name, colon, parameter = pattern.partition(":")
    return name in FAMILIES and bool(parameter) if colon else pattern in PATTERNS


def pattern_names() -> list[str]:
    """Every pattern, those with a parameter with an example of it."""
    return [*PATTERNS, *(family.example for family in FAMILIES.values())]


def no_pattern(pattern: str, without: str = "") -> str:
    """The sentence for a name that is no pattern's; `without` is one that is no good either."""
    name = pattern.partition(":")[0]
    if name in FAMILIES:
        return f'"{pattern}" needs a parameter, such as {FAMILIES[name].example}: {FAMILIES[name].summary}'
    known = [name for name in pattern_names() if name != without]
    every = [*PATTERNS, *FAMILIES]
    meant = find_looked_for(pattern, every) or did_you_mean(pattern, every)
    return f'there is no pattern "{pattern}".{meant} Known: {", ".join(known)}'


_LONGEST_LABEL = 32


def pattern_label(pattern: str) -> str:
    """A pattern in a few words, fit for names of files: pairs by their number where they are many."""
    count = pattern.count(",") + 1
    return pattern if len(pattern) <= _LONGEST_LABEL else f"{pattern.partition(':')[0]}-of-{count}"


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


def _tornado(topology: Topology, seed: int) -> Flows:
    """Half of the way round in each dimension, less one: the worst of a torus; without a grid of the host numbers."""
    del seed
    sizes, count = topology.sizes or (topology.host_count,), topology.host_count
    per_switch = count // topology.switch_count if topology.sizes else 1
    pairs = []
    for host in range(count):
        rest, place = divmod(host, per_switch)
        to, stride = 0, 1
        for size in sizes:
            rest, at = divmod(rest, size)
            to, stride = to + (at + (size + 1) // 2 - 1) % size * stride, stride * size
        pairs.append((host, to * per_switch + place))
    return tuple(pairs)


PATTERNS: dict[str, Callable[[Topology, int], Flows]] = {
    "neighbour": _neighbour,
    "all_to_all": _all_to_all,
    "bit_reversal": _bit_reversal,
    "transpose": _transpose,
    "butterfly": _butterfly,
    "complement": _complement,
    "pairwise": _pairwise,
    "uniform": _uniform,
    "tornado": _tornado,
}


def _host(topology: Topology, name: str) -> int:
    names = [topology.host_name(host) for host in range(topology.host_count)]
    if name in names:
        return names.index(name)
    raise PatternError(f'there is no host "{name}" for the pattern.{did_you_mean(name, names)}')


def _hotspot(topology: Topology, parameter: str) -> Flows:
    goal = _host(topology, parameter)
    return tuple((host, goal) for host in range(topology.host_count))


def _shift(topology: Topology, parameter: str) -> Flows:
    count = topology.host_count
    if not parameter.removeprefix("-").isdecimal() or int(parameter) % max(count, 1) == 0:
        raise PatternError(f'"shift:{parameter}" should have a whole number that is no multiple of the {count} hosts')
    return tuple((host, (host + int(parameter)) % count) for host in range(count))


def _pairs(topology: Topology, parameter: str) -> Flows:
    found = []
    for pair in parameter.split(","):
        ends, times, amount = pair.strip().partition("*")
        source, arrow, destination = ends.partition(">")
        if times and not (amount.isdecimal() and amount.strip("0")):
            raise PatternError(f'"{pair}" should have a whole number above 0 behind the *, as in pairs:h1>h5*3,h2>h6')
        if not arrow:
            raise PatternError(f'"{pair}" is no pair; write pairs as in pairs:h1>h5,h2>h6')
        one, other = _host(topology, source.strip()), _host(topology, destination.strip())
        if one == other:
            raise PatternError(f'"{pair}" is a host and itself; a pair has two hosts')
        if (one, other) in found:
            raise PatternError(f'"{pair}" is listed twice; a pair has one flow')
        found.append((one, other))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Family:
    """Patterns with a parameter, written behind a colon."""

    make: Callable[[Topology, str], Flows]  # the pairs; raises PatternError
    example: str  # one of them
    summary: str  # one line


FAMILIES: dict[str, Family] = {
    "hotspot": Family(_hotspot, "hotspot:h5", "every host to one host"),
    "shift": Family(_shift, "shift:4", "every host to the one that many numbers on"),
    "pairs": Family(
        _pairs,
        "pairs:h1>h5",
        "the pairs that are listed, with commas between; h1>h5*3 sends three times as much as others",
    ),
}


def pairs_pattern(pairs: list[tuple[str, str]], amounts: Sequence[int] = ()) -> str:
    """The pattern of pairs of host names, with the amount of each where they differ."""
    differ = len(set(amounts)) > 1
    parts = [f"*{amount}" for amount in amounts] if differ else [""] * len(pairs)
    return f"pairs:{','.join(f'{one}>{other}{part}' for (one, other), part in zip(pairs, parts, strict=True))}"
