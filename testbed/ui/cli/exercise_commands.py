"""Exercises for teaching: exercise list, start, check, hint, reset, grade."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS, InputError, did_you_mean
from testbed.base.untrusted_text import csv_text
from testbed.ui.cli.app import FORMAT, Commands, app
from testbed.ui.cli.output import Format, messages, print_json, print_lines, results, show_progress, steps

if TYPE_CHECKING:
    from testbed.ui.teaching.course import Exercise, Task
    from testbed.ui.teaching.grade import Graded, Result

exercise = typer.Typer(
    help="Exercises for teaching: a task sheet each, and its checks.",
    cls=Commands,
    no_args_is_help=True,
)
app.add_typer(exercise, name="exercise")

NAME = Annotated[
    str, typer.Argument(metavar="NAME", help="an exercise as `testbed exercise list` shows it, or its number")
]
NAME_OR_HERE = Annotated[
    str | None, typer.Argument(metavar="NAME", help="the exercise, or its number; may be left out in its folder")
]
PLACE = Annotated[
    Path | None, typer.Argument(metavar="FOLDER", help="of the student; default ./NAME", show_default=False)
]
WORK = Annotated[
    Path | None,
    typer.Argument(metavar="FOLDER", help="of the student; default this one, else ./NAME", show_default=False),
]


class ClassFormat(str, Enum):
    """Form of the points of a class."""

    text = "text"
    json = "json"
    csv = "csv"


@exercise.command("list", epilog="Example: testbed exercise list")
def list_exercises(form: FORMAT = Format.text) -> None:
    """List the exercises, with their time and points."""
    from rich.table import Table

    from testbed.ui.teaching import course

    found = [course.find(name) for name in course.names()]
    if form is Format.json:
        shown = [
            {"exercise": one.name, "title": one.title, "minutes": one.minutes, "points": one.points, "root": one.root}
            for one in found
        ]
        print_json({"exercises": shown})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("exercise", "what it is about", "minutes", "points", "needs root for"):
        table.add_column(title, justify="right" if title in ("minutes", "points") else "left")
    for one in found:
        table.add_row(one.name, one.title, f"{one.minutes}", f"{one.points:g}", one.root or "nothing")
    results.print(table)


@exercise.command(epilog="Examples:\ntestbed exercise start 03-vlans-by-hand\ntestbed exercise start 3 my-vlans")
def start(name: NAME, folder: PLACE = None, form: FORMAT = Format.text) -> None:
    """Create a folder with the task sheet and the initial files."""
    from testbed.ui.teaching import course, student_folder

    found = course.find(name)
    place = folder or Path(found.name)
    student_folder.begin(found.name, found.folder / course.START, found.folder / course.SHEET, place)
    if form is Format.json:
        print_json({"exercise": found.name, "folder": str(place), "sheet": str(place / course.SHEET)})
        return
    print_lines(f"{found.title}, {found.minutes} minutes, {found.points:g} points. Read {place / course.SHEET}; then:")
    print_lines(f"  testbed exercise check {found.name}{'' if folder is None else f' {folder}'}")


@exercise.command(epilog="Examples:\ntestbed exercise check 03-vlans-by-hand\ntestbed exercise check 3 --format json")
def check(name: NAME_OR_HERE = None, folder: WORK = None, form: FORMAT = Format.text) -> None:
    """Check each task: what holds, what does not and why, with points. Exit code 1 while something does not hold."""
    from testbed.ui.teaching import course, grade, student_folder

    found = course.find(student_folder.name_or_here(name))
    with show_progress("judging what is in the folder"):
        result = grade.check(found, student_folder.place_of(found.name, folder))
    if form is Format.json:
        print_json(result.as_dict())
    else:
        _print_result(result)
    raise typer.Exit(EXIT_PASS if result.complete else EXIT_FAIL)


def _print_result(result: Result) -> None:
    for task in result.tasks:
        print_lines(f"{task.task.name}: {task.task.title}  ({task.points:g} of {task.task.points:g} points)", "bold")
        for one, says in zip(task.demands, task.sentences, strict=True):
            holds = not one.wrong
            print_lines(f"  {'holds' if holds else 'open '}  {says}", "green" if holds else None)
    print_lines(f"{result.exercise.name}: {result.points:g} of {result.exercise.points:g} points", "bold")
    first = next((task for task in result.tasks if any(one.wrong for one in task.demands)), None)
    if first is not None:
        print_lines(f"a hint: testbed exercise hint {result.exercise.name} --task {first.task.name}")


@exercise.command(epilog="Example: testbed exercise hint 03-vlans-by-hand --task one --number 2")
def hint(
    name: NAME_OR_HERE = None,
    folder: WORK = None,
    task: Annotated[str | None, typer.Option("--task", help="default the first task with something open")] = None,
    number: Annotated[int, typer.Option("--number", min=1, help="the first gives away least")] = 1,
    form: FORMAT = Format.text,
) -> None:
    """Give a hint for a task."""
    from testbed.ui.teaching import course, student_folder

    found = course.find(student_folder.name_or_here(name))
    chosen = _task(found, task, student_folder.place_of(found.name, folder))
    count = len(chosen.hints)
    if number > count:
        raise InputError.one("--number", f"{chosen.name} has {count} hint{'' if count == 1 else 's'}, not {number}")
    text = chosen.hints[number - 1]
    if form is Format.json:
        print_json({"task": chosen.name, "number": number, "of": len(chosen.hints), "hint": text})
        return
    print_lines(f"{chosen.name}, hint {number} of {len(chosen.hints)}: {text}")


def _task(found: Exercise, name: str | None, folder: Path) -> Task:
    from testbed.ui.teaching import grade

    if name is None:
        result = grade.check(found, folder)
        return next((one.task for one in result.tasks if any(d.wrong for d in one.demands)), found.tasks[-1])
    for task in found.tasks:
        if task.name == name:
            return task
    known = [task.name for task in found.tasks]
    raise InputError.one("--task", f'there is no task "{name}".{did_you_mean(name, known)} Known: {", ".join(known)}')


@exercise.command(epilog="Example: testbed exercise reset 03-vlans-by-hand")
def reset(name: NAME, folder: PLACE = None, form: FORMAT = Format.text) -> None:
    """Start over; what was done is kept in FOLDER.1."""
    from testbed.ui.teaching import course, student_folder

    found = course.find(name)
    place = folder or Path(found.name)
    kept = student_folder.reset(found.name, found.folder / course.START, found.folder / course.SHEET, place)
    if form is Format.json:
        print_json({"folder": str(place), "kept": str(kept)})
        return
    print_lines(f"{place} is as at the beginning; what was in it is in {kept}")


@exercise.command("grade", epilog="Examples:\ntestbed exercise grade class\ntestbed exercise grade class --format csv")
def grade_class(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="a folder a student, and in each those that `exercise start` has made"),
    ],
    form: Annotated[ClassFormat, typer.Option("--format", help="output format")] = ClassFormat.text,
) -> None:
    """Points of a whole class. Exit code 3 if some folder was not graded."""
    from testbed.ui.teaching import grade

    with steps() as progress:
        graded = grade.grade(folder, progress)
    if form is ClassFormat.json:
        listed = [result.as_dict() for result in graded.results]
        print_json({"results": listed, "without": list(graded.without), "not_graded": list(graded.notes)})
    elif form is ClassFormat.csv:
        _print_csv(graded)
    else:
        _print_class(graded)
    for note in graded.notes:
        print_lines(note, to=messages)
    raise typer.Exit(EXIT_WARNINGS if graded.notes else EXIT_PASS)


def _print_class(graded: Graded) -> None:
    """A line a student and exercise, and one of the sum."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("student", "exercise", "points", "of", "open"):
        table.add_column(title, justify="right" if title in ("points", "of") else "left")
    for student, results_of in graded.by_student:
        for result in results_of:
            left = ", ".join(task.task.name for task in result.tasks if task.points < task.task.points)
            row = (student, result.exercise.name, f"{result.points:g}", f"{result.exercise.points:g}", left)
            table.add_row(*row)
        points = (sum(one.points for one in results_of), sum(one.exercise.points for one in results_of))
        table.add_row(student, "all" if results_of else "none", *(f"{one:g}" for one in points), style="bold")
    results.print(table)


def _print_csv(graded: Graded) -> None:
    rows: list[tuple[str, ...]] = []
    for student, results_of in graded.by_student:
        if not results_of:
            rows.append((student, "", "", "0", "0", "has handed in no exercise"))
        for result in results_of:
            for task in result.tasks:
                still = "; ".join(dict.fromkeys(one.wrong for one in task.demands if one.wrong))
                points = (f"{task.points:g}", f"{task.task.points:g}")
                rows.append((student, result.exercise.name, task.task.name, *points, still))
    sys.stdout.write(csv_text(("student", "exercise", "task", "points", "of", "open"), rows))
