"""Finite fields of a few elements, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from testbed.model import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """The field of q elements; its elements are the numbers 0 to q - 1, and 0 and 1 are its zero and one.

    Attributes:
        add: (q, q) sums.
        times: (q, q) products.
        powers: (q - 1,) powers 1, ξ, ξ², … of a primitive element ξ, which are all elements but 0.
    """

    add: Ints
    times: Ints
    powers: Ints


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

    An element stands for the polynomial with its base-p digits as coefficients, lowest first. Products are those of
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
