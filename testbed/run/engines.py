"""One scenario, and what runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from testbed.plan import Plan
from testbed.run.run import Outcome, run_in_lab


def run_scenario(plan: Plan, results: Path, progress: Callable[[str], None]) -> Outcome:
    """Run the plan's loads by the scenario's engine, and store everything; see run_in_lab() and run_in_simulator()."""
    if plan.scenario.engine == "lab":
        return run_in_lab(plan, results, progress)
    from testbed.run.simulated import run_in_simulator  # noqa: PLC0415 - a lab does without the simulator

    return run_in_simulator(plan, results, progress)
