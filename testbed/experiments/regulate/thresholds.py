"""When links go off and on: by two thresholds of how much the busiest one is used. No clock in here, and no lab."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.base.errors import Problem, argument

SHORTEST = 0.1  # sampling interval, s
_ROUNDING = 1e-9  # of a use that is computed


@dataclass(frozen=True, slots=True)
class Rule:
    """How a loop decides; times are laboratory s."""

    # all links go on where the busiest one carries more than this share of its rate, and would carry less then
    on_above: float = 0.7
    off_below: float = 0.4  # links go off as long as no other one would then carry so much
    period: float = 0.5  # from one look to the next
    hold: float = 5.0  # after a change, in which no link goes off

    def problems(self) -> list[Problem]:
        """All that is wrong with it, by the options of the command."""
        found = []
        # Written so that what is no number is refused as well.
        if not SHORTEST <= self.period < math.inf:
            found.append(Problem(argument("period"), f"should be {SHORTEST:g} s or more, not {self.period:g}"))
        if not 0 <= self.hold < math.inf:
            found.append(Problem(argument("hold"), f"should be 0 s or more, not {self.hold:g}"))
        if not 0 < self.on_above < 1:
            found.append(Problem(argument("on_above"), f"should be a share between 0 and 1, not {self.on_above:g}"))
        if not 0 < self.off_below < self.on_above:
            most = f"{argument('on_above')}, {self.on_above:g}"
            sentence = f"should be above 0 and below {most}, or links go off and on for ever; it is {self.off_below:g}"
            found.append(Problem(argument("off_below"), sentence))
        return found

    def decide(self, rung: int, uses: Sequence[float], rested: float) -> int:
        """The rung of the ladder to go to.

        Args:
            rung: where the fabric is; 0 has all links on, each further one fewer.
            uses: of each rung, the share of its rate that the busiest link carries or would carry now.
            rested: s since the last change.
        """
        if uses[rung] > self.on_above and uses[0] < uses[rung] * (1 - _ROUNDING):
            return 0
        if rested >= self.hold:
            while rung + 1 < len(uses) and uses[rung + 1] < self.off_below:
                rung += 1
        return rung


def integral(steps: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Integral of a value over a time; each of some (time, value), in order, holds until the next one."""
    ends = [at for at, _ in steps[1:]] + [math.inf]
    return sum(
        value * max(0.0, min(until, end) - max(at, begin)) for (at, value), until in zip(steps, ends, strict=True)
    )
