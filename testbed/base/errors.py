"""Every error a user can meet, and the exit code it ends with.

TestbedError                  one sentence; exit 1
├── InputError                something the user wrote is wrong: a list of problems; exit 2
├── VerificationError         a plan that breaks an invariant: a list of violations; exit 1
├── CapabilityError           this machine cannot do it: what, the consequence, the remedy; exit 2
├── LabError                  the lab broke while being built or used; exit 1
├── WorkloadError             a load did not run or its output cannot be trusted; exit 1
│   └── DeadlockError         a load came to a stop, because links wait for each other for ever; exit 1
└── StorageError              results cannot be written, as on a full disk; exit 1
"""

from __future__ import annotations

import csv
import difflib
import json
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.base.untrusted_text import escape_line

EXIT_PASS = 0
EXIT_FAIL = 1
EXIT_NOTHING_RAN = 2
EXIT_WARNINGS = 3
EXIT_INTERRUPTED = 130


LONGEST_TEXT, LONGEST_PLACE = 2000, 300  # characters of a sentence, and of a file or key, that is shown
MOST_LINES = 40  # of a message
_LONGEST_WORD = 100  # characters of a word that is compared with known ones
_MARK = 60  # characters that what stands in place of the middle may take


def shorten_middle(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text without the middle where it is longer than anybody reads; how much was left out stands in its place."""
    if len(text) <= longest:
        return text
    tail = longest // 4
    head = longest - tail - _MARK
    return f"{text[:head]}… ({len(text) - head - tail:,} characters left out) …{text[-tail:]}"


def indent_lines(text: str) -> list[str]:
    """What another program printed, as lines of a message: those after the first are two columns further in."""
    first, *more = text.strip().splitlines() or [""]
    return [first, *(f"  {line}" for line in more)]


def _cut_line(text: str, longest: int = LONGEST_TEXT) -> str:
    """Likewise of a text that is to be a line, which what ends one, or steers a terminal, makes longer."""
    return shorten_middle(escape_line(shorten_middle(text, longest)), longest)


def _cut_lines(lines: Sequence[str]) -> list[str]:
    """A message of lines, without those that a screen has no place for, and with no more ends of lines than those."""
    shown = [_cut_line(line, 2 * LONGEST_TEXT) for line in lines[:MOST_LINES]]
    if len(lines) > len(shown):
        shown.append(f"… and {len(lines) - len(shown):,} lines more")
    return shown


class TestbedError(Exception):
    r"""Base of all errors that are shown to the user as a sentence and not as a traceback.

    Args:
        sentence: it, or several, each of which has a line: what ends one within a sentence, such as a name of others,
            is shown as `\x0a`.
        folder: what was stored until then, if there is one.
    """

    __test__ = False  # not a test class, whatever its name looks like to pytest
    exit_code = EXIT_FAIL

    def __init__(self, sentence: str | Sequence[str], folder: Path | None = None) -> None:
        self.lines = tuple(_cut_lines([sentence] if isinstance(sentence, str) else sentence))
        self.sentence = "\n".join(self.lines)
        stored = [] if folder is None else [escape_line(f"what was stored until then: {folder}")]
        super().__init__("\n".join([*self.lines, *stored]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be the same error in another process, whatever it was made from."""
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(kind: type[TestbedError], args: tuple[Any, ...], fields: dict[str, Any]) -> TestbedError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the input."""

    key: str  # where it is: a key, an option, or what a reader would look for
    sentence: str  # what is wrong and what would be right
    file: str = ""  # that the key is in, where it is in one

    def __post_init__(self) -> None:
        """Keep what it quotes to what can be read, and the sentence to a line."""
        for name, longest in (("key", LONGEST_PLACE), ("file", LONGEST_PLACE)):
            object.__setattr__(self, name, shorten_middle(getattr(self, name), longest))
        object.__setattr__(self, "sentence", _cut_line(self.sentence))

    @property
    def place(self) -> str:
        """File and key."""
        return ": ".join(part for part in (self.file, self.key) if part)

    def in_file(self, file: str) -> Problem:
        """The same problem, of a key of a file."""
        return replace(self, file=file)

    def __str__(self) -> str:
        """Return `place: sentence`."""
        return f"{escape_line(self.place)}: {self.sentence}" if self.place else self.sentence


class InputError(TestbedError):
    """What the user wrote is wrong; carries every problem found, not only the first."""

    exit_code = EXIT_NOTHING_RAN

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__([str(problem) for problem in self.problems])

    @classmethod
    def one(cls, key: str, sentence: str, file: str = "") -> InputError:
        """Make an error of a single problem."""
        return cls([Problem(key, sentence, file)])


class VerificationError(TestbedError):
    """The plan breaks an invariant, or breaks none although the scenario expects it to.

    `details` are lines below the sentence.
    """

    def __init__(self, sentence: str, file: str = "", details: Sequence[str] = ()) -> None:
        self.reason, self.details = sentence, tuple(details)
        first = f"{file}: {sentence}" if file else sentence
        super().__init__([shorten_middle(first), *(f"  {shorten_middle(line)}" for line in self.details)])


class LackWarning(UserWarning):
    """Something works, but not all of it, since this machine or this user lacks something."""


class CapabilityError(TestbedError):
    """This machine lacks something; the sentence names the consequence and the remedy."""

    exit_code = EXIT_NOTHING_RAN


class LabError(TestbedError):
    """A lab could not be built, or broke while it was in use."""


class WorkloadError(TestbedError):
    """A load did not run, or what it printed cannot be trusted."""


class DeadlockError(WorkloadError):
    """A load came to a stop, because links wait for each other for ever."""


class StorageError(TestbedError):
    """Results cannot be written; what was stored until then stays, marked incomplete."""


# Whether the command line has called: then arguments are called by their options.
_ON_COMMAND_LINE = [False]


@contextmanager
def naming_options() -> Iterator[None]:
    """While the block runs, call arguments in sentences by the options of the command line."""
    before, _ON_COMMAND_LINE[0] = _ON_COMMAND_LINE[0], True
    try:
        yield
    finally:
        _ON_COMMAND_LINE[0] = before


def argument(name: str, value: object = None) -> str:
    """An argument as the caller writes it: `warm_up` in Python, `--warm-up` on the command line.

    With a value it is the whole word: `floods="members"` or `--floods members`, and `trust=True` or `--trust`.
    """
    if not _ON_COMMAND_LINE[0]:
        return name if value is None else f"{name}={value!r}"
    option = f"--{name.replace('_', '-')}"
    return option if value is None or value is True else f"{option} {value}"


def setting(key: str, value: object = None) -> str:
    """Likewise a key of a scenario that a setting replaces: `settings={"lab.dilation": 50}` or `--set lab.dilation=50`.

    Without a value it is where the setting stands: `settings lab.dilation` or `--set lab.dilation`.
    """
    command = _ON_COMMAND_LINE[0]
    if value is None:
        return f"{'--set' if command else 'settings'} {key}".rstrip()
    text = value if isinstance(value, str) else json.dumps(value)
    return f"--set {key}={text}" if command else f"settings={{{json.dumps(key)}: {value!r}}}"


# What code that reads a file's content raises where the content is not what the code has written.
_DAMAGE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError, EOFError,
    NotImplementedError, csv.Error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


@contextmanager
def reading(file: Path | str, remedy: str = "") -> Iterator[None]:
    """Make one sentence that names the file of whatever goes wrong while it is read and understood in the block.

    `remedy` stands behind it.

    Raises:
        InputError: it cannot be read, or holds something else.
    """
    place, more = shorten_middle(str(file), LONGEST_PLACE), f"; {remedy}" if remedy else ""
    try:
        yield
    except InputError as error:
        raise InputError([Problem(place, f"{problem.sentence}{more}") for problem in error.problems]) from error
    except UnicodeDecodeError as error:
        raise InputError.one(place, f"is damaged: it is not UTF-8 text{more}") from error
    except OSError as error:
        raise InputError.one(place, f"cannot be read: {error.strerror or error}{more}") from error
    except _DAMAGE as error:
        told = isinstance(error, ValueError | TypeError | csv.Error | zipfile.BadZipFile) and str(error)
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error) if told else repr(error)
        raise InputError.one(place, f"is damaged: {reason}{more}") from error


def did_you_mean(word: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """Return ` Did you mean "x"?` for a near miss of a known word, else the empty string.

    `likeness`: from 0 to 1, how much of both has to be the same.
    """
    if len(str(word)) > _LONGEST_WORD:
        return ""
    spelling = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(word).lower(), list(spelling), n=1, cutoff=likeness)
    return f' Did you mean "{spelling[close[0]]}"?' if close else ""
