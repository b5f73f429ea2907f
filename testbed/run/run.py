"""The line from a proved plan to a result folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import __version__
from testbed.emulate.build import build_lab
from testbed.emulate.client import Lab
from testbed.emulate.probe import capabilities, require, versions
from testbed.emulate.share import require_shares
from testbed.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS, InputError, LabError, Problem
from testbed.model import Sample
from testbed.plan import Plan
from testbed.results import ResultFolder, load_run
from testbed.run.choose import Choice, choose_dilation
from testbed.run.controlled import controller_findings
from testbed.run.fidelity import Finding, Judgement, Verdict
from testbed.run.learn import flood_findings, flooded, teach
from testbed.run.load_mpi import prepare_mpi
from testbed.run.one_load import load_labels, run_load
from testbed.run.pathcheck import installed_problems
from testbed.workloads.spec import Mpi, Npb

_SHOWN_PROBLEMS = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        folder: its result folder.
        verdict: worst verdict of all loads.
        reasons: why.
        samples: every figure, in real-world units.
    """

    folder: Path
    verdict: Verdict
    reasons: tuple[str, ...]
    samples: tuple[Sample, ...]

    @property
    def exit_code(self) -> int:
        """0 pass, 3 warnings, 1 fail or invalid."""
        return {Verdict.PASS: EXIT_PASS, Verdict.WARN: EXIT_WARNINGS}.get(self.verdict, EXIT_FAIL)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured, in a folder that is not finished yet.

    Attributes:
        folder: holds all but the report.
        judgement: of all loads.
        samples: every figure, in real-world units.
    """

    folder: ResultFolder
    judgement: Judgement
    samples: tuple[Sample, ...]


def run_in_lab(plan: Plan, results: Path, progress: Callable[[str], None]) -> Outcome:
    """Build the plan's lab, run its loads, and store everything.

    Args:
        plan: proved or not; nothing is started without proof.
        results: folder that gets the run's folder.
        progress: called with one line on what is going on.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was started.
        LabError: the lab broke; the folder stays, marked incomplete.
    """
    measured = measure(plan, results, progress)
    folder, judgement = measured.folder, measured.judgement
    return finish(folder, judgement.verdict, judgement.reasons, measured.samples, progress)


def finish(
    folder: ResultFolder,
    verdict: Verdict,
    reasons: tuple[str, ...],
    samples: tuple[Sample, ...],
    progress: Callable[[str], None],
) -> Outcome:
    """Draw the report of a run of which all else is stored, and give its folder the final name."""
    progress("writing the report")
    from testbed.report import render_report  # noqa: PLC0415 - the virtual machine, which is slow, needs none

    folder.write_text("report.html", render_report(load_run(folder.path, unfinished=True)))
    return Outcome(folder.finish(), verdict, reasons, samples)


def require_loads(plan: Plan) -> None:
    """Raise unless the plan is proved, is for a lab, and there is something to measure."""
    plan.require_proof()
    if plan.scenario.engine != "lab":
        sentence = f"is {plan.scenario.engine}, and a lab was asked for; leave --engine out, or --set engine=lab"
        raise InputError.one(f"{plan.scenario.source}: engine", sentence)
    if not plan.scenario.workloads:
        raise InputError.one(
            f"{plan.scenario.source}: workloads",
            "there is none, so nothing would be measured; `testbed up` only builds",
        )


def measure(plan: Plan, results: Path, progress: Callable[[str], None]) -> Measured:
    """Do all that run_in_lab() does, but for the report and the folder's final name."""
    require_loads(plan)
    require(plan.scenario)
    require_shares(plan)
    prepare_jobs(plan, progress)
    folder = ResultFolder(results, plan)
    with checked_lab(plan, folder, progress) as lab:
        settled, choice = choose_dilation(plan, lab, progress)
        flooded_before = flooded(plan, lab)
        samples, loads, findings = _run_loads(settled, lab, folder, progress)
        findings += flood_findings(plan, flooded_before, flooded(plan, lab))
        findings += changes_since(plan, lab)
    judgement = Judgement.of(findings)
    folder.write_samples(samples)
    folder.write_manifest(judgement.verdict.word, judgement.reasons, loads, lab_facts(settled, choice, lab))
    return Measured(folder, judgement, tuple(samples))


