"""The engine `ovs`: a lab of Open vSwitch on this machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping

from testbed.base.errors import CapabilityError, InputError, Problem
from testbed.base.messages import Facts
from testbed.base.version import __version__
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.local_machine import user_namespace
from testbed.engines.local_machine.calibration import require_shares
from testbed.engines.local_machine.congestion import require_congestion
from testbed.engines.local_machine.probe import capabilities, require, versions
from testbed.engines.session import Session
from testbed.experiments.run.dilation.pilot import pilot_job
from testbed.experiments.run.engine import Prerequisites, Progress
from testbed.experiments.run.in_session import LabEngine
from testbed.experiments.run.loads.one_load import load_labels, runner_of
from testbed.experiments.run.loads.run_mpi import prepare_mpi
from testbed.planning import Plan
from testbed.scenario.workloads.spec import Iperf3


def find_missing(plan: Plan, progress: Progress, *, tries: bool = True) -> Prerequisites:
    """What scenario or machine lack for a lab on this machine; MPI jobs are built, unless nobody may build a lab.

    `tries` says that `lab.dilation: auto` will be found by trying, for which a job may be needed.
    """
    try:
        user_namespace.require()
    except CapabilityError as error:
        return Prerequisites((), (str(error),))
    lacking: dict[str, None] = {}
    checks: tuple[Callable[[], None], ...] = (lambda: require(plan.scenario), lambda: require_shares(plan))
    for check in checks:
        try:
            check()
        except CapabilityError as error:
            lacking |= dict.fromkeys(error.lines)
    problems: dict[Problem, None] = {}
    for number, load in enumerate(plan.scenario.workloads):
        if isinstance(load.spec, Iperf3) and load.spec.protocol == "tcp":
            try:
                require_congestion(load.spec.congestion, f"workloads.{number}")
            except CapabilityError as error:
                lacking[str(error)] = None
        prepare = runner_of(load.kind).prepare
        if prepare is not None:
            progress(f"building {load.kind} {' '.join(load_labels(load).values())}")
            try:
                prepare(plan, load.spec, f"workloads.{number}")
            except InputError as error:
                problems |= dict.fromkeys(error.problems)
            except CapabilityError as error:
                lacking |= dict.fromkeys(error.lines)
    job = pilot_job(plan, 1.0) if tries and plan.scenario.lab.dilation == "auto" else None
    if job is not None:
        progress(f"building {job.job}, which stands for the jobs where the dilation is chosen")
        try:
            prepare_mpi(plan, job)
        except CapabilityError as error:
            lacking |= dict.fromkeys(error.lines)
    return Prerequisites(tuple(problems), tuple(lacking))


def say_what_lacks(facts: Facts, progress: Progress) -> None:
    """Tell what a lab does without, and why."""
    if facts.why_slow:
        progress(f"no fast path under Open vSwitch: {facts.why_slow}")
    if facts.tsq_backpressure_reason:
        progress(_describe_backpressure(facts.tsq_backpressure_reason))


def _describe_backpressure(why: str) -> str:
    return f"TCP loses too few frames, since hosts' sockets wait for queues of switches, too: {why}"


def of_facts(engine: str, facts: Facts) -> dict[str, object]:
    """What a lab says of itself, on however many machines."""
    return {
        "testbed": __version__,
        "engine": engine,
        "datapath": facts.datapath,
        "fast_path": "on" if facts.fast_path else f"off: {facts.why_slow}" if facts.why_slow else "off",
        **(
            {"host_sockets": _describe_backpressure(facts.tsq_backpressure_reason)}
            if facts.tsq_backpressure_reason
            else {}
        ),
        "switch_daemons": len(facts.switch_daemons),
        "controller": facts.controller or "none",
        "kernel": facts.kernel,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "build_seconds": facts.seconds,
    }


def environment_with(engine: str, lab: Session, switches: Mapping[str, object]) -> dict[str, object]:
    """The machine and versions a run was made with; `switches`: what is to be said of these."""
    facts = lab.facts
    return {
        **of_facts(engine, facts),
        **switches,
        "tools": versions(),
        "processors": os.cpu_count(),
        "capabilities": {c.name: c.detail if c.present else f"missing: {c.consequence}" for c in capabilities()},
    }


class OpenVSwitchEngine(LabEngine):
    """Labs of Open vSwitch on this machine."""

    def find_missing(self, plan: Plan, progress: Progress, *, tries: bool = True) -> Prerequisites:
        """What scenario or machine lack; MPI jobs are built."""
        return find_missing(plan, progress, tries=tries)

    def build(self, plan: Plan, progress: Progress, *, keep: bool = False) -> LabClient:
        """Build the lab of a plan; with `keep` it outlives this program."""
        lab = build_lab(plan, keep=keep, progress=lambda step: progress(f"building the lab: {step}"))
        say_what_lacks(lab.facts, progress)
        return lab

    def describe_environment(self, lab: Session) -> dict[str, object]:
        """The machine and versions a run was made with."""
        return environment_with("ovs", lab, {"open_vswitch": lab.facts.version})
