"""Median and 95 % confidence interval of a few repeats.

From six values on the interval is that of the median by ranks: exact, with no assumption about the distribution
(Hoefler and Belli 2015). Of fewer values no 95 % interval by ranks exists, and a bootstrap of three
values covers far less than it says; there the interval is Student's t, for the mean, which asks for values that are
about normal: a value is itself a mean over flows. Both always hold the median; neither draws random numbers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

MIN_FOR_RANKS = 6
_ONE_MISS_IN = 20  # 95 %
# 97.5 % quantiles of Student's t for 2 to 5 values, which have one degree of freedom less.
_STUDENT = {2: 12.706204736, 3: 4.302652730, 4: 3.182446305, 5: 2.776445105}


@dataclass(frozen=True, slots=True)
class Spread:
    """Several values of one figure."""

    count: int  # number of values
    median: float  # of them
    minimum: float  # least of them
    maximum: float  # largest of them
    interval: tuple[float, float] | None  # ends of the 95 % confidence interval; None of a single value
    method: Literal["ranks", "student", "none"]  # `ranks` for the median, `student` for the mean, or `none`


def spread(values: Sequence[float]) -> Spread:
    """Summarise finite values; at least one.

    Raises:
        ValueError: there is none, or one is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"needs finite values, not {list(values)}")
    ordered = sorted(values)
    count, median = len(ordered), statistics.median(ordered)
    least, most = ordered[0], ordered[-1]
    if count == 1:
        return Spread(1, median, least, most, None, "none")
    if count < MIN_FOR_RANKS:
        mean, reach = statistics.fmean(ordered), _STUDENT[count] * statistics.stdev(ordered) / math.sqrt(count)
        low, high = mean - reach, mean + reach
        if least >= 0:
            low = max(low, 0.0)  # what cannot be negative is not less than nothing
        # Equal values differ from their mean by rounding.
        return Spread(count, median, least, most, (min(low, median), max(high, median)), "student")
    rank = median_rank(count)
    return Spread(count, median, least, most, (ordered[rank - 1], ordered[count - rank]), "ranks")


def median_rank(count: int) -> int:
    """Largest k for which the k-th least and the k-th largest of `count` values hold the median in 95 % of all draws.

    Each value is below the median with probability 1/2, so the interval misses it with probability
    2 · P(fewer than k of `count` fair coins show heads).

    Raises:
        ValueError: too few values; six are needed.
    """
    if count < MIN_FOR_RANKS:
        raise ValueError(f"needs {MIN_FOR_RANKS} values or more, not {count}")
    missed, rank = 0, 0
    while True:
        missed += math.comb(count, rank)
        if 2 * missed * _ONE_MISS_IN > 2**count:
            return rank
        rank += 1
