"""A scenario's loads in the packet-level simulator, stored as those of a lab are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.base.model import Floats, Sample
from testbed.engines.simulate.result_folder import environment
from testbed.engines.simulate.simulated_load import SimulatedLoad
from testbed.experiments.run.checks.fidelity import Finding, Verdict, judge_prediction
from testbed.experiments.run.engine import Engine, MeasuredRun, Prerequisites, Progress, run_loads
from testbed.experiments.run.loads.context import LoadOutcome
from testbed.experiments.run.loads.one_load import LoadRecord, load_labels, record_of
from testbed.planning import Plan
from testbed.planning.proof import deadlock_word
from testbed.planning.rates import at_dilation
from testbed.results import ResultFolder
from testbed.scenario import Workload
from testbed.scenario.workloads import WORKLOADS


def simulated_loads(plan: Plan) -> dict[int, SimulatedLoad]:
    """Number of each load that can be simulated → what its repeats share.

    Raises:
        InputError: there is none, or the switches do not go with the fabric or the frames; all problems.
    """
    scenario = plan.scenario
    problems: list[Problem] = []
    found: dict[int, SimulatedLoad] = {}
    loads = enumerate(scenario.workloads, 1)
    wanted = [number for number, load in loads if not WORKLOADS[load.kind].why_not_simulated(load.spec)]
    if not wanted:
        sentence = (
            "none can be simulated: that takes {kind: iperf3}, and reno where it is TCP; leave engine: simulate out"
        )
        problems.append(Problem("workloads", sentence, scenario.source))
    if not problems:
        for number in wanted:
            load = scenario.workloads[number - 1]
            labels = {"load": str(number), "kind": load.kind, **load_labels(load)}
            try:
                found[number] = SimulatedLoad.from_load(plan, load.spec, labels)
            except InputError as error:
                problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def _simulate(load: SimulatedLoad, progress: Progress) -> LoadOutcome:
    """Simulate all repeats of a load; judge each flow's median."""
    samples: list[Sample] = []
    findings: list[Finding] = []
    reached: list[Floats] = []
    repeats = load.spec.repeats
    progress("predicting")
    predicted = load.predict_goodput()
    for number in range(1, repeats + 1):
        progress(f"{len(load.pairs)} flows, repeat {number} of {repeats}")
        repeat = load.run(number, predicted)
        samples += repeat.samples
        if repeat.cycle:
            declared = load.plan.scenario.expect == "deadlock"
            ring = " waits for ".join((*repeat.cycle, repeat.cycle[0]))
            said = f"{deadlock_word(load.plan.scenario)} in repeat {number}: {ring}"
            findings.append((Verdict.PASS if declared else Verdict.FAIL, said))
        else:
            reached.append(repeat.reached)
    if reached:
        medians = np.median(reached, axis=0).tolist()
        findings += judge_prediction(load.spec.protocol, medians, [1.0] * len(medians))
    return LoadOutcome(samples, findings)


class SimulatorEngine(Engine):
    """The packet simulator, which starts no program."""

    def find_missing(self, plan: Plan, progress: Progress) -> Prerequisites:
        """What cannot be simulated of a scenario; of the machine nothing is needed."""
        del progress
        try:
            simulated_loads(at_dilation(plan, 1.0))
        except InputError as error:
            return Prerequisites(error.problems)
        return Prerequisites()

    def measure(self, plan: Plan, results: Path, progress: Progress) -> MeasuredRun:
        """Simulate the plan's loads at real-world rates, and store all but the report; see Engine."""
        plan = at_dilation(plan, 1.0)
        ready = simulated_loads(plan)
        folder = ResultFolder(results, plan)
        folder.write_plan(environment(simulator=dataclasses.asdict(plan.scenario.simulator)))

        def run(load: Workload, number: int, which: str) -> LoadRecord:
            labels = {"load": str(number), "kind": load.kind, **load_labels(load)}
            title = " ".join([load.kind, *load_labels(load).values()])

            def simulate() -> LoadOutcome:
                if number in ready:
                    return _simulate(ready[number], lambda text: progress(f"{which}, {title}: {text}"))
                return LoadOutcome(
                    findings=[(Verdict.WARN, f"not simulated: {WORKLOADS[load.kind].why_not_simulated(load.spec)}")]
                )

            return record_of(labels, folder, simulate)

        return run_loads(plan, folder, run).store(folder, {"dilation": 1.0, "engine": plan.scenario.engine})
