"""The engine `ovs`: from a proved plan to a lab on this machine, its loads and what is stored of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from testbed import __version__
from testbed.emulate.build import build_lab
from testbed.emulate.calibration import require_shares
from testbed.emulate.probe import capabilities, require, versions
from testbed.errors import CapabilityError, InputError, LabError, Problem
from testbed.messages import Facts
from testbed.plan import Plan
from testbed.results import ResultFolder
from testbed.run.checks.fidelity import Finding, Verdict
from testbed.run.dilation.choose import Choice, choose_dilation
from testbed.run.engine import Measured, Missing, Progress, run_loads
from testbed.run.loads.context import flood_findings, flooded
from testbed.run.loads.one_load import RUNNERS, load_labels, run_load
from testbed.session import Session

_SHOWN_PROBLEMS = 5


def missing(plan: Plan, progress: Progress) -> Missing:
    """What scenario or machine lack for a lab on this machine; MPI jobs are built."""
    lacking: dict[str, None] = {}
    checks: tuple[Callable[[], None], ...] = (lambda: require(plan.scenario), lambda: require_shares(plan))
    for check in checks:
        try:
            check()
        except CapabilityError as error:
            lacking |= dict.fromkeys(str(error).split("\n"))
    problems: dict[Problem, None] = {}
    for number, load in enumerate(plan.scenario.workloads):
        prepare = RUNNERS[load.kind].prepare
        if prepare is not None:
            progress(f"building {load.kind} {' '.join(load_labels(load).values())}")
            try:
                prepare(plan, load.spec, f"workloads.{number}")
            except InputError as error:
                problems |= dict.fromkeys(error.problems)
            except CapabilityError as error:
                lacking[str(error)] = None
    return Missing(tuple(problems), tuple(lacking))


def measure(plan: Plan, results: Path, progress: Progress) -> Measured:
    """Build the plan's lab, run its loads, and store all but the report; see Engine."""
    folder = ResultFolder(results, plan)
    with checked_lab(plan, folder, progress) as lab:
        settled, choice = choose_dilation(plan, lab, progress)
        flooded_before = flooded(plan, lab)
        records = run_loads(
            settled, folder, lambda load, number, which: run_load(settled, lab, folder, load, number, progress, which)
        )
        records.findings += flood_findings(plan, flooded_before, flooded(plan, lab))
        records.findings += changes_since(plan, lab)
    return records.store(folder, lab_facts(settled, choice, lab))


@contextmanager
def checked_lab(plan: Plan, folder: ResultFolder, progress: Progress) -> Iterator[Session]:
    """Build a plan's lab, store what it is, and check its paths; it ends with the block.

    Raises:
        LabError: the lab broke, perhaps in the block; it also says where the folder is.
    """
    try:
        with build_lab(plan, progress=lambda step: progress(f"building the lab: {step}")) as lab:
            folder.write_plan(environment(plan.scenario.engine, lab.facts))
            progress("checking the path of every pair")
            check_paths(plan, lab)
            yield lab
    except LabError as error:
        raise LabError(error.sentence, folder.path) from error


def changes_since(plan: Plan, lab: Session) -> list[Finding]:
    """What is no longer as it was built."""
    return [(Verdict.INVALID if one.void else Verdict.WARN, one.sentence) for one in lab.deviations(plan)]


def lab_facts(settled: Plan, choice: Choice | None, lab: Session) -> dict[str, object]:
    """What the manifest tells of a lab.

    Args:
        settled: the plan at the dilation that was measured.
        choice: how the dilation was chosen; None = the scenario gave it.
        lab: that was measured in.
    """
    return {
        "engine": settled.scenario.engine,
        "dilation": settled.scenario.lab.chosen_dilation,
        "dilation_choice": choice.as_dict() if choice else None,
        "cpu_share": None if lab.facts.cpu_share is None else asdict(lab.facts.cpu_share),
    }


def check_paths(plan: Plan, lab: Session) -> None:
    """Raise LabError unless every pair's path on the dumped rules is the plan's and every pair answers a ping.

    Switches that learn are taught first.
    """
    problems = lab.verify(plan)
    if problems:
        shown = "\n".join(f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS])
        raise LabError(f"the lab is not what the plan says, in {len(problems)} points; no load was run\n{shown}")


def environment(engine: str, facts: Facts) -> dict[str, object]:
    """The machine and versions a run was made with."""
    return {
        "testbed": __version__,
        "engine": engine,
        "datapath": facts.datapath,
        "switch_daemons": len(facts.switch_daemons),
        "controller": facts.controller or "none",
        "open_vswitch": facts.version,
        "kernel": facts.kernel,
        "tools": versions(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "build_seconds": facts.seconds,
        "capabilities": {c.name: c.detail if c.present else f"missing: {c.consequence}" for c in capabilities()},
    }