@contextmanager
def checked_lab(plan: Plan, folder: ResultFolder, progress: Callable[[str], None]) -> Iterator[Lab]:
    """Build a plan's lab, store what it is, and check its paths; it ends with the block.

    Raises:
        LabError: the lab broke, perhaps in the block; it also says where the folder is.
    """
    try:
        with build_lab(plan, progress=lambda step: progress(f"building the lab: {step}")) as lab:
            folder.write_plan(environment(lab.built))
            progress("checking the path of every pair")
            check_paths(plan, lab)
            yield lab
    except LabError as error:
        raise LabError(f"{error}\nwhat was stored until then: {folder.path}") from error


def changes_since(plan: Plan, lab: Lab) -> list[Finding]:
    """What is no longer as it was built: the shaping, and rules that a controller keeps."""
    shaping: list[Finding] = [(Verdict.INVALID, f"shaping changed: {problem}") for problem in lab.ask("shaping")]
    return shaping + controller_findings(plan, lab)


def lab_facts(settled: Plan, choice: Choice | None, lab: Lab) -> dict[str, Any]:
    """What the manifest tells of a lab.

    Args:
        settled: the plan at the dilation that was measured.
        choice: how the dilation was chosen; None = the scenario gave it.
        lab: that was measured in.
    """
    return {
        "dilation": settled.scenario.lab.chosen_dilation,
        "dilation_choice": choice.as_dict() if choice else None,
        "cpu_share": lab.built["cpu_share"],
    }


def prepare_jobs(plan: Plan, progress: Callable[[str], None]) -> None:
    """Build all MPI jobs; nothing else is started where one of them cannot run."""
    problems: list[Problem] = []
    for number, load in enumerate(plan.scenario.workloads):
        if isinstance(load.spec, Mpi | Npb):
            progress(f"building the MPI job {' '.join(load_labels(load).values())}")
            try:
                prepare_mpi(plan, load.spec, f"{plan.scenario.source}: workloads.{number}")
            except InputError as error:
                problems += [problem for problem in error.problems if problem not in problems]
    if problems:
        raise InputError(problems)


def check_paths(plan: Plan, lab: Lab) -> None:
    """Raise LabError unless every pair's path on the dumped rules is the plan's and every pair answers a ping.

    Switches that learn are taught first.
    """
    teach(plan, lab)
    problems = installed_problems(plan, lab.ask("flows"), lab.ask("groups") if plan.bundles else None)
    if not problems:
        problems = [f"{source}→{destination} does not answer a ping" for source, destination in lab.ask("reach")]
    if problems:
        shown = "\n".join(f"  {problem}" for problem in problems[:_SHOWN_PROBLEMS])
        raise LabError(f"the lab is not what the plan says, in {len(problems)} points; no load was run\n{shown}")


def _run_loads(
    plan: Plan, lab: Lab, folder: ResultFolder, progress: Callable[[str], None]
) -> tuple[list[Sample], list[dict[str, Any]], list[Finding]]:
    samples: list[Sample] = []
    loads: list[dict[str, Any]] = []
    findings: list[Finding] = []
    count = len(plan.scenario.workloads)
    for number, load in enumerate(plan.scenario.workloads, 1):
        record = run_load(plan, lab, folder, load, number, progress, f"load {number} of {count}")
        samples += record.samples
        loads.append(record.entry)
        findings += record.findings
        folder.write_samples(samples)
    return samples, loads, findings


def environment(built: Mapping[str, Any]) -> dict[str, Any]:
    """The machine and versions a run was made with."""
    return {
        "testbed": __version__,
        "engine": "native",
        "datapath": built["datapath"],
        "switch_daemons": len(built["switch_daemons"]),
        "controller": built["controller"] or "none",
        "open_vswitch": built["ovs"],
        "kernel": built["kernel"],
        "tools": versions(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "build_seconds": built["seconds"],
        "capabilities": {c.name: c.detail if c.present else f"missing: {c.consequence}" for c in capabilities()},
    }
