"""The engine `ovs` over several machines: each builds a part of the fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from testbed.base.errors import CapabilityError, InputError, Problem, argument
from testbed.base.model import HostTaggedPlan
from testbed.engines.machines import worker
from testbed.engines.machines.build import build_over, what_is_missing, what_jobs_miss, what_shares_miss
from testbed.engines.machines.fabric_client import FabricClient, Machines
from testbed.engines.session import Session
from testbed.experiments.run.dilation.pilot import pilot_job
from testbed.experiments.run.engine import Prerequisites, Progress
from testbed.experiments.run.in_session import SessionEngine
from testbed.experiments.run.loads.one_load import runner_of
from testbed.experiments.run.loads.run_mpi import Prepared, prepare_mpi
from testbed.experiments.run.open_vswitch import of_facts, say_what_lacks
from testbed.planning import Plan


def problems_of(plan: Plan) -> list[Problem]:
    """What of a scenario a fabric over several machines cannot have, each at its key."""
    scenario, found = plan.scenario, []
    remedy = f"run it on one machine, without {argument('machines')}"
    if scenario.engine != "ovs":
        sentence = f"is {scenario.engine}, and over several machines there is Open vSwitch only; {remedy}"
        found.append(Problem("engine", sentence, scenario.source))
    if isinstance(plan.vlans, HostTaggedPlan):
        sentence = (
            "is host_tagged, and over several machines hosts have no interfaces in VLANs; use fixed, in which switches "
            f"tag, or {remedy}"
        )
        found.append(Problem("assignment.kind", sentence, scenario.source))
    return found


def _find_missing(machines: Machines, plan: Plan, progress: Progress) -> Prerequisites:
    problems = problems_of(plan)
    if problems:
        return Prerequisites(tuple(problems))
    progress("asking the machines what they can do")
    lacking = what_is_missing(machines, plan.scenario) or what_shares_miss(machines, plan)
    return Prerequisites(lacking=tuple(lacking)) if lacking else _prepare_loads(machines, plan, progress)


def _prepare_loads(machines: Machines, plan: Plan, progress: Progress) -> Prerequisites:
    """Build what loads run, here and on all machines."""
    problems: list[Problem] = []
    lacking: dict[str, None] = {}
    wanted: list[tuple[str, Callable[[], object]]] = []
    for number, load in enumerate(plan.scenario.workloads):
        prepare = runner_of(load.kind).prepare
        if prepare is not None:
            wanted.append((load.kind, partial(prepare, plan, load.spec, f"workloads.{number}")))
    job = pilot_job(plan, 1.0) if plan.scenario.lab.dilation == "auto" else None
    if job is not None:
        wanted.append((job.job, partial(prepare_mpi, plan, job)))
    for name, build in wanted:
        progress(f"building {name} on all machines")
        try:
            prepared = build()
            if isinstance(prepared, Prepared):
                lacking |= dict.fromkeys(what_jobs_miss(machines, prepared.job, trace=prepared.trace))
        except InputError as error:
            problems += error.problems
        except CapabilityError as error:
            lacking |= dict.fromkeys(error.lines)
    return Prerequisites(tuple(problems), tuple(lacking))


class FabricEngine(SessionEngine):
    """Open vSwitch on several machines; how it is asked is that of any other engine."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    def find_missing(self, plan: Plan, progress: Progress) -> Prerequisites:
        """What scenario or machines lack; MPI jobs are built on all."""
        return _find_missing(self._machines, plan, progress)

    @contextmanager
    def open_fabric(self, plan: Plan, progress: Progress) -> Iterator[Session]:
        """Build the parts on all machines."""
        fabric = build_over(self._machines, plan, lambda step: progress(f"building the fabric: {step}"))
        with fabric:
            say_what_lacks(fabric.facts, progress)
            yield fabric

    def describe_environment(self, lab: Session) -> dict[str, object]:
        """The machines and versions a run was made with."""
        if not isinstance(lab, FabricClient):
            raise TypeError(f"{lab!r} is no fabric over several machines")
        return _describe_environment(self._machines, lab)


def _describe_environment(machines: Machines, fabric: FabricClient) -> dict[str, object]:
    """The machines and versions a run was made with."""
    facts = fabric.facts
    about = [machines.call(number, worker.describe_machine) for number in range(len(machines.machines))]
    return {
        **of_facts("ovs", facts),
        "open_vswitch": facts.version,
        "tools": about[0]["tools"],
        "processors": sum(one["processors"] for one in about),
        "machines": {
            part.machine: {
                "address": one.address,
                **its,
                "switches": list(part.order.switches),
                "hosts": [host.name for host in part.order.hosts],
                "links": len(part.order.links),
                "links_to_others": len(part.order.far),
            }
            for part, one, its in zip(fabric.parts, machines.machines, about, strict=True)
        },
    }
