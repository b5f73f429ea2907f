"""What a sweep file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

KEYS = ("name", "description", "scenarios", "set", "workloads", "repeats", "baseline", "figures")
MAX_RUNS = 1000
MAX_REPEATS = 100


@dataclass(frozen=True, slots=True)
class FigureSpec:
    """A figure that is drawn when all runs are done.

    Attributes:
        kind: `bars`: a panel a load and metric, a bar a scenario; `lines`: a line a scenario over `x`.
        name: of its files; none = the sweep's name, with a number where there are several.
        x: for lines: `switches_on_path`, `message_size`, or a key of the scenario whose value is a number.
        x_label: what is written under the axis, with the unit; none = the name of `x`.
        metrics: which metrics; none = those shown by default.
        title: over the figure.
    """

    kind: Literal["bars", "lines"]
    name: str = ""
    x: str | None = None
    x_label: str = ""
    metrics: tuple[str, ...] = field(default=(), metadata={"wanted": "a list of metrics such as [goodput]"})
    title: str = ""


@dataclass(frozen=True, slots=True)
class Combination:
    """One scenario with one value of each key.

    Attributes:
        scenario: as the sweep file names it.
        file: where it is.
        settings: every key that is set, as `testbed run --set` takes it.
        swept: the keys that have several values, as key → value.
    """

    scenario: str
    file: Path
    settings: tuple[str, ...]
    swept: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep file, read.

    Attributes:
        name: from the file's name unless the file says otherwise.
        description: free text.
        source: the file, for messages.
        combinations: of scenarios and values, in the order they run.
        repeats: how often each is run.
        baseline: scenario that figures are relative to; None = flat, else tree, else the first.
        figures: at least one.
    """

    name: str
    description: str
    source: str
    combinations: tuple[Combination, ...]
    repeats: int
    baseline: str | None
    figures: tuple[FigureSpec, ...]
