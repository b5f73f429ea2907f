"""The engine `realtime`: real hosts on this machine, whose network is the packet-level model, at the clock's pace."""

from __future__ import annotations

from testbed.base.errors import InputError
from testbed.engines.realtime import COMPILING
from testbed.engines.realtime.client import ModelClient, build_model_lab
from testbed.engines.session import Session
from testbed.experiments.run.engine import Prerequisites, Progress
from testbed.experiments.run.in_session import LabEngine
from testbed.experiments.run.open_vswitch import environment_with, find_missing
from testbed.planning import Plan


class RealtimeEngine(LabEngine):
    """Real hosts on this machine, whose network is a model that runs by the clock."""

    def find_missing(self, plan: Plan, progress: Progress, *, tries: bool = True) -> Prerequisites:
        """What scenario or machine lack; MPI jobs are built."""
        from testbed.engines.simulate.switch_model import live_settings  # noqa: PLC0415 - only where this engine is asked for

        found = find_missing(plan, progress, tries=tries)
        try:
            live_settings(plan)
        except InputError as error:
            return Prerequisites((*found.problems, *error.problems), found.lacking)
        return found

    def build(self, plan: Plan, progress: Progress, *, keep: bool = False) -> ModelClient:
        """Build the hosts of a plan and start the model of their network; with `keep` both outlive this program."""
        from testbed.engines.simulate.switch_model import live_model  # noqa: PLC0415 - as above

        return build_model_lab(
            plan,
            live_model(plan),
            keep=keep,
            progress=lambda step: progress(step if step == COMPILING else f"building the lab: {step}"),
        )

    def describe_environment(self, lab: Session) -> dict[str, object]:
        """The machine and versions a run was made with."""
        return environment_with("realtime", lab, {"switches": f"model, {lab.facts.version}"})
