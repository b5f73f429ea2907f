"""How far the monotonic clocks of machines are ahead of the first one's, measured by round trips."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TRIPS = 8


@dataclass(frozen=True, slots=True)
class Clock:
    """A machine's monotonic clock, beside that of the first machine."""

    ahead: float  # s
    error: float  # s that this may be off


def clocks(tell: Sequence[Callable[[], float]]) -> list[Clock]:
    """Ask each machine for its monotonic time, in s, some times; the quickest answer tells most.

    An answer was true at some moment between the question and its arrival.
    """
    here = [_measure_clock(one) for one in tell]
    first = here[0]
    return [Clock(0.0, 0.0), *(Clock(one.ahead - first.ahead, one.error + first.error) for one in here[1:])]


def _measure_clock(tell: Callable[[], float]) -> Clock:
    found = []
    for _ in range(_TRIPS):
        asked = time.monotonic()
        there = tell()
        answered = time.monotonic()
        found.append(Clock(there - (asked + answered) / 2, (answered - asked) / 2))
    return min(found, key=lambda one: one.error)


def interpolate_clocks(before: Sequence[Clock], after: Sequence[Clock]) -> list[Clock]:
    """The clocks while something ran, by what they were before and after it; they may have drifted apart."""
    return [
        Clock((one.ahead + other.ahead) / 2, max(one.error, other.error) + abs(one.ahead - other.ahead) / 2)
        for one, other in zip(before, after, strict=True)
    ]
