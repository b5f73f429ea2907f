"""Read the exercises there are: what a task demands, and for how many points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Gt, MinLen

from testbed.base import resources
from testbed.base.errors import InputError, Problem, did_you_mean, reading
from testbed.base.files import read_text
from testbed.base.limits import YAML
from testbed.scenario.parameter_models import fill, format_value, not_one_of
from testbed.scenario.read_blocks import read_blocks
from testbed.ui.teaching.demands import DEMANDS

FOLDER = resources.find_part("exercises")
FILE, SHEET, START = "exercise.yaml", "sheet.md", "start"
SOLUTIONS = "solutions"  # beside the exercises, a folder each, so that they can be left out of what students get


@dataclass(frozen=True, slots=True)
class Demand:
    """One thing that must hold, and what it is worth."""

    kind: str  # key of DEMANDS
    parameters: Any  # its dataclass
    points: float
    says: str  # what must hold, in words; what the student reads when it does


@dataclass(frozen=True, slots=True)
class Task:
    """Demands that belong together."""

    name: str
    title: str
    demands: tuple[Demand, ...]
    hints: tuple[str, ...]  # the first gives away least

    @property
    def points(self) -> float:
        """What all of it is worth."""
        return sum(demand.points for demand in self.demands)


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise."""

    name: str  # of its folder
    title: str
    minutes: int  # that it takes
    root: str  # what of it needs root, or a virtual machine; empty where nothing does
    tasks: tuple[Task, ...]
    folder: Path

    @property
    def points(self) -> float:
        """What all of it is worth."""
        return sum(task.points for task in self.tasks)


@dataclass(frozen=True, slots=True)
class _Head:
    """Keys of an exercise but its tasks."""

    title: str
    minutes: Annotated[int, Gt(0)] = 90
    root: str = ""


@dataclass(frozen=True, slots=True)
class _TaskHead:
    """Keys of a task but its demands."""

    name: str
    title: str
    hints: Annotated[tuple[str, ...], MinLen(1)] = field(metadata={"wanted": "a list of texts"})


@dataclass(frozen=True, slots=True)
class _DemandHead:
    """Keys that each demand has."""

    says: str
    points: Annotated[float, Gt(0)] = 1.0


_DEMAND_KEYS = ("kind", "says", "points")


def names(folder: Path = FOLDER) -> list[str]:
    """Names of all exercises, in their order."""
    return sorted(file.parent.name for file in folder.glob(f"*/{FILE}"))


def find(name: str, folder: Path = FOLDER) -> Exercise:
    """Read the exercise of a name; the number it begins with will do.

    Raises:
        InputError: there is none, or its file is wrong.
    """
    known = names(folder)
    alike = [one for one in known if name in (one, one.partition("-")[0].lstrip("0"), one.partition("-")[2])]
    if not alike:
        meant = did_you_mean(name, [*known, *(one.partition("-")[2] for one in known)])
        raise InputError.one(name, f"no exercise of that name.{meant} Known: {', '.join(known)}")
    return read(folder / alike[0])


def read(folder: Path) -> Exercise:
    """Read an exercise.

    Raises:
        InputError: everything that is wrong with its file.
    """
    source = str(folder / FILE)
    raw, problems = read_blocks(_text(folder / FILE), source, ())
    head = fill(_Head, {key: value for key, value in raw.items() if key != "tasks"}, "exercise", problems, ["tasks"])
    tasks = raw.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        problems.append(Problem("tasks", f"should be a list of tasks, not {format_value(tasks)}"))
        tasks = []
    found = [_task(task, f"tasks.{number}", problems) for number, task in enumerate(tasks)]
    if problems or head is None:
        raise InputError([problem.in_file(source) for problem in problems])
    return Exercise(folder.name, head.title, head.minutes, head.root, tuple(found), folder)


def _text(file: Path) -> str:
    with reading(file):
        return read_text(file, most=YAML)


def _task(raw: object, place: str, problems: list[Problem]) -> Task:
    if not isinstance(raw, dict):
        problems.append(Problem(place, f"should be a block of keys, not {format_value(raw)}"))
        return Task("", "", (), ())
    head = fill(_TaskHead, {k: v for k, v in raw.items() if k != "demands"}, place, problems, ["demands"])
    listed = raw.get("demands")
    if not isinstance(listed, list) or not listed:
        problems.append(Problem(f"{place}.demands", f"should be a list of demands, not {format_value(listed)}"))
        listed = []
    demands = [_demand(one, f"{place}.demands.{number}", problems) for number, one in enumerate(listed)]
    if head is None:
        return Task("", "", (), ())
    return Task(head.name, head.title, tuple(one for one in demands if one is not None), head.hints)


def _demand(raw: object, place: str, problems: list[Problem]) -> Demand | None:
    if not isinstance(raw, dict):
        problems.append(Problem(place, f"should be a block of keys, not {format_value(raw)}"))
        return None
    kind = raw.get("kind")
    if kind not in [*DEMANDS]:
        problems.append(Problem(f"{place}.kind", not_one_of(kind, [*DEMANDS])))
        return None
    head = fill(_DemandHead, _pick_keys(raw, ("says", "points")), place, problems)
    rest = {key: value for key, value in raw.items() if key not in _DEMAND_KEYS}
    parameters = fill(DEMANDS[kind].parameters, rest, place, problems, _DEMAND_KEYS)
    if head is None or parameters is None:
        return None
    return Demand(kind, parameters, head.points, head.says)


def _pick_keys(raw: Mapping[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    # JSON and YAML write 2 points as a whole number.
    return {
        key: float(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for key, value in raw.items()
        if key in keys
    }
