"""Slim Fly, graphs of McKay, Miller and Širáň over finite fields, of diameter 2 (Besta, Hoefler 2014, II-B)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
from annotated_types import Ge

from testbed.base.errors import Problem
from testbed.base.model import Ints, Topology
from testbed.fabric.topologies.build_topology import Extent, make_topology, on_nested_circles


@dataclass(frozen=True, slots=True)
class SlimFly:
    """2 q² switches of degree (3 q - δ) / 2, where q = 4 w + δ with δ of -1, 0 or 1 is a power of a prime.

    So q is any power of a prime but 2: 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, …
    """

    q: Annotated[int, Ge(3)]  # a power of a prime; the fabric has 2q² switches
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        switches = 2 * self.q**2
        degree = (3 * self.q - (0, 1, 2, -1)[self.q % 4]) // 2
        return Extent(switches, switches * degree // 2 * self.parallel_links, switches * self.hosts_per_switch)


def check_prime_power(q: int, least: int) -> list[Problem]:
    """Name a q that is not a power of a prime, with the nearest that are, from `least` on."""
    if prime_power(q):
        return []
    below = next(one for one in range(q, least - 1, -1) if prime_power(one))
    above = next(one for one in range(q, 2 * q) if prime_power(one))
    return [Problem("q", f"should be a power of a prime, such as {below} or {above}, not {q}")]


def check_slim_fly(spec: SlimFly) -> list[Problem]:
    """Name a q that is not a power of a prime, with the nearest that are."""
    return check_prime_power(spec.q, 3)


def slim_fly(spec: SlimFly) -> Topology:
    """Build the graph. Switch x·q + y is the paper's (0, x, y), switch q² + m·q + c its (1, m, c)."""
    q = spec.q
    prime, exponent = prime_power(q) or (q, 1)
    numbers = field(prime, exponent)
    steps, other_steps = _generators(q, numbers.powers)
    element = np.arange(q)
    inside = []
    for half, generators in enumerate((steps, other_steps)):
        one, other = np.repeat(element, len(generators)), numbers.add[:, generators].reshape(-1)
        ends = np.stack([one, other], axis=1)[one < other]
        inside += [ends + q * block for block in range(half * q, (half + 1) * q)]
    # (0, x, y) and (1, m, c) are linked where y = m x + c.
    x, m, c = np.meshgrid(element, element, element, indexing="ij")
    y = numbers.add[numbers.times[m, x], c]
    across = np.stack([x * q + y, q * q + m * q + c], axis=-1).reshape(-1, 2)
    pairs = sorted((a, b) for a, b in np.concatenate([*inside, across]).tolist())
    return make_topology(
        "slim_fly",
        pairs,
        [spec.hosts_per_switch] * (2 * q * q),
        on_nested_circles((q, 2 * q)),
        parallel_links=spec.parallel_links,
    )


def _generators(q: int, powers: Ints) -> tuple[Ints, Ints]:
    """The sets X and X' (Hafner 2004): differences at which switches of a group of either half are linked."""
    if q % 4 == 3:
        w = (q + 1) // 4
        chosen = np.concatenate([np.arange(0, 2 * w - 1, 2), np.arange(2 * w - 1, 4 * w - 2, 2)])
    else:
        chosen = np.arange(0, q - 1, 2)
    return powers[chosen], powers[(chosen + 1) % (q - 1)]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """The field of q elements; its elements are the numbers 0 to q - 1, and 0 and 1 are its zero and one."""

    add: Ints  # (q, q) sums
    times: Ints  # (q, q) products
    powers: Ints  # (q - 1,) powers 1, ξ, ξ², … of a primitive element ξ, which are all elements but 0


def prime_power(number: int) -> tuple[int, int] | None:
    """(p, k) where `number` is p^k with p prime, else None."""
    prime = next((p for p in range(2, number + 1) if number % p == 0), None)
    if prime is None:
        return None
    exponent = 0
    while number % prime == 0:
        number //= prime
        exponent += 1
    return (prime, exponent) if number == 1 else None


def field(prime: int, exponent: int) -> Field:
    """Make the field of prime^exponent elements.

    An element represents the polynomial with its base-p digits as coefficients, lowest first. Products are those of
    polynomials modulo the first monic one of degree k by which the powers of x are all elements but 0.
    """
    count = prime**exponent
    weights = prime ** np.arange(exponent)
    digits = np.arange(count)[:, None] // weights % prime
    raised = np.concatenate([np.zeros((count, 1), dtype=np.int64), digits[:, :-1]], axis=1)
    for modulus in product(range(prime), repeat=exponent):
        times_x = (raised - digits[:, -1:] * modulus) % prime @ weights
        powers = [1]
        while len(powers) < count - 1 and times_x[powers[-1]] not in (0, 1):
            powers.append(int(times_x[powers[-1]]))
        if len(set(powers)) == count - 1:
            break
    logarithm = np.zeros(count, dtype=np.int64)
    logarithm[powers] = np.arange(count - 1)
    times = np.asarray(powers)[(logarithm[:, None] + logarithm) % (count - 1)]
    times[0], times[:, 0] = 0, 0
    add = (digits[:, None] + digits) % prime @ weights
    return Field(add.astype(np.int32), times.astype(np.int32), np.asarray(powers, dtype=np.int32))
