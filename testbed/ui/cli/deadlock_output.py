"""How commands that simulate one run tell of a deadlock, and what they end with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS
from testbed.ui.cli.output import print_lines

if TYPE_CHECKING:
    from testbed.planning import Plan


def print_deadlock(plan: Plan, cycle: Sequence[str], when: str) -> None:
    """Print what waits for each other, in green where the scenario declares it."""
    declared = plan.scenario.expect == "deadlock"
    ring = " waits for ".join((*cycle, cycle[0]))
    print_lines(f"deadlock{' as declared' if declared else ''} {when}: {ring}", "green" if declared else "red")


def choose_exit_code(plan: Plan, cycle: Sequence[str]) -> int:
    """Pass, a deadlock that is none of the plan's, or a declared one that did not form."""
    if plan.scenario.expect == "deadlock":
        return EXIT_PASS if cycle else EXIT_WARNINGS
    return EXIT_FAIL if cycle else EXIT_PASS
