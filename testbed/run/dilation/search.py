"""Which dilation to try next: a search for the smallest one at which the lab keeps up. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

_DECADE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)


def steps(least: float, most: float) -> tuple[float, ...]:
    """Dilations that may be chosen: 1, 1.5, 2, 3, 5, 7, 10, … between two limits."""
    every = (factor * 10**decade for decade in range(7) for factor in _DECADE)
    return tuple(step for step in takewhile(lambda step: step <= most, every) if step >= least)


def chosen(steps: Sequence[float], tried: Mapping[float, bool]) -> float | None:
    """The smallest step that was faithful and has none above it that was not; None = there is none yet."""
    floor = _floor(tried)
    return min((step for step in steps if tried.get(step) and step > floor), default=None)


def next_step(steps: Sequence[float], tried: Mapping[float, bool], guess: float) -> float | None:
    """The step to try next, or None when trying has come to an end.

    Where a step was faithful and a larger one was not, the larger one counts: a lab that keeps up only now and then
    does not keep up.

    `steps` ascend; `tried`: step → whether the lab was faithful at it; `guess`: where to begin.
    """
    if not steps:
        return None
    if not tried:
        return next((step for step in steps if step >= guess), steps[-1])
    floor, ceiling = _floor(tried), chosen(steps, tried)
    low = sum(step <= floor for step in steps) - 1  # position of the largest that failed; -1 = none did
    high = len(steps) if ceiling is None else steps.index(ceiling)
    if high - low <= 1:
        return None
    # While only one side is known, one step after the first trial, two after the second, and so on: a good guess costs
    # two trials, a bad one not many.
    if ceiling is None:
        return steps[min(low + len(tried), len(steps) - 1)]
    if low < 0:
        return steps[max(high - len(tried), 0)]
    return steps[(low + high) // 2]


def _floor(tried: Mapping[float, bool]) -> float:
    """Largest step that was not faithful; 0 = none."""
    return max((step for step, faithful in tried.items() if not faithful), default=0.0)
