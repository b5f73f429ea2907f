"""What a sweep file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

KEYS = ("name", "description", "scenarios", "set", "workloads", "repeats", "baseline", "labels", "figures")
MAX_RUNS = 1000
MAX_REPEATS = 100


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure that is drawn when all runs are done."""

    # `bars`: a panel a load and metric, a bar a scenario; `lines`: a line a scenario over `x`
    kind: Literal["bars", "lines"]
    name: str = ""  # of its files; none = the sweep's name, with a number where there are several
    # for lines: `switches_on_path`, `message_size`, or a key of the scenario whose value is a number
    x: str | None = None
    x_label: str = ""  # what is written under the axis, with the unit; none = the name of `x`
    # which metrics; none = those shown by default
    metrics: tuple[str, ...] = field(default=(), metadata={"wanted": "a list of metrics such as [goodput]"})
    title: str = ""  # over the figure


@dataclass(frozen=True, slots=True)
class Combination:
    """One scenario with one value of each key."""

    scenario: str  # as the sweep file names it
    file: Path  # where it is
    settings: tuple[str, ...]  # every key that is set, as `testbed run --set` takes it
    swept: Mapping[str, Any]  # the keys that have several values, as key → value


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep file, read."""

    name: str  # from the file's name unless the file says otherwise
    description: str  # free text
    source: str  # the file, for messages
    combinations: tuple[Combination, ...]  # of scenarios and values, in the order they run
    repeats: int  # how often each is run
    baseline: str | None  # scenario that figures are relative to; None = flat, else tree, else the first
    figures: tuple[FigureSpec, ...]  # at least one
    labels: Mapping[str, str]  # what settings are called in tables and figures: as they are shown → as they shall be

    @property
    def swept_keys(self) -> tuple[str, ...]:
        """Keys that have several values."""
        return tuple(dict.fromkeys(key for combination in self.combinations for key in combination.swept))
