"""One load in a running lab: run, judged, and stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from testbed.base.errors import DeadlockError, WorkloadError
from testbed.base.model import Sample
from testbed.engines.session import Session
from testbed.experiments.run.checks.fidelity import Finding, Judgement, Verdict, is_cpu_limited, too_slow
from testbed.experiments.run.checks.wire_bounds import judge_wire
from testbed.experiments.run.loads.context import Context, LoadOutcome
from testbed.experiments.run.loads.failure_watch import run_probe
from testbed.experiments.run.loads.run_iperf3 import run_iperf3
from testbed.experiments.run.loads.run_mpi import prepare_mpi, run_mpi
from testbed.experiments.run.loads.run_pairs import run_pairs
from testbed.experiments.run.loads.run_script import prepare_script, run_script
from testbed.fabric.traffic import pattern_label
from testbed.planning import Plan
from testbed.results import ResultFolder
from testbed.results.samples import changes_file, failures_file
from testbed.results.store import LoadEntry
from testbed.results.telemetry import file_name, join, telemetry_to_bytes
from testbed.scenario import Workload
from testbed.scenario.parameter_models import key_of
from testbed.scenario.workloads import WORKLOADS
from testbed.scenario.workloads.pairs import OutputError


@dataclass(frozen=True, slots=True)
class Runner:
    """How a kind of load is run in a lab; what is known of it without one is in WORKLOADS."""

    run: Callable[[Context, Any], LoadOutcome]  # runs and judges it
    # builds what it runs before any lab is; given the plan, its parameters and its key for messages, it raises
    # InputError or CapabilityError
    prepare: Callable[[Plan, Any, str], object] | None = None


RUNNERS: dict[str, Runner] = {
    "ping": Runner(run_pairs),
    "rr": Runner(run_pairs),
    "iperf3": Runner(run_iperf3),
    "probe": Runner(run_probe),
    "mpi": Runner(run_mpi, prepare_mpi),
    "npb": Runner(run_mpi, prepare_mpi),
    "script": Runner(run_script, prepare_script),
}


def runner_of(kind: str) -> Runner:
    """How a kind is run; one of a plug-in measures pairs."""
    return RUNNERS.get(kind) or Runner(run_pairs)


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """What a load came to."""

    samples: list[Sample]  # in real-world units
    entry: LoadEntry  # of the manifest
    findings: list[Finding]  # about fidelity, each with the load's title
    outcome: LoadOutcome | None  # as its runner gave it; None where it failed
    too_slow: bool = False  # whether its figures are void only because the lab was too slow for it
    is_cpu_limited: bool = False  # whether they have a reserve, and only because it had little time left
    span: tuple[float, float] = (0.0, 0.0)  # when it began and ended; s, monotonic


def run_load(
    plan: Plan,
    lab: Session,
    folder: ResultFolder,
    load: Workload,
    number: int,
    progress: Callable[[str], None],
    which: str,
    more: Mapping[str, str] | None = None,
    *,
    moving: bool = False,
) -> LoadRecord:
    """Run a load and store its raw output and telemetry.

    Args:
        plan: what is installed, at the dilation the lab has now.
        lab: the lab.
        folder: of the run.
        load: what to run.
        number: of the load in the folder.
        progress: called with one line on what is going on.
        which: said before the title in these lines.
        more: further labels, whose values are said after the title.
        moving: whether the lab is carried over to other plans meanwhile; figures then have no prediction.
    """
    context = load_context(plan, lab, folder, load.kind, number, progress, which, {**load_labels(load), **(more or {})})

    def run(context: Context) -> LoadOutcome:
        outcome = runner_of(load.kind).run(context, load.spec)
        if moving:
            outcome.samples = [replace(sample, predicted=None) for sample in outcome.samples]
        return outcome

    return record_outcome(replace(context, moving=moving), folder, run)


def load_context(
    plan: Plan,
    lab: Session,
    folder: ResultFolder,
    kind: str,
    number: int,
    progress: Callable[[str], None],
    which: str,
    labels: Mapping[str, str],
) -> Context:
    """The context of a load: its samples have its number, kind and labels, its raw output a folder of its own."""
    title = title_of(kind, labels)
    prefix = raw_folder(number, title)
    return Context(
        plan=plan,
        lab=lab,
        labels={"load": str(number), "kind": kind, **labels},
        keep_raw=lambda name, text: folder.write_text(f"{prefix}/{name}", text),
        progress=lambda text: progress(f"{which}, {title}: {text}"),
    )


def title_of(kind: str, labels: Mapping[str, str]) -> str:
    """A load in words."""
    return " ".join([kind, *labels.values()])


def raw_folder(number: int, title: str) -> str:
    """Where the raw output of a load is, in the folder of the run."""
    return f"raw/{number}-{title.replace(' ', '-')}"


def record_outcome(context: Context, folder: ResultFolder, run: Callable[[Context], LoadOutcome]) -> LoadRecord:
    """Run what gives the outcome of a load in a lab; a load that fails is a record as well."""
    expected = context.plan.scenario.expect == "deadlock"
    return record_of(context.labels, folder, lambda: run(context), deadlock=Verdict.PASS if expected else Verdict.FAIL)


def record_of(
    labels: Mapping[str, str], folder: ResultFolder, run: Callable[[], LoadOutcome], deadlock: Verdict = Verdict.FAIL
) -> LoadRecord:
    """Run what gives the outcome of a load; a load that fails is a record as well.

    Args:
        labels: number of the load, its kind, and what else tells it from others.
        folder: of the run.
        run: gives the outcome, or raises WorkloadError or OutputError.
        deadlock: the verdict on one.
    """
    started, outcome = time.monotonic(), None
    title, number = " ".join(value for key, value in labels.items() if key != "load"), labels["load"]
    try:
        outcome = run()
        # The plan says nothing of links that were given other rates meanwhile.
        findings = [*outcome.findings, *([] if outcome.changes else judge_wire(outcome.samples))]
        if outcome.failures:
            folder.write_json(failures_file(number), outcome.failures)
        if outcome.changes:
            folder.write_json(changes_file(number), outcome.changes)
        if outcome.telemetry:
            folder.write_bytes(file_name(number), telemetry_to_bytes(join(outcome.telemetry)))
    except DeadlockError as error:
        findings = [(deadlock, str(error))]
    except (WorkloadError, OutputError) as error:
        findings = [(Verdict.FAIL, str(error))]
    ended, judgement = time.monotonic(), Judgement.merge(findings)
    entry: LoadEntry = {
        "load": number,
        "title": title,
        "kind": labels["kind"],
        "verdict": judgement.verdict.word,
        "reasons": list(judgement.reasons),
        "seconds": round(ended - started, 2),
    }
    if outcome and outcome.times:
        entry["times"] = outcome.times._asdict()
    if outcome and outcome.no_matrix:
        entry["no_traffic_matrix"] = outcome.no_matrix
    if outcome and outcome.clock_error:
        entry["clock_error"] = round(outcome.clock_error, 6)
    samples = outcome.samples if outcome else []
    told = [(verdict, f"{title}: {reason}") for verdict, reason in findings]
    span = (started, ended)
    return LoadRecord(samples, entry, told, outcome, too_slow(findings), is_cpu_limited(findings), span)


def load_labels(load: Workload) -> Mapping[str, str]:
    """What tells a load from others of its kind, by label."""
    found = {key_of(name): getattr(load.spec, name) for name in WORKLOADS[load.kind].labels}
    # A job may be a path; its last part then says enough. Listed pairs may be many.
    short = {name: pattern_label(value) if name == "pattern" and value else value for name, value in found.items()}
    return {name: value.rstrip("/").rpartition("/")[2] for name, value in short.items() if value is not None}
