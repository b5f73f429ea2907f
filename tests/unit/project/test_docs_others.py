"""Commands of other programs that pages show name what is there; commands of task sheets do what they should."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from testbed.ui.teaching import course, student_folder
from testbed.ui.teaching.course import FOLDER, SOLUTIONS, START
from tests.shown_commands import PAGES, ROOT, Here, How, Left, Planned, pages_module, words_of
from tests.shown_others import (
    HISTORY,
    MORE_PAGES,
    OTHERS,
    SHEETS,
    Check,
    check_of,
    every_other,
    read_by,
    words_of_other,
)
from tests.unit.project.test_docs import parsed
from tests.unit.ui.test_cli_surface import typed

# Commands of task sheets and hints, run in the folder of one who has solved the exercise.
EXERCISES: list[tuple[str, How]] = [
    (r"storm ", Left("needs a lab of its own; tests/lab/test_storm.py")),
    (
        r"(simulate|run) .*(> tree.json|--engine simulate)",
        Left("tests/unit/ui/test_exercises.py runs it for the solution"),
    ),
    (r"run torus4x4|(run|regulate) [\w-]+\.yaml$", Planned("a measured run; runs of its kind are in tests/lab")),
    (r"report FOLDER", Left("of a run: tests/unit/project/test_docs_run.py has such")),
    (r"simulate deadlock.yaml", Here("--seeds 1")),  # stands still, as declared
    (r"verify deadlock.yaml", Here()),
    (r"exercise hint", Here()),
    (r"exercise check", Here(code=1)),  # in another folder, where nothing is solved yet
    (r"(plan|power|analyse|list)\b", Here()),
]


NAMES = {" ".join(path).removeprefix("testbed ") for path, _ in pages_module().commands()}


def commands_of_exercises() -> list[tuple[str, str]]:
    """Exercise and command, of sheets and hints; without names of commands that are no whole command."""
    found: dict[tuple[str, str], None] = {}
    for file in [*SHEETS, *sorted((ROOT / "exercises").glob("*/exercise.yaml"))]:
        for command in re.findall(r"`(?:sudo )?testbed ([^`]+)`", re.sub(r"\s+", " ", file.read_text("utf-8"))):
            if command == "list" or (" " in command and command not in NAMES):
                found[file.parent.name, command] = None
            else:
                assert command in NAMES, f"{file}: there is no command {command}"
    return list(found)


def way_of(command: str) -> How | None:
    return next((way for rule, way in EXERCISES if re.match(rule, command)), None)


def test_each_command_is_looked_at_or_listed_with_a_reason():
    assert [f"{page}: {command}" for command, page in every_other().items() if check_of(command) is None] == []
    unused = [rule for rule, way in OTHERS if not any(check_of(command) is way for command in every_other())]
    assert unused == []
    for way in (way for _, way in OTHERS if isinstance(way, Left)):
        assert way.reason
        assert all((ROOT / name).exists() for name in re.findall(r"(?:tests|scripts)/[\w/]+(?:\.py)?", way.reason))


def test_each_page_is_looked_at_or_listed_with_a_reason():
    looked_at = {*PAGES, *MORE_PAGES, *SHEETS}
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "exercises").rglob("*.md")]
    whole = [ROOT / name for name in HISTORY]
    lost = [page for page in pages if page not in looked_at and not any(one in (page, *page.parents) for one in whole)]
    assert lost == []
    assert all(one.exists() for one in whole)


def test_commands_of_other_programs_name_what_is_there():
    wrong = []
    for command, page in every_other().items():
        way = check_of(command)
        if isinstance(way, Check):
            try:
                way.look(words_of_other(command))
            except (Exception, SystemExit) as error:  # of Make, argparse, click and Typer
                wrong.append(f"{page}: {command}: {type(error).__name__} {error}")
    assert wrong == []


@pytest.mark.parametrize(
    "command",
    [
        "make scenari TOPO=torus4x4", "make scenario TOPOLOGY=torus4x4", "make scenario TOPO=torus4x5",
        "make scenario ENGINE=vn", "make bench ARGS=simulate-packet", "make chaos ARGS='--tires 5'",
        "make -C mpi_jobs/imb got", "python -m benchmarks vm --part udp", "python -m benchmarks.chaos --try 1",
        "python -m controllers switch_taged --plan plan.json", "python -m controllers learning --plam plan.json",
        "scripts/setup devel", "scripts/containers", "dask scheduler --hots 10.0.0.1", "pip install 'testbed[claster]'",
        "bridge -j vlan list > vlan.json",
    ],
)  # fmt: skip
def test_wrong_commands_are_seen(command):
    way = check_of(command)
    assert isinstance(way, Check)
    with pytest.raises((Exception, SystemExit)):
        way.look(words_of_other(command))


def test_unknown_programs_are_seen():
    assert check_of("frobnicate --now") is None
    with pytest.raises(SystemExit):
        read_by("benchmarks.fuzz", ["--cuont", "3"])


def test_each_command_of_an_exercise_is_run_or_listed():
    commands = commands_of_exercises()
    assert len(commands) > 20
    assert [one for one in commands if way_of(one[1]) is None] == []
    assert [rule for rule, way in EXERCISES if not any(way_of(one) is way for _, one in commands)] == []
    for name, command in commands:
        parsed(words_of(command))
        if "solution" in getattr(way_of(command), "reason", ""):
            assert command in (FOLDER / SOLUTIONS / name / "commands.txt").read_text("utf-8").splitlines(), command


@pytest.mark.slow
@pytest.mark.parametrize("name", course.names())
def test_commands_of_an_exercise_end_as_they_should(name, tmp_path, monkeypatch):
    found = course.find(name)
    monkeypatch.chdir(tmp_path)
    student_folder.begin(found.name, found.folder / START, found.folder / course.SHEET, Path(found.name))
    before = tmp_path / "untouched"
    shutil.copytree(found.name, before / found.name)
    for file in (FOLDER / SOLUTIONS / found.name).iterdir():
        shutil.copy(file, found.name)
    monkeypatch.chdir(found.name)
    wrong = []
    for command in (command for exercise, command in commands_of_exercises() if exercise == name):
        way, words = way_of(command), words_of(command)
        if isinstance(way, Planned):
            code, out, said = typed("plan", words[1])
            expected = 0
        elif isinstance(way, Here):
            if words[0] == "exercise":
                monkeypatch.chdir(before)
            code, out, said = typed(*words, *words_of(way.more))
            expected = way.code
            monkeypatch.chdir(tmp_path / found.name)
        else:
            continue
        if code != expected or not out + said:
            wrong.append(f"{command}: exit code {code}: {out[-300:]} {said[-300:]}")
    assert wrong == []
