"""The engines there are, and the one way to run a scenario by any of them.

Each is loaded when it is asked for: models bring their compiler along, which takes as long as building a small lab.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from testbed.base.errors import InputError
from testbed.experiments.run.advice import Invocation
from testbed.experiments.run.engine import Engine, Progress, RunOutcome, finish
from testbed.experiments.run.in_session import LabEngine, SessionEngine
from testbed.planning import Plan
from testbed.scenario import Scenario
from testbed.scenario.engines import ENGINES

_PLACES = {
    "ovs": ("testbed.experiments.run.open_vswitch", "OpenVSwitchEngine"),
    "vm": ("testbed.experiments.run.vm", "VirtualMachineEngine"),
    "realtime": ("testbed.experiments.run.realtime", "RealtimeEngine"),
    "simulate": ("testbed.experiments.run.simulated", "SimulatorEngine"),
}


def engine_named(name: str) -> Engine:
    """The engine of a scenario's `engine`."""
    module, kind = _PLACES[name]
    engine: Engine = getattr(import_module(module), kind)()
    return engine


def find_session_engine(scenario: Scenario) -> SessionEngine:
    """A scenario's engine, which must hold a fabric while loads run.

    Raises:
        InputError: it does not.
    """
    engine = engine_named(scenario.engine)
    if not isinstance(engine, SessionEngine):
        raise _refuse(scenario, "changes a fabric while it runs", SessionEngine)
    return engine


def find_lab_engine(scenario: Scenario) -> LabEngine:
    """A scenario's engine, which must have labs on this machine.

    Raises:
        InputError: no lab of it can run by itself on this machine.
    """
    engine = engine_named(scenario.engine)
    if not isinstance(engine, LabEngine):
        raise _refuse(scenario, "needs a lab on this machine", LabEngine)
    return engine


def _refuse(scenario: Scenario, need: str, kind: type) -> InputError:
    able = " or ".join(name for name in ENGINES if isinstance(engine_named(name), kind))
    sentence = f"is {scenario.engine}, and this command {need}; leave it out, or make it {able}"
    return InputError.one("engine", sentence, scenario.source)


def run_scenario(
    plan: Plan, results: Path, progress: Progress, asked: Invocation | None = None, engine: Engine | None = None
) -> RunOutcome:
    """Run the plan's loads by the scenario's engine, and store everything.

    `asked` is how `testbed run` is asked for it; None = by the scenario's file alone. `engine` is another one than the
    table's.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was measured and nothing is left.
        LabError: the lab broke; the folder stays, marked incomplete.
    """
    engine = prepare_engine(plan, progress, engine)
    return finish(engine.measure(plan, results, progress), progress, asked or Invocation.from_scenario(plan.scenario))


def prepare_engine(plan: Plan, progress: Progress, engine: Engine | None = None) -> Engine:
    """The engine by which a plan is run, by default its scenario's, when nothing is missing for that.

    Raises:
        InputError, VerificationError, CapabilityError: all that is missing.
    """
    plan.require_proof()
    scenario = plan.scenario
    if ENGINES[scenario.engine].programs:
        plan.require_tables()
    if not scenario.workloads:
        sentence = "there is none, so nothing would be measured; `testbed up` only builds"
        raise InputError.one("workloads", sentence, scenario.source)
    engine = engine or engine_named(scenario.engine)
    engine.find_missing(plan, progress).raise_if_missing()
    return engine
