"""The engines there are, as one table, and the one way to run a scenario by any of them."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import InputError
from testbed.plan import Plan
from testbed.run import lab, realtime, simulated, vm
from testbed.run.engine import Engine, Outcome, Progress, finish

ENGINES: dict[str, Engine] = {
    "ovs": Engine(lab.missing, lab.measure),
    "vm": Engine(vm.missing, vm.measure),
    "realtime": Engine(realtime.missing, realtime.measure),
    "simulate": Engine(simulated.missing, simulated.measure),
}


def run_scenario(plan: Plan, results: Path, progress: Progress) -> Outcome:
    """Run the plan's loads by the scenario's engine, and store everything.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was measured and nothing is left.
        LabError: the lab broke; the folder stays, marked incomplete.
    """
    plan.require_proof()
    scenario = plan.scenario
    if not scenario.workloads:
        sentence = "there is none, so nothing would be measured; `testbed up` only builds"
        raise InputError.one("workloads", sentence, scenario.source)
    engine = ENGINES[scenario.engine]
    engine.missing(plan, progress).refuse()
    return finish(engine.measure(plan, results, progress), progress)
