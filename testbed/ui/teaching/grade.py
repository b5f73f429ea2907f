"""Judge a student's folder task by task, and the folders of a class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import InputError
from testbed.base.untrusted_text import escape_line
from testbed.ui.teaching import course, student_folder
from testbed.ui.teaching.course import Demand, Exercise, Task
from testbed.ui.teaching.demands import DEMANDS
from testbed.ui.teaching.student_folder import Work

_LONGEST = 2000  # letters of a sentence


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

    @property
    def sentences(self) -> list[str]:
        """What is told of each demand; a reason that was told already is not told again."""
        told: set[str] = set()
        said = []
        for one in self.demands:
            again = one.wrong in told
            said.append(f"{one.demand.says}: not yet, for the same reason" if again else one.wrong or one.demand.says)
            told |= {one.wrong} - {""}
        return said


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
    student_folder.require(exercise.name, folder)
    handed_in = Work(folder, exercise.folder / course.START)
    tasks = [
        TaskResult(task, tuple(Judged(demand, _find_fault(handed_in, demand)) for demand in task.demands))
        for task in exercise.tasks
    ]
    return Result(student, exercise, tuple(tasks))


def _find_fault(handed_in: Work, demand: Demand) -> str:
    said = _as_judged(handed_in, demand)
    return escape_line(said if len(said) <= _LONGEST else f"{said[:_LONGEST]} …")


def _as_judged(handed_in: Work, demand: Demand) -> str:
    kind = DEMANDS[demand.kind]
    try:
        wrong = kind.judge(handed_in, demand.parameters) or ""
        if not wrong and kind.own and handed_in.is_unmodified(demand.parameters.file):
            return f"{demand.parameters.file}: is as it was given"
        return wrong
    except InputError as error:
        # Students know a file by its name, not by where a class's folders are.
        return "; ".join(str(problem).replace(f"{handed_in.folder}/", "") for problem in error.problems)


@dataclass(frozen=True, slots=True)
class Graded:
    """A class."""

    results: tuple[Result, ...]  # by student, then by exercise
    without: tuple[str, ...]  # students who have handed in no exercise
    notes: tuple[str, ...]  # what was not graded, and why

    @property
    def by_student(self) -> list[tuple[str, list[Result]]]:
        """Results of each student, also of those who have none."""
        names = sorted({*self.without, *(one.student for one in self.results)})
        return [(name, [one for one in self.results if one.student == name]) for name in names]


def grade(folder: Path, progress: Callable[[str], None] = lambda _: None, exercises: Path = course.FOLDER) -> Graded:
    """Judge a class: a folder a student, in each the folders of the exercises that were begun.

    Of several folders of one exercise, such as those that `reset` keeps, the one with most points counts.

    Raises:
        InputError: there is none.
    """
    best: dict[tuple[str, str], Result] = {}
    without: list[str] = []
    notes = [f"{file}: is a file; unpack it into a folder of the student's" for file in _list_archives(folder)]
    for student in sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ():
        begun, who = False, escape_line(student.name)
        for mine in sorted(path for path in student.iterdir() if path.is_dir()):
            if mine.is_symlink():  # to somebody else's work
                notes.append(f"{mine}: is a link; hand in the folder itself")
                continue
            name = student_folder.exercise_of(mine)
            if name is None and not (mine / student_folder.ANSWERS).exists():
                continue  # results, or what else lies there
            if name not in course.names(exercises):
                notes.append(f"{mine}: {_why_not(name)}")
                continue
            begun = True
            progress(f"{who}: {name}")
            result = check(course.find(str(name), exercises), mine, who)
            before = best.get((who, str(name)))
            if before is None or result.points > before.points:
                best[who, str(name)] = result
        if not begun:
            without.append(who)
    if not best:
        sentence = "holds no exercise; it should have a folder a student, and in each what `exercise start` has made"
        raise InputError.one(str(folder), sentence)
    return Graded(tuple(best[key] for key in sorted(best)), tuple(without), tuple(map(escape_line, notes)))


def _list_archives(folder: Path) -> list[Path]:
    return sorted(
        one for one in folder.glob("*") if one.suffix.lower() in (".zip", ".tar", ".gz", ".tgz", ".7z", ".rar")
    )


def _why_not(name: str | None) -> str:
    if name is None:
        sentence = (
            "was not graded, since its file .exercise is missing, which `exercise start` makes and some programs "
        )
        return sentence + "leave out when they copy or pack; a file of that name with the exercise's name in it will do"
    return f'was not graded: it is of the exercise "{name[:40]}", which is not here'
