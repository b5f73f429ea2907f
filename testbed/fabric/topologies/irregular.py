"""Random regular graphs: the irregular networks of the routing papers, and Jellyfish (Singla et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from testbed.base.errors import Problem
from testbed.base.model import Ints, Topology
from testbed.fabric.topologies.build_topology import Extent, components, make_topology, on_circle

Pairs = npt.NDArray[np.int64]  # (L, 2), or (L,) where a pair is one number

SEED = {"wanted": "a whole number such as seed: 1, from which the links are drawn"}
# Exchanges offered to each link. Of the sparser of a graph and its complement a quarter or more are taken.
_ROUNDS = 24


@dataclass(frozen=True, slots=True)
class RandomRegular:
    """Connected, drawn at random, every switch with `degree` single links to others.

    Where switches and degree are both odd that cannot be: then the last switch has one link fewer.
    """

    switches: Annotated[int, Ge(2)]  # number of switches
    degree: Annotated[int, Ge(1)]  # links of each switch
    seed: Annotated[int, Ge(0)] = field(metadata=SEED)  # of the drawing
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return Extent(self.switches, self.switches * self.degree // 2, self.switches * self.hosts_per_switch)


@dataclass(frozen=True, slots=True)
class Jellyfish:
    """`random`, given the ports of a switch: its degree is those without a host (Singla et al. 2012, section 3)."""

    switches: Annotated[int, Ge(2)]  # number of switches
    ports: Annotated[int, Ge(1)]  # of each switch, those of hosts included
    hosts_per_switch: Annotated[int, Ge(0)]  # hosts on each switch
    seed: Annotated[int, Ge(0)] = field(metadata=SEED)  # of the drawing

    @property
    def degree(self) -> int:
        """Ports of a switch that lead to other switches."""
        return self.ports - self.hosts_per_switch

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return Extent(self.switches, self.switches * max(self.degree, 0) // 2, self.switches * self.hosts_per_switch)


def check_random(spec: RandomRegular) -> list[Problem]:
    """Name a degree that no connected graph of so many switches has."""
    sentence = _degree_problem(spec.switches, spec.degree)
    return [Problem("degree", f"{sentence}, not {spec.degree}")] if sentence else []


def check_jellyfish(spec: Jellyfish) -> list[Problem]:
    """Name ports that leave a degree that no connected graph of so many switches has."""
    left = f"{spec.ports} ports less {spec.hosts_per_switch} hosts leave {spec.degree} for links"
    if spec.degree < 1:
        return [Problem("ports", f"{left}; a switch needs 1 or more")]
    sentence = _degree_problem(spec.switches, spec.degree)
    return [Problem("ports", f"{left}, which {sentence}")] if sentence else []


def _degree_problem(switches: int, degree: int) -> str | None:
    if degree >= switches:
        return f"should be {switches - 1} or less, as {switches} switches are linked by single links"
    if degree == 1 and switches > 2:
        return f"should be 2 or more, as {switches} switches with one link each are not connected"
    return None


def random_regular(spec: RandomRegular) -> Topology:
    """Draw the links."""
    return _build_regular("random", spec)


def jellyfish(spec: Jellyfish) -> Topology:
    """Draw the links."""
    return _build_regular("jellyfish", spec)


def _build_regular(kind: str, spec: RandomRegular | Jellyfish) -> Topology:
    links = regular_graph(spec.switches, spec.degree, spec.seed)
    hosts = [spec.hosts_per_switch] * spec.switches
    return make_topology(kind, [(a, b) for a, b in links.tolist()], hosts, on_circle(spec.switches))


def regular_graph(switches: int, degree: int, seed: int) -> Ints:
    """Draw a connected simple regular graph.

    A regular graph is mixed by exchanging the ends of random pairs of links, which keeps all degrees, a fixed number
    of times, and its parts are joined in the same manner; so this always ends. A dense graph is the complement of a
    sparse one, in which more exchanges are possible.

    There are S `switches`, 2 or more; `degree` is 1 to S - 1, and 1 only for two. Equal seeds give equal graphs, on any
    machine and with any version of numpy.

    Returns:
        (L, 2) ends, the lower first, in order; L = S · degree // 2.
    """
    # Only raw bits are the same in all versions of numpy.
    bits = np.random.PCG64(seed)
    dense = 2 * degree > switches - 1
    links = _ring(switches, switches - 1 - degree, one_more=True) if dense else _ring(switches, degree, one_more=False)
    for _ in range(_ROUNDS):
        _exchange(links, switches, bits)
    number = _numbers(links, switches)
    if dense:
        all_pairs = np.stack(np.triu_indices(switches, 1), axis=1).astype(np.int64)
        number = np.setdiff1d(_numbers(all_pairs, switches), number)
    else:
        _join(links, switches, bits)
        number = np.sort(_numbers(links, switches))
    return np.stack([number // switches, number % switches], axis=1).astype(np.int32)


def _ring(count: int, degree: int, *, one_more: bool) -> Pairs:
    """Links of switches in a ring, each linked to the nearest on both sides.

    Where both numbers are odd, the last switch has one link more or one fewer than the others.
    """
    at = np.arange(count)
    links = [np.stack([at, (at + step) % count], axis=1) for step in range(1, degree // 2 + 1)]
    half = count // 2
    if degree % 2 and count % 2 == 0:
        links.append(np.stack([at[:half], at[half:]], axis=1))
    elif degree % 2:
        # Steps of half the ring lead once through all switches; every other one of these steps is a link.
        start = count - 1 if one_more else half - 1
        walk = (start + half * np.arange(count + 1)) % count
        first = np.arange(0, count if one_more else count - 1, 2)
        links.append(np.stack([walk[first], walk[first + 1]], axis=1))
    return np.concatenate([np.zeros((0, 2), dtype=np.int64), *links])


def _numbers(links: Pairs, count: int) -> Pairs:
    """(L,) one number for each pair of switches, whatever its direction."""
    number: Pairs = links.min(axis=1) * count + links.max(axis=1)
    return number


def _exchange(links: Pairs, count: int, bits: np.random.PCG64) -> None:
    """Pair all links at random and exchange an end in every pair where the graph stays simple, in place."""
    half = len(links) // 2
    order = np.argsort(bits.random_raw(len(links)), kind="stable")
    rows, others = order[:half], order[half : 2 * half]
    swap = (bits.random_raw(half) & np.uint64(1)).astype(bool)
    a, b = links[rows].T
    c, d = np.where(swap[:, None], links[others][:, ::-1], links[others]).T
    made = np.concatenate([np.stack([a, c], axis=1), np.stack([b, d], axis=1)])
    number = _numbers(made, count)
    _, index, times = np.unique(number, return_inverse=True, return_counts=True)
    bad = (made[:, 0] == made[:, 1]) | (times[index] > 1) | np.isin(number, _numbers(links, count))
    good = ~(bad[:half] | bad[half:])
    links[rows[good]] = made[:half][good]
    links[others[good]] = made[half:][good]


def _join(links: Pairs, count: int, bits: np.random.PCG64) -> None:
    """Join separate parts: exchange ends of a link on a cycle of the first and any link elsewhere, in place."""
    while True:
        part, closing = components(count, links.astype(np.int32))
        of_first = part[links[:, 0]] == 0
        if of_first.all():
            return
        here, there = np.flatnonzero(closing & of_first), np.flatnonzero(~of_first)
        one, other = (rows[int(bits.random_raw()) % len(rows)] for rows in (here, there))
        links[[one, other], 1] = links[[other, one], 1]
