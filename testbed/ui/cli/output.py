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

from testbed.base.errors import InputError, Problem, TestbedError
from testbed.base.files import write_whole
from testbed.base.units import format_eta
from testbed.base.untrusted_text import escape_json, escape_line
from testbed.ui.cli.terminal import EscapingConsole, escape_streams

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.status import Status

    from testbed.base.model import Sample
    from testbed.experiments.run.engine import RunOutcome
    from testbed.planning import Plan
    from testbed.planning.size import Size

_STYLES = {"pass": "green", "warn": "yellow", "invalid": "red", "fail": "red"}
# What is said behind a verdict that is easily taken for another; its reasons follow.
_MEANING = {"warn": ", the figures can be used with this reserve:"}
# Version of the form of every command's JSON: higher when something in it is renamed, removed or means another thing.
JSON_VERSION = 1
messages = EscapingConsole(stderr=True, highlight=False, markup=False, emoji=False)
results = EscapingConsole(highlight=False, markup=False, emoji=False)


class Format(str, Enum):
    """Form of the output."""

    text = "text"
    json = "json"


def print_lines(
    text: str | Sequence[str], style: str | None = None, *, to: Console = results, whole: bool = False
) -> None:
    r"""Print a line, or several: on a terminal they end between words, elsewhere they are as long as they are.

    What ends a line within one, such as a name of others, is shown as `\x0a`. `whole` leaves it to the terminal where a
    line ends: for what is copied, such as a command.
    """
    from rich.text import Text

    lines = [escape_line(line) for line in ([text] if isinstance(text, str) else text)]  # before they are measured
    if to.is_terminal and not whole:
        lines = [_wrap_line(line, to.width) for line in lines]
    to.print(Text("\n".join(lines)), style=style, soft_wrap=True)


def _wrap_line(line: str, width: int) -> str:
    """A line as lines that fit; those after the first are two columns further in. A long word stays whole."""
    indent = " " * (len(line) - len(line.lstrip(" ")) + 2)
    return "\n".join(
        textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    )


