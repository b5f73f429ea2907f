"""The engines there are, and the one way to run a scenario by any of them.

Each is loaded when it is asked for: models bring their compiler along, which takes as long as building a small lab.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from testbed.base.errors import InputError
from testbed.engines.lab.control.client import LabClient
from testbed.engines.session import Session
from testbed.experiments.run.advice import Invocation
from testbed.experiments.run.engine import Engine, Prerequisites, Progress, RunOutcome, finish
from testbed.experiments.run.in_session import LabBuilder
from testbed.planning import Plan
from testbed.results import ResultFolder
from testbed.scenario import Scenario
from testbed.scenario.engines import ENGINES

MODULES = {"ovs": "lab", "vm": "vm", "realtime": "realtime", "simulate": "simulated"}


def engine_named(name: str) -> Engine:
    """The engine of a scenario's `engine`."""
    engine: Engine = _module(name).ENGINE
    return engine


def _module(name: str) -> ModuleType:
    return import_module(f"testbed.experiments.run.{MODULES[name]}")


def _fabric(plan: Plan) -> LabBuilder:
    """What a plan's labs on this machine have of their own."""
    fabric: LabBuilder = _module(plan.scenario.engine).LAB
    return fabric


def find_lab_engine(
    scenario: Scenario,
) -> tuple[Callable[[Plan, Progress], Prerequisites], Callable[[Plan, Progress, bool], LabClient]]:
    """`missing` and `build` of a scenario's engine.

    Raises:
        InputError: no lab of its engine can run by itself on this machine.
    """
    engine = engine_named(scenario.engine)
    if engine.build is None:
        able = " or ".join(name for name in MODULES if engine_named(name).build is not None)
        sentence = (
            f"is {scenario.engine}, and this command needs a lab on this machine; leave it out, or make it {able}"
        )
        raise InputError.one("engine", sentence, scenario.source)
    return engine.missing, engine.build


def checked_session(
    engine: Engine, plan: Plan, folder: ResultFolder, progress: Progress
) -> AbstractContextManager[Session]:
    """What carries a plan's frames, with its paths checked; `engine`: one that has such a thing."""
    if engine.session is None:
        raise ValueError(f"{plan.scenario.engine} is no engine of sessions")
    return engine.session(plan, folder, progress)


def facts_of(plan: Plan, lab: Session) -> dict[str, object]:
    """What results tell of a lab that runs on this machine, and of this machine."""
    return _fabric(plan).environment(plan.scenario.engine, lab)


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
    plan.require_proof()
    scenario = plan.scenario
    if ENGINES[scenario.engine].programs:
        plan.require_tables()
    if not scenario.workloads:
        sentence = "there is none, so nothing would be measured; `testbed up` only builds"
        raise InputError.one("workloads", sentence, scenario.source)
    engine = engine or engine_named(scenario.engine)
    engine.missing(plan, progress).raise_if_missing()
    return finish(engine.measure(plan, results, progress), progress, asked or Invocation.from_scenario(scenario))
