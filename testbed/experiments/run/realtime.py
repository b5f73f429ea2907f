"""The engine `realtime`: real hosts on this machine, whose network is the packet-level model, at the clock's pace."""

from __future__ import annotations

from functools import partial

from testbed.base.errors import InputError
from testbed.engines.realtime.client import ModelClient, build_model_lab
from testbed.engines.session import Session
from testbed.experiments.run import lab
from testbed.experiments.run.engine import Engine, Prerequisites, Progress
from testbed.experiments.run.in_session import LabBuilder, build_checked_lab, measure_in
from testbed.planning import Plan


def find_missing(plan: Plan, progress: Progress) -> Prerequisites:
    """What scenario or machine lack; MPI jobs are built."""
    from testbed.engines.simulate.live import live_settings  # noqa: PLC0415 - only where this engine is asked for

    found = lab.find_missing(plan, progress)
    try:
        live_settings(plan)
    except InputError as error:
        return Prerequisites((*found.problems, *error.problems), found.lacking)
    return found


def build(plan: Plan, progress: Progress, keep: bool = False) -> ModelClient:
    """Build the hosts of a plan, and start the model that is their network; both may outlive this program."""
    from testbed.engines.simulate.live import live_model  # noqa: PLC0415 - as above

    return build_model_lab(
        plan, live_model(plan), keep=keep, progress=lambda step: progress(f"building the lab: {step}")
    )


def environment(engine: str, running: Session) -> dict[str, object]:
    """The machine and versions a run was made with."""
    return lab.environment_with(engine, running, {"switches": f"model, {running.facts.version}"})


LAB = LabBuilder(build, environment)
ENGINE = Engine(find_missing, partial(measure_in, LAB), build, partial(build_checked_lab, LAB))