def say_entries(entries: Mapping[str, str]) -> None:
    """Print names in a column and what they are in another."""
    column = max(map(len, entries)) + 4
    for name, text in entries.items():
        lines = [escape_line(f"  {name:<{column - 2}}{text}")]
        if results.is_terminal:
            lines = textwrap.wrap(lines[0], results.width, subsequent_indent=" " * column, break_on_hyphens=False)
        print_lines(lines, whole=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object, on its own, with the version of its form."""
    numbered = {"schema_version": JSON_VERSION, **value}
    text = escape_json(json.dumps(numbered, ensure_ascii=False, indent=1))
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(numbered, indent=1)  # in any encoding
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def printable_everywhere() -> None:
    r"""Let what the output's encoding lacks be written as \u2192, and what would steer a terminal as \x1b.

    An output that is closed takes anything.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the program lives
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    escape_streams()


def plan_scenario(name: str, settings: Sequence[str] | None = None) -> Plan:
    """Plan and prove a scenario that is named on the command line."""
    from testbed.engines.lab.hosts.available_memory import require_room
    from testbed.planning import make_plan
    from testbed.scenario import find_scenario, load_scenario

    def check_size(size: Size) -> None:
        require_room(size)
        if size.is_large:
            print_lines(size.sentence, to=messages)

    return make_plan(load_scenario(find_scenario(name), settings or ()), check_size)


def load_plugins(files: Sequence[str] | None) -> None:
    """Take in what installed packages and some files offer.

    Raises:
        InputError: all that is wrong with the files.
    """
    from testbed.scenario.plugins import load_files, load_installed

    load_installed()
    problems: list[Problem] = []
    load_files(list(files or ()), Path(), problems, trust=True)  # named by whoever calls
    if problems:
        raise InputError([replace(problem, key=problem.key.replace("plugins.", "--plugin ")) for problem in problems])


_PICTURES = ("svg", "pdf", "png")  # what a figure is written as, by its suffix


def form_problems(option: str, file: Path | None) -> list[Problem]:
    """What is wrong with a file that is to be drawn, by its suffix."""
    if file is None or file.suffix[1:].lower() in _PICTURES:
        return []
    *first, last = (f".{form}" for form in _PICTURES)
    return [Problem(option, f'should be a file that ends in {", ".join(first)} or {last}, not "{file}"')]


def write_file(file: Path, content: bytes) -> None:
    """Write a file that the user has named.

    Raises:
        InputError: it cannot be written.
    """
    try:
        write_whole(file, content)
    except OSError as error:
        raise InputError.one(str(file), f"cannot be written: {error.strerror}") from error


def print_outcome(outcome: RunOutcome) -> None:
    """Print the verdict of a run and why, three figures, where its results are, and what to type next."""
    from testbed.experiments.report.key_figures import headline
    from testbed.planning.proof import find_declared_deadlock

    word = outcome.verdict.word
    declared = find_declared_deadlock(outcome.reasons) if word == "pass" else ""
    print_lines(f"verdict: {word}{f': {declared}' if declared else _MEANING.get(word, '')}", _STYLES[word])
    for reason in outcome.reasons:
        print_lines(f"  {reason}")
    figures = headline(outcome.samples)
    if figures:
        print_lines(f"figures: {'; '.join(figures)}")
    print_lines(f"results: {outcome.folder}")
    print_lines(f"report:  {outcome.folder / 'report.html'}")
    if outcome.advice:
        print_lines(outcome.advice)


def outcome_object(outcome: RunOutcome, **facts: object) -> dict[str, object]:
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
    print_lines(str(error).split("\n"), "red", to=messages)  # first, since the output may be what fails
    if as_json:
        problems = [{"place": p.place, "sentence": p.sentence} for p in getattr(error, "problems", ())]
        print_json({"error": str(error), "problems": problems, "exit_code": error.exit_code})


# Whether every step is to be told, as -v asks.
_verbose = [False]


def tell_every_step() -> None:
    """From now on let steps() leave none out."""
    _verbose[0] = True


class Steps:
    """Says what is going on: one living line on a terminal, elsewhere a line whenever another thing begins.

    What a step does is said before its first colon; of those that do the same only the first is told, unless -v asks
    for all. On a terminal -v leaves a line for each step above the living one.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._until: float | None = None
        self._last = self.text = ""
        self._living = _StatusLine(self) if messages.is_terminal else None  # which looks at the text at once

    def expect(self, seconds: float | None) -> None:
        """Say how long the rest takes from now on; None = that is not known."""
        self._until = None if seconds is None else time.monotonic() + seconds

    def __call__(self, text: str) -> None:
        """Show a step."""
        self.text = text
        every = _verbose[0]
        if self._living is not None:
            self._living.refresh()
        if (self._living is None or every) and _strip_detail(text, every) != self._last:
            self._last = _strip_detail(text, every)
            line = f"[{time.monotonic() - self._started:6.1f} s] {self._last}"
            messages.print(line, markup=False, soft_wrap=True)

    @property
    def left(self) -> str:
        """How long it takes yet, in words; empty where that is not known, or was wrong."""
        left = None if self._until is None else self._until - time.monotonic()
        return "" if left is None or left < 1 else format_eta(left)


def _strip_detail(text: str, every: bool) -> str:
    return text if every else text.partition(": ")[0]


class _StatusLine:
    """The line at the bottom of a terminal: a spinner, the step, how long it has taken, and how long it takes yet."""

    def __init__(self, steps: Steps) -> None:
        from rich.live import Live
        from rich.spinner import Spinner

        self._steps, self._begun = steps, time.monotonic()
        self._spinner = Spinner("dots", style="status.spinner")
        self.live = Live(get_renderable=self._line, console=messages, transient=True, refresh_per_second=8)

    def refresh(self) -> None:
        """Show the step that has begun."""
        if self.live.is_started:
            self.live.refresh()

    def _line(self) -> RenderableType:
        from rich.table import Table
        from rich.text import Text

        taken = f"{time.monotonic() - self._begun:.0f} s"
        end = f"{taken}, {self._steps.left}" if self._steps.left else taken
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(width=1)
        line.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        line.add_column(justify="right", no_wrap=True, width=len(end))
        line.add_row(self._spinner, Text(escape_line(self._steps.text)), Text(end, style="dim"))
        return line


_SPINNER = 2  # columns, with the space behind it
# What moves at the bottom of the terminal at present.
_moving: list[Live | Status] = []


@contextmanager
def _show_live(moving: Live | Status) -> Iterator[None]:
    with moving:
        _moving.append(moving)
        try:
            yield
        finally:
            _moving.pop()


@contextmanager
def pause_display() -> Iterator[None]:
    """Let nothing move on the terminal while the block asks something there."""
    for moving in _moving:
        moving.stop()
    try:
        yield
    finally:
        for moving in _moving:
            moving.start()


@contextmanager
def steps() -> Iterator[Steps]:
    """Show steps while the block runs."""
    shown = Steps()
    living = shown._living
    if living is None:
        yield shown
        return
    with _show_live(living.live):
        yield shown


@contextmanager
def show_progress(text: str) -> Iterator[None]:
    """Show on a terminal what takes a while; elsewhere nothing."""
    if messages.is_terminal:
        from rich.text import Text

        line = Text(escape_line(text))
        line.truncate(max(messages.width - _SPINNER, 1), overflow="ellipsis")  # a second line could begin as ours do
        with _show_live(messages.status(line)):
            yield
    else:
        yield
