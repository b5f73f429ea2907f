"""Judge a student's folder task by task, and the folders of a class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.errors import InputError, Problem
from testbed.exercise import course, work
from testbed.exercise.course import Demand, Exercise, Task
from testbed.exercise.demands import DEMANDS
from testbed.exercise.work import Work


@dataclass(frozen=True, slots=True)
class Judged:
    """One demand, judged."""

    demand: Demand
    wrong: str  # what does not hold and why; empty where it is met

    @property
    def points(self) -> float:
        """What it earned."""
        return 0.0 if self.wrong else self.demand.points


@dataclass(frozen=True, slots=True)
class TaskResult:
    """One task, judged."""

    task: Task
    demands: tuple[Judged, ...]

    @property
    def points(self) -> float:
        """What it earned."""
        return sum(one.points for one in self.demands)


@dataclass(frozen=True, slots=True)
class Result:
    """One exercise of one student."""

    student: str
    exercise: Exercise
    tasks: tuple[TaskResult, ...]

    @property
    def points(self) -> float:
        """What it earned."""
        return sum(task.points for task in self.tasks)

    @property
    def complete(self) -> bool:
        """Whether every demand is met."""
        return all(not one.wrong for task in self.tasks for one in task.demands)

    def as_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "student": self.student,
            "exercise": self.exercise.name,
            "points": self.points,
            "of": self.exercise.points,
            "tasks": [
                {
                    "task": one.task.name,
                    "points": one.points,
                    "of": one.task.points,
                    "demands": [
                        {
                            "holds": not d.wrong,
                            "points": d.points,
                            "of": d.demand.points,
                            "says": d.wrong or d.demand.says,
                        }
                        for d in one.demands
                    ],
                }
                for one in self.tasks
            ],
        }


def check(exercise: Exercise, folder: Path, student: str = "") -> Result:
    """Judge a student's folder.

    Raises:
        InputError: it is no folder of this exercise.
    """
    work.require(exercise.name, folder)
    handed_in = Work(folder, exercise.folder / course.START)
    tasks = [
        TaskResult(task, tuple(Judged(demand, _wrong(handed_in, demand)) for demand in task.demands))
        for task in exercise.tasks
    ]
    return Result(student, exercise, tuple(tasks))


def _wrong(handed_in: Work, demand: Demand) -> str:
    try:
        return DEMANDS[demand.kind].judge(handed_in, demand.parameters) or ""
    except InputError as error:
        # Students know a file by its name, not by where a class's folders are.
        return "; ".join(str(problem).replace(f"{handed_in.folder}/", "") for problem in error.problems)


def grade(folder: Path, exercises: Path = course.FOLDER) -> Iterator[Result]:
    """Judge a class: a folder a student, in each the folders of the exercises that were begun.

    Raises:
        InputError: there is none.
    """
    found = False
    problems: list[Problem] = []
    for student in sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ():
        for mine in sorted(path for path in student.iterdir() if path.is_dir()):
            name = work.exercise_of(mine)
            if name is None:
                continue
            found = True
            if name not in course.names(exercises):
                problems.append(Problem(str(mine), f'is of the exercise "{name}", which is not here'))
                continue
            yield check(course.find(name, exercises), mine, student.name)
    if problems:
        raise InputError(problems)
    if not found:
        sentence = "holds no exercise; it should have a folder a student, and in each what `exercise start` has made"
        raise InputError.one(str(folder), sentence)
