"""Whether what a scenario names may run or be built: `--trust`, or a question on a terminal, remembered by content."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.base.trust import Program, decide_trust_with, is_remembered, remember, user_name
from testbed.base.untrusted_text import escape_line
from testbed.ui.cli.output import messages, pause_display, print_lines

# Whether --trust is given, and what it or an answer has let run in this command.
_given = [False]
_trusted: set[str] = set()


def trust_programs() -> None:
    """From now on let plug-ins run, and MPI jobs be built, that the scenario of this command names, as --trust asks."""
    _given[0] = True


@contextmanager
def ask_for_trust() -> Iterator[None]:
    """While a command runs, let --trust or whoever sits at the terminal decide."""
    _given[0] = False
    _trusted.clear()
    with decide_trust_with(_decide):
        yield


def _decide(file: Program) -> bool:
    if file.digest in _trusted or is_remembered(file):
        return True
    if not (_given[0] or _ask_trust(file)):
        return False
    _trusted.add(file.digest)
    unkept = remember(file)
    if unkept:
        print_lines(f"that {file.path} is trusted is not remembered: {unkept}", "yellow", to=messages)
    else:
        print_lines(
            f"{file.path} is trusted from now on, as long as it is the same (SHA-256 {file.digest})", to=messages
        )
    return True


def _ask_trust(file: Program) -> bool:
    """Ask, where somebody can answer; a thread beside the command serves others, as the live page does."""
    if threading.current_thread() is not threading.main_thread():
        return False
    if not (messages.is_terminal and sys.stdin is not None and sys.stdin.isatty()):
        return False
    caller = user_name(os.geteuid())
    with pause_display():
        print_lines(f"The scenario names {file.role} as {caller}:", to=messages)
        print_lines(f"  {escape_line(file.path)}, of {file.owner}, {file.size}, SHA-256 {file.digest}", to=messages)
        messages.print("Run it, now and whenever it is the same? [y/N] ", end="", markup=False)
        return sys.stdin.readline().strip().lower() in ("y", "yes")
