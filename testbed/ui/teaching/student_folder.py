"""A student's folder: begun from an exercise, read by its judges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from testbed.base.errors import InputError
from testbed.base.files import make_folder, read_bytes, rename, write_whole
from testbed.base.limits import parse_json
from testbed.base.model import Topology
from testbed.planning import Plan, make_plan
from testbed.planning.scenario_fabric import build_fabric
from testbed.scenario import Scenario, scenario_of_blocks
from testbed.scenario.parameter_models import format_value
from testbed.scenario.read_blocks import read_blocks
from testbed.ui.teaching import student_config as by_hand
from testbed.ui.teaching.student_config import Switches

MARK = ".exercise"  # the file of a student's folder that names its exercise
ANSWERS = "answers.yaml"
_MAX_BYTES = 2**20
_T = TypeVar("_T")


class Work:
    """What a student has handed in, read once; `given` is the folder of the exercise's own files."""

    def __init__(self, folder: Path, given: Path) -> None:
        self.folder, self.given = folder, given
        self._kept: dict[tuple[str, str], Any] = {}

    def text(self, name: str) -> str:
        """Text of a file.

        Raises:
            InputError: it is not there, is empty, too large or no text.
        """
        return _text(self.folder, name)

    def answers(self) -> dict[str, object]:
        """Answers by key.

        Raises:
            InputError: the file cannot be read as such.
        """
        return self._read_once("answers", ANSWERS, lambda: read_blocks(self.text(ANSWERS), ANSWERS, ())[0])

    def answer(self, key: str) -> object:
        """One answer.

        Raises:
            InputError: there is none yet.
        """
        found = self.answers().get(key)
        if found in (None, "", []):
            raise InputError.one(key, "has no answer yet; write it behind the colon", ANSWERS)
        return found

    def scenario(self, name: str) -> Scenario:
        """A scenario of the student's.

        Raises:
            InputError: it is none, or all that is wrong with it.
        """
        return self._read_once("scenario", name, lambda: self._scenario(self.folder, name))

    def plan(self, name: str) -> Plan:
        """The plan of a scenario of the student's.

        Raises:
            InputError: all that is wrong with it.
        """
        return self._read_once("plan", name, lambda: make_plan(self.scenario(name)))

    def given_plan(self, name: str) -> Plan:
        """The plan of a scenario that the exercise gives."""
        return self._read_once("given plan", name, lambda: make_plan(self._scenario(self.given, name)))

    def wiring(self, name: str) -> Topology:
        """The fabric of a scenario that the exercise gives."""
        return self._read_once("wiring", name, lambda: build_fabric(self._scenario(self.given, name)))

    def switches(self, name: str, wiring: str) -> Switches:
        """Switches of a fabric of the exercise, as a file of the student's configures them.

        Raises:
            InputError: the file's lines that are wrong.
        """
        return self._read_once(wiring, name, lambda: by_hand.parse(self.text(name), self.wiring(wiring), name))

    def given_switches(self, name: str, wiring: str) -> Switches:
        """Likewise as a file of the exercise does; an empty name is switches as they are delivered."""
        if not name:
            return by_hand.make_factory_default(self.wiring(wiring))
        return by_hand.parse(_text(self.given, name), self.wiring(wiring), name)

    def is_unmodified(self, name: str) -> bool:
        """Whether a file is still as the exercise gives it."""
        try:
            return self.text(name).split() == _text(self.given, name).split()
        except InputError:
            return False

    def json(self, name: str) -> dict[str, Any]:
        """What a command has written as JSON.

        Raises:
            InputError: it is no JSON object.
        """
        text = self.text(name)
        try:
            found = parse_json(text)
        except ValueError as error:
            raise InputError.one(name, f"is not the JSON that the command prints: {error}") from error
        if not isinstance(found, dict):
            raise InputError.one(name, f"should be the JSON object that the command prints, not {format_value(found)}")
        return found

    def _scenario(self, folder: Path, name: str) -> Scenario:
        raw, problems = read_blocks(_text(folder, name), str(folder / name), ())
        if "plugins" in raw:  # programs of a student's, which would run at whoever grades
            raise InputError.one("plugins", "has no place in an exercise; leave it out", name)
        return scenario_of_blocks(raw, str(folder / name), problems)

    def _read_once(self, kind: str, name: str, read: Callable[[], _T]) -> _T:
        key = (kind, name)
        if key not in self._kept:
            try:
                self._kept[key] = read()
            except InputError as error:
                self._kept[key] = error
        found = self._kept[key]
        if isinstance(found, InputError):
            raise found
        result: _T = found
        return result


