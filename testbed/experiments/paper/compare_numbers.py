"""Beside the published number: reproduced, consistent, recomputed, trend, differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from testbed.experiments.paper.published_numbers import NEUTRAL, Row

REPRODUCED, CONSISTENT, RECOMPUTED = "reproduced", "consistent", "recomputed"
TREND, DIFFERS = "trend", "differs"
IMPOSSIBLE, FAILED, NOT_RUN = "impossible", "failed", "not run"
STATES = (REPRODUCED, CONSISTENT, RECOMPUTED, TREND, DIFFERS, IMPOSSIBLE, FAILED, NOT_RUN)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a row."""

    row: Row  # the published number
    state: str  # one of STATES
    ours: float | None = None  # None where there is none
    error: str = ""  # of a runner that failed

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of the published number."""
        return None if self.ours is None or not self.row.published else self.ours / self.row.published

    @property
    def unexplained(self) -> bool:
        """Whether it should be within its tolerance and is not: a failure."""
        return self.state == FAILED or (self.state in (TREND, DIFFERS) and not self.row.why)


def judge(rows: Sequence[Row], ours: Sequence[float | None], errors: Sequence[str]) -> tuple[Result, ...]:
    """Give each row its state.

    `reproduced`: within the tolerance of a printed number. `consistent`: the paper prints no number, and ours is on the
    side that it speaks of; or ours is a bound, and the number is within. `recomputed`: within the tolerance, but ours
    is made of other numbers of the paper alone: these agree, and nothing else is shown. `trend`: none, but in the same
    order as published towards every other row of its group; without a group, a ratio (×) on the same side of 1 or a
    change (%) on the same side of 0. `differs`: neither.

    Args:
        rows: of one item.
        ours: value of each, None without.
        errors: of each, empty without.
    """
    found = []
    for number, (row, value, error) in enumerate(zip(rows, ours, errors, strict=True)):
        if error:
            found.append(Result(row, FAILED, None, error))
        elif row.impossible:
            found.append(Result(row, IMPOSSIBLE))
        elif value is None:
            found.append(Result(row, NOT_RUN))
        elif _is_reproduced(row, value):
            found.append(Result(row, _agreement(row), value))
        else:
            others = [
                (other.published, theirs)
                for place, (other, theirs) in enumerate(zip(rows, ours, strict=True))
                if place != number and other.group == row.group and theirs is not None
            ]
            found.append(Result(row, TREND if _trend(row, value, others) else DIFFERS, value))
    return tuple(found)


def _agreement(row: Row) -> str:
    """What a number that agrees with the published one shows."""
    if row.relation != "equal":
        return CONSISTENT
    return RECOMPUTED if row.call is not None and row.call.recomputed else REPRODUCED


def _is_reproduced(row: Row, value: float) -> bool:
    if row.relation == "above":
        return value > row.published
    if row.relation == "below":
        return value < row.published
    if row.relation == "within":
        return value >= row.published
    return abs(value - row.published) <= row.tolerated_difference + 1e-9


def _trend(row: Row, value: float, others: Sequence[tuple[float, float]]) -> bool:
    if row.relation != "equal":
        return False
    if row.group and others:
        # What the paper has as equal may come out in either order, as far as the tolerance goes.
        return all(
            (value - theirs) * (row.published - published) > 0
            or (row.published == published and abs(value - theirs) <= max(row.tolerance, 0.05) * abs(theirs))
            for published, theirs in others
        )
    neutral = NEUTRAL.get(row.unit)
    return neutral is not None and (value - neutral) * (row.published - neutral) > 0
