"""What is asked of a runner, as read from a table: checked before anything runs, and named so that it is run once."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.base.errors import Problem
from testbed.experiments.paper.runners import RUNNERS
from testbed.scenario.parameter_models import fill, format_value, not_one_of

Values = Sequence[float]
_TAKE: dict[str, Callable[[Values], float]] = {
    "mean": statistics.fmean,
    "sd": lambda values: statistics.stdev(values) if len(values) > 1 else 0.0,
    "min": min,
    "max": max,
}
# Of two runs' values, drawing by drawing.
_COMBINE: dict[str, Callable[[float, float], float]] = {
    "ratio": lambda of, over: of / over,
    "percent_more": lambda of, over: 100 * (of / over - 1),
    "percent_less": lambda of, over: 100 * (1 - of / over),
}


@dataclass(frozen=True, slots=True)
class Call:
    """A runner with its options, or two calls combined."""

    run: str  # name of the runner or of the combination
    options: Any  # of the runner; None of a combination
    parts: tuple[Call, ...]  # the two calls of a combination
    take: str  # what is taken of several values: mean, sd, min, max

    @property
    def quick(self) -> bool:
        """Whether it needs no lab and no long simulation."""
        return all(part.quick for part in self.parts) if self.parts else RUNNERS[self.run].quick

    @property
    def recomputed(self) -> bool:
        """Whether it is made of the paper's own numbers alone."""
        return all(RUNNERS[leaf.run].recomputes for leaf in self.leaves)

    @property
    def leaves(self) -> tuple[Call, ...]:
        """The calls of runners in it."""
        return tuple(leaf for part in self.parts for leaf in part.leaves) if self.parts else (self,)

    @property
    def text(self) -> str:
        """Runner and options as one line, the same for the same; of a combination all its runners."""
        if self.parts:
            return f"{self.run} of {' and '.join(part.text for part in self.parts)}"
        told = {name: value for name, value in dataclasses.asdict(self.options).items() if value not in (None, (), "")}
        return f"{self.run} {json.dumps(told, sort_keys=True, ensure_ascii=False)}"

    def value(self, values_of: Callable[[Call], Values]) -> float:
        """The number, from what the runners gave."""
        return _TAKE[self.take](self._values(values_of))

    def _values(self, values_of: Callable[[Call], Values]) -> Values:
        if not self.parts:
            return values_of(self)
        of, over = (part._values(values_of) for part in self.parts)
        if len(of) != len(over):  # not of the same drawings
            of, over = [statistics.fmean(of)], [statistics.fmean(over)]
        return [_COMBINE[self.run](a, b) for a, b in zip(of, over, strict=True)]


def merge_blocks(*blocks: Mapping[str, Any] | None) -> dict[str, Any]:
    """Blocks put over each other, the last on top; a block in a block likewise, unless it has a `kind` of its own."""
    found: dict[str, Any] = {}
    for block in blocks:
        for key, value in (block or {}).items():
            below = found.get(key)
            if isinstance(below, dict) and isinstance(value, Mapping) and "kind" not in value:
                found[key] = merge_blocks(below, value)
            else:
                found[key] = value
    return found


def read_call(block: Mapping[str, Any], place: str, problems: list[Problem]) -> Call | None:
    """Check a block such as `{run: plan, figure: vlans, topology: {…}}`; None after adding every problem found."""
    before = len(problems)
    run, take = block.get("run"), block.get("take", "mean")
    if take not in _TAKE:
        problems.append(Problem(f"{place}.take", not_one_of(take, list(_TAKE))))
    rest = {key: value for key, value in block.items() if key not in ("run", "take")}
    if run in _COMBINE:
        # What both have in common stands beside them.
        common = {key: value for key, value in rest.items() if key not in ("of", "over")}
        parts = []
        for name in ("of", "over"):
            if not isinstance(rest.get(name), Mapping):
                problems.append(
                    Problem(f"{place}.{name}", f"should be a block of a run, not {format_value(rest.get(name))}")
                )
                continue
            parts.append(read_call(merge_blocks(common, rest[name]), f"{place}.{name}", problems))
        found = tuple(part for part in parts if part is not None)
        return Call(str(run), None, found, str(take)) if len(problems) == before else None
    if run not in RUNNERS:
        known = [*RUNNERS, *_COMBINE]
        sentence = f"is required: one of {', '.join(known)}" if run is None else not_one_of(run, known)
        problems.append(Problem(f"{place}.run", sentence))
        return None
    runner = RUNNERS[str(run)]
    options = fill(runner.options, rest, place, problems)
    return Call(str(run), options, (), str(take)) if len(problems) == before else None
