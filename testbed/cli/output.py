"""How results and errors reach people and programs."""

from __future__ import annotations

import io
import json
import os
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from testbed.errors import InputError, Problem, TestbedError

if TYPE_CHECKING:
    from testbed.model import Sample
    from testbed.plan import Plan
    from testbed.run.engine import Outcome

_STYLES = {"pass": "green", "warn": "yellow", "invalid": "red", "fail": "red"}
# What is said behind a verdict that is easily taken for another; its reasons follow.
_MEANING = {"warn": ", the figures can be used with this reserve:"}
# Version of the form of every command's JSON: higher when something in it is renamed, removed or means another thing.
JSON_VERSION = 1
messages = Console(stderr=True, highlight=False)
results = Console(highlight=False)


class Format(str, Enum):
    """Form of the output."""

    text = "text"
    json = "json"


def say(text: str, style: str | None = None, *, to: Console = results, whole: bool = False) -> None:
    """Print text: on a terminal in lines that end between words, elsewhere on lines as long as it has them.

    `whole` leaves it to the terminal where a line ends: for what is copied, such as a command.
    """
    if to.is_terminal and not whole:
        text = "\n".join(_wrapped(line, to.width) for line in text.split("\n"))
    to.print(text, style=style, markup=False, soft_wrap=True)


def _wrapped(line: str, width: int) -> str:
    """A line as lines that fit; those after the first are two columns further in. A long word stays whole."""
    indent = " " * (len(line) - len(line.lstrip(" ")) + 2)
    return "\n".join(
        textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    )


def say_entries(entries: Mapping[str, str]) -> None:
    """Print names in a column and what they are in another."""
    column = max(map(len, entries)) + 4
    for name, text in entries.items():
        line = f"  {name:<{column - 2}}{text}"
        if results.is_terminal:
            line = textwrap.fill(line, results.width, subsequent_indent=" " * column, break_on_hyphens=False)
        say(line, whole=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object, on its own, with the version of its form."""
    numbered = {"schema_version": JSON_VERSION, **value}
    text = json.dumps(numbered, ensure_ascii=False, indent=1)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(numbered, indent=1)  # in any encoding
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def printable_everywhere() -> None:
    r"""Let what the output's encoding lacks be written as \u2192; an output that is closed takes anything."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the program lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def made_plan(name: str, settings: Sequence[str] | None = None) -> Plan:
    """Plan and prove a scenario that is named on the command line."""
    from testbed.plan import make_plan
    from testbed.scenario import find_scenario, load_scenario

    return make_plan(load_scenario(find_scenario(name), settings or ()))


def load_plugins(files: Sequence[str] | None) -> None:
    """Take in what installed packages and some files offer.

    Raises:
        InputError: all that is wrong with the files.
    """
    from testbed.scenario.plugins import load_files, load_installed

    load_installed()
    problems: list[Problem] = []
    load_files(list(files or ()), Path(), problems)
    if problems:
        raise InputError([replace(problem, key=problem.key.replace("plugins.", "--plugin ")) for problem in problems])


def form_problems(option: str, file: Path | None, *forms: str) -> list[Problem]:
    """What is wrong with a file that is to be drawn, by its suffix."""
    if file is None or file.suffix[1:].lower() in forms:
        return []
    *first, last = (f".{form}" for form in forms)
    return [Problem(option, f'should be a file that ends in {", ".join(first)} or {last}, not "{file}"')]


def write_file(file: Path, content: bytes) -> None:
    """Write a file that the user has named.

    Raises:
        InputError: it cannot be written.
    """
    try:
        file.write_bytes(content)
    except OSError as error:
        raise InputError.one(str(file), f"cannot be written: {error.strerror}") from error


def print_outcome(outcome: Outcome) -> None:
    """Print the verdict of a run, why, and where its results are."""
    word = outcome.verdict.word
    say(f"verdict: {word}{_MEANING.get(word, '')}", _STYLES[word])
    for reason in outcome.reasons:
        say(f"  {reason}")
    if outcome.advice:
        say(outcome.advice)
    say(f"results: {outcome.folder}")
    say(f"report:  {outcome.folder / 'report.html'}")


def outcome_object(outcome: Outcome, **facts: object) -> dict[str, object]:
    """A run as JSON has it."""
    return {
        "results": str(outcome.folder),
        "verdict": outcome.verdict.word,
        "reasons": list(outcome.reasons),
        **({"advice": outcome.advice} if outcome.advice else {}),
        **facts,
        "samples": [_sample_object(sample) for sample in outcome.samples],
    }


def _sample_object(sample: Sample) -> dict[str, object]:
    found = {"metric": sample.metric, "value": sample.value, "unit": sample.unit, "labels": dict(sample.labels)}
    return found if sample.predicted is None else {**found, "predicted": sample.predicted}


def print_error(error: TestbedError, *, as_json: bool) -> None:
    """Print an error as sentences; for programs as an object too."""
    lines = [str(problem) for problem in error.problems] if isinstance(error, InputError) else [str(error)]
    for line in lines:  # first, since the output may be what fails
        say(line, "red", to=messages)
    if as_json:
        problems = [{"place": p.place, "sentence": p.sentence} for p in getattr(error, "problems", ())]
        print_json({"error": str(error), "problems": problems, "exit_code": error.exit_code})


class Steps:
    """Says what is going on: one living line on a terminal, a line a step elsewhere."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._status = messages.status("") if messages.is_terminal else None
        self._last = ""

    def __call__(self, text: str) -> None:
        """Show a step."""
        if self._status is not None:
            self._status.update(text)
        elif text != self._last:
            messages.print(f"[{time.monotonic() - self._started:6.1f} s] {text}", markup=False, soft_wrap=True)
        self._last = text


@contextmanager
def steps() -> Iterator[Steps]:
    """Show steps while the block runs."""
    shown = Steps()
    status = shown._status
    if status is None:
        yield shown
        return
    with status:
        yield shown


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show on a terminal what takes a while; elsewhere nothing."""
    if messages.is_terminal:
        with messages.status(text):
            yield
    else:
        yield
