"""A scenario's loads in the packet-level simulator, stored as those of a lab are."""

from __future__ import annotations

import dataclasses
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from testbed import __version__
from testbed.errors import InputError, Problem
from testbed.model import Floats, Sample
from testbed.plan import Plan
from testbed.plan.rates import at_dilation
from testbed.results import ResultFolder
from testbed.run.fidelity import Finding, Judgement, Verdict, judge_prediction
from testbed.run.one_load import load_labels
from testbed.run.run import Outcome, finish
from testbed.scenario import Scenario, Workload
from testbed.simulate.load import SimulatedLoad
from testbed.simulate.runs import bundle_problems
from testbed.workloads.spec import Iperf3, Probe, failures_of

_WHY_NOT = {
    "ping": "it measures programs and processors, which the simulator has none of; testbed simulate gives latencies",
    "iperf3": "TCP's control of its rate is not modelled; datagrams are (protocol: udp)",
    "mpi": "the program would have to run",
    "npb": "the program would have to run",
}


def run_in_simulator(plan: Plan, results: Path, progress: Callable[[str], None]) -> Outcome:
    """Simulate the plan's UDP loads at real-world rates, and store everything.

    Args:
        plan: proved or not; nothing is started without proof.
        results: folder that gets the run's folder.
        progress: called with one line on what is going on.

    Raises:
        InputError, VerificationError: nothing was started.
    """
    plan.require_proof()
    plan = at_dilation(plan, 1.0)
    ready = simulated_loads(plan)
    folder = ResultFolder(results, plan)
    folder.write_plan(_environment(plan))
    samples: list[Sample] = []
    loads: list[dict[str, Any]] = []
    everything: list[Finding] = []
    for number, load in enumerate(plan.scenario.workloads, 1):
        told_apart = load_labels(load)
        title, started = " ".join([load.kind, *told_apart.values()]), time.monotonic()
        findings: list[Finding] = [(Verdict.WARN, f"not simulated: {_WHY_NOT[load.kind]}")]
        if number in ready:
            count = f"load {number} of {len(plan.scenario.workloads)}, {title}"
            found, findings = _simulate(ready[number], lambda text, count=count: progress(f"{count}: {text}"))  # type: ignore[misc]
            samples += found
        judgement = Judgement.of(findings)
        everything += [(verdict, f"{title}: {reason}") for verdict, reason in findings]
        loads.append(
            {
                "load": str(number),
                "title": title,
                "kind": load.kind,
                "verdict": judgement.verdict.word,
                "reasons": list(judgement.reasons),
                "seconds": round(time.monotonic() - started, 2),
            }
        )
        folder.write_samples(samples)
    judgement = Judgement.of(everything)
    folder.write_manifest(judgement.verdict.word, judgement.reasons, loads, {"dilation": 1.0, "engine": "simulate"})
    return finish(folder, judgement.verdict, judgement.reasons, tuple(samples), progress)


def simulated_loads(plan: Plan) -> dict[int, SimulatedLoad]:
    """Number of each load that can be simulated → what its repeats share.

    Raises:
        InputError: there is none, the switches do not go with the fabric or the frames, or a load asks for what the
            simulator cannot do; all problems.
    """
    scenario = plan.scenario
    problems = [*bundle_problems(plan), *_failure_problems(scenario)]
    found: dict[int, SimulatedLoad] = {}
    wanted = [number for number, load in enumerate(scenario.workloads, 1) if _is_udp(load)]
    if not wanted:
        sentence = "none can be simulated: that takes {kind: iperf3, protocol: udp}; leave engine: simulate out"
        problems.append(Problem(f"{scenario.source}: workloads", sentence))
    if not problems:
        for number in wanted:
            load = scenario.workloads[number - 1]
            labels = {"load": str(number), "kind": load.kind, **load_labels(load)}
            try:
                found[number] = SimulatedLoad.of(plan, load.spec, labels)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def _failure_problems(scenario: Scenario) -> list[Problem]:
    """A sentence for each load with failures, without which a result would look as if the fabric had borne them."""
    return [
        Problem(
            f"{scenario.source}: workloads.{index}.failures",
            "links and switches do not fail in the simulator; take "
            f"{'the load' if isinstance(load.spec, Probe) else 'it'} out, or leave engine: simulate out",
        )
        for index, load in enumerate(scenario.workloads)
        if failures_of(load.spec)
    ]


def _is_udp(load: Workload) -> bool:
    return isinstance(load.spec, Iperf3) and load.spec.protocol == "udp"


def _simulate(load: SimulatedLoad, progress: Callable[[str], None]) -> tuple[list[Sample], list[Finding]]:
    """Simulate all repeats of a load; judge each flow's median."""
    samples: list[Sample] = []
    findings: list[Finding] = []
    reached: list[Floats] = []
    repeats = load.spec.repeats
    for number in range(1, repeats + 1):
        progress(f"{len(load.pairs)} flows, repeat {number} of {repeats}")
        repeat = load.run(number)
        samples += repeat.samples
        if repeat.cycle:
            declared = load.plan.scenario.expect == "deadlock"
            ring = " waits for ".join((*repeat.cycle, repeat.cycle[0]))
            word = "deadlock as declared" if declared else "deadlock"
            findings.append((Verdict.PASS if declared else Verdict.FAIL, f"{word} in repeat {number}: {ring}"))
        else:
            reached.append(repeat.reached)
    if reached:
        medians = np.median(reached, axis=0).tolist()
        findings += judge_prediction(load.spec.protocol, medians, [1.0] * len(medians))
    return samples, findings


def _environment(plan: Plan) -> dict[str, Any]:
    """What a run was made with."""
    return {
        "testbed": __version__,
        "engine": "simulate",
        "simulator": dataclasses.asdict(plan.scenario.simulator),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
    }
