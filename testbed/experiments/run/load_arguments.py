"""Loads as they are typed: a kind, and KEY=VALUE behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testbed.base.errors import InputError, Problem, did_you_mean
from testbed.scenario.plugins import load_installed
from testbed.scenario.read_blocks import read_value
from testbed.scenario.workloads import WORKLOADS


def read_loads(words: Sequence[str], running: Sequence[str]) -> list[dict[str, Any]] | None:
    """Loads as a scenario lists them; None where none is named. `running`: names of labs, for messages.

    Raises:
        InputError: a word is no kind of load, or a value cannot be read.
    """
    load_installed()
    found: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for number, word in enumerate(words):
        key, equals, text = word.partition("=")
        if not equals and (word in WORKLOADS or number):
            found.append({"kind": word})
        elif not equals:
            known = f"labs: {', '.join(running) or 'none is running'}; loads: {', '.join(WORKLOADS)}"
            meant = did_you_mean(word, [*running, *WORKLOADS])
            problems.append(Problem(word, f"is neither a running lab nor a kind of load.{meant} Known {known}"))
        elif not found:
            problems.append(Problem(word, "stands before a kind of load; write one first, such as iperf3"))
        elif key in found[-1]:
            problems.append(Problem(key, f"is given twice for {found[-1]['kind']}; write it once"))
        else:
            try:
                found[-1][key] = read_value(text, key)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems)
    return found or None


def as_typed(problem: Problem) -> Problem:
    """A problem of a load that was typed, without the number of the load in a file that there is not."""
    _, _, key = problem.key.removeprefix("workloads.").partition(".")
    return Problem(key or problem.key, problem.sentence)