def _text(folder: Path, name: str) -> str:
    file = folder / name
    try:
        if file.exists() and not file.is_file():
            raise InputError.one(name, "is no file")  # a pipe or a device would never end
        if file.stat().st_size > _MAX_BYTES:
            raise InputError.one(name, "is larger than 1 MB; nothing that is asked for here is")
        text = read_bytes(file, folder).decode("utf-8-sig")  # editors of some systems begin with a mark
    except FileNotFoundError as error:
        raise InputError.one(name, "is not there; the sheet says how to make it") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(name, f"cannot be read: {reason}") from error
    if not text.strip():
        raise InputError.one(name, "is empty")
    return text


def begin(exercise: str, given: Path, sheet: Path, folder: Path) -> None:
    """Make a student's folder.

    Raises:
        InputError: it is there already, or cannot be made.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InputError.one(str(folder), "is there already; go on in it, or begin elsewhere")
    _copy(exercise, given, sheet, folder)


def reset(exercise: str, given: Path, sheet: Path, folder: Path) -> Path:
    """Begin again; returns the folder in which what was there is kept.

    Raises:
        InputError: it is no folder of this exercise.
    """
    require(exercise, folder)
    number = 1
    while (kept := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    rename(folder, kept)
    _copy(exercise, given, sheet, folder)
    return kept


def _copy(exercise: str, given: Path, sheet: Path, folder: Path) -> None:
    try:
        make_folder(folder)
        for file in [*sorted(given.iterdir()), sheet]:
            write_whole(folder / file.name, file.read_bytes())
        write_whole(folder / MARK, f"{exercise}\n".encode())
    except OSError as error:
        raise InputError.one(str(folder), f"cannot be made: {error.strerror}") from error


def exercise_of(folder: Path) -> str | None:
    """Name of the exercise that a folder was begun for; None where it was not."""
    try:
        return read_bytes(folder / MARK, folder).decode().strip()
    except (OSError, UnicodeDecodeError):
        return None


def name_or_here(name: str | None) -> str:
    """The exercise that is named, else the one of the current folder.

    Raises:
        InputError: none is named, and the folder is of none.
    """
    found = name or exercise_of(Path())
    if found is None:
        sentence = "is required here: this folder was not made by `testbed exercise start`; see `testbed exercise list`"
        raise InputError.one("NAME", sentence)
    return found


def place_of(exercise: str, folder: Path | None) -> Path:
    """The folder that is meant: the one named, else this one if it is of the exercise, else that of its name."""
    if folder is not None:
        return folder
    here = Path()
    return here if exercise_of(here) == exercise else Path(exercise)


def require(exercise: str, folder: Path) -> None:
    """Let only a folder of this exercise pass.

    Raises:
        InputError: it is not there, or of another.
    """
    if not folder.is_dir():
        raise InputError.one(str(folder), f"is no folder; begin with: testbed exercise start {exercise}")
    found = exercise_of(folder)
    if found is None:
        sentence = f"was not made by `testbed exercise start {exercise}`; its file {MARK} is missing"
        raise InputError.one(str(folder), sentence)
    if found != exercise:
        raise InputError.one(str(folder), f"is of the exercise {found}, not of {exercise}")
