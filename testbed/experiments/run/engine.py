"""What an engine is, and what all of them do alike: one load after the other, judged and stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testbed.base.errors import EXIT_FAIL, EXIT_PASS, EXIT_WARNINGS, CapabilityError, InputError, Problem
from testbed.base.model import Sample
from testbed.experiments.run.advice import AskedOfLab, Invocation, advice
from testbed.experiments.run.checks.fidelity import Finding, Judgement, Verdict
from testbed.experiments.run.loads.one_load import LoadRecord
from testbed.planning import Plan
from testbed.results import ResultFolder, load_run
from testbed.results.store import LoadEntry
from testbed.scenario import Workload

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run came to."""

    folder: Path  # its result folder
    verdict: Verdict  # worst verdict of all loads
    reasons: tuple[str, ...]  # why
    samples: tuple[Sample, ...]  # every figure, in real-world units
    advice: str = ""  # what to type where the lab was too slow; mostly empty

    @property
    def exit_code(self) -> int:
        """0 pass, 3 warnings, 1 fail or invalid."""
        return {Verdict.PASS: EXIT_PASS, Verdict.WARN: EXIT_WARNINGS}.get(self.verdict, EXIT_FAIL)


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What was measured, in a folder that is not finished yet."""

    folder: ResultFolder  # holds all but the report
    judgement: Judgement  # of all loads
    samples: tuple[Sample, ...]  # every figure, in real-world units


@dataclass(frozen=True, slots=True)
class Prerequisites:
    """What an engine lacks to run a plan."""

    problems: tuple[Problem, ...] = ()  # of the scenario
    lacking: tuple[str, ...] = ()  # of this machine, each with the consequence and the remedy

    def raise_if_missing(self) -> None:
        """Let only what is complete pass.

        Raises:
            InputError, CapabilityError: all that is missing.
        """
        if self.problems:
            raise InputError(self.problems)
        if self.lacking:
            raise CapabilityError(self.lacking)


class Engine(ABC):
    """One way to run a proved plan."""

    @abstractmethod
    def find_missing(self, plan: Plan, progress: Progress) -> Prerequisites:
        """All that the scenario or this machine lacks. Nothing is started for it, but MPI jobs are built."""

    @abstractmethod
    def measure(self, plan: Plan, results: Path, progress: Progress) -> MeasuredRun:
        """Run the loads of a plan that lacks nothing, and store all but the report in a new folder of `results`.

        Raises:
            LabError: that broke; the new folder stays, marked incomplete.
        """


@dataclass(slots=True)
class Records:
    """What all loads of a run came to, so far."""

    samples: list[Sample] = field(default_factory=list)  # in real-world units
    loads: list[LoadEntry] = field(default_factory=list)  # their entries in the manifest
    findings: list[Finding] = field(default_factory=list)  # about fidelity, each with the load's title

    def add(self, record: LoadRecord) -> None:
        """Take over what a load came to."""
        self.samples += record.samples
        self.loads.append(record.entry)
        self.findings += record.findings

    def store(self, folder: ResultFolder, facts: Mapping[str, Any]) -> MeasuredRun:
        """Judge all of it, and write samples and manifest."""
        judgement = Judgement.merge(self.findings)
        folder.write_samples(self.samples)
        folder.write_manifest(judgement.verdict.word, judgement.reasons, self.loads, facts)
        return MeasuredRun(folder, judgement, tuple(self.samples))


def run_loads(plan: Plan, folder: ResultFolder, run: Callable[[Workload, int, str], LoadRecord]) -> Records:
    """Run the plan's loads one after the other; what was measured until then is always stored.

    `run` runs one, given its number from 1 and what to call it: `load 1 of 3`.
    """
    records, count = Records(), len(plan.scenario.workloads)
    for number, load in enumerate(plan.scenario.workloads, 1):
        records.add(run(load, number, f"load {number} of {count}"))
        folder.write_samples(records.samples)
    return records


def finish(measured: MeasuredRun, progress: Progress, asked: Invocation | AskedOfLab | None = None) -> RunOutcome:
    """Draw the report of a run of which all else is stored, and give its folder the final name.

    `asked` is how a command was asked for it, to say what to type where the lab was too slow; None = it was not.
    """
    progress("writing the report")
    from testbed.experiments.report import render_report  # noqa: PLC0415 - the virtual machine, which is slow, needs none

    folder, judgement = measured.folder, measured.judgement
    run = load_run(folder.path, unfinished=True)
    said = advice(run, asked) if asked is not None else ""
    if said:
        run = replace(run, manifest={**run.manifest, "advice": said})
        folder.write_json("manifest.json", run.manifest)
    folder.write_text("report.html", render_report(run))
    return RunOutcome(folder.finish(), judgement.verdict, judgement.reasons, measured.samples, said)
