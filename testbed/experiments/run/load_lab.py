"""Loads on a lab that runs already, measured, judged and stored as those of a run are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from testbed.base.errors import InputError, LabError, Problem
from testbed.base.messages import Disturbance, LinkChange
from testbed.base.trust import allow_programs
from testbed.engines.lab.control.client import LabClient
from testbed.experiments.run.advice import AskedOfLab
from testbed.experiments.run.checks.fidelity import Finding, Verdict
from testbed.experiments.run.engine import Progress, RunOutcome, finish
from testbed.experiments.run.engines import find_lab_engine
from testbed.experiments.run.in_session import measure_on
from testbed.planning import Plan
from testbed.planning.check_loads import event_problems, load_problems
from testbed.planning.failures import changes_of_load, killed_switches
from testbed.planning.rates import at_dilation
from testbed.results import ResultFolder
from testbed.scenario import parse_loads
from testbed.scenario.spec import largest_dilation

# What stands for a scenario's file where loads are named without one; files are looked for in the working folder.
SOURCE = "loads"


def loads_plan(
    lab: LabClient, loads: Sequence[Mapping[str, object] | str] | None = None, dilation: float | str | None = None
) -> Plan:
    """What a running lab was built from, with loads to run in it.

    Args:
        lab: the lab.
        loads: as `workloads` of a scenario lists them; None = those of the lab's own scenario.
        dilation: to run them at; `auto` = the smallest at which the lab keeps up; None = as the lab is now.

    Raises:
        InputError: everything that is wrong with the loads, or does not go with this lab.
    """
    built = lab.plan()
    plan = at_dilation(built, lab.facts.dilation if dilation is None else _parse_dilation(built, dilation))
    if loads is not None:
        scenario = replace(plan.scenario, workloads=parse_loads(list(loads), SOURCE), source=SOURCE)
        plan = replace(plan, scenario=scenario)
        problems = [*load_problems(scenario, plan.topology), *event_problems(scenario, plan.topology)]
        if not problems:
            problems += _list_not_killable(built, plan)
        if problems:
            raise InputError([problem.in_file(SOURCE) for problem in problems])
    scenario = plan.scenario
    if not scenario.workloads:
        raise InputError.one("workloads", "the lab's scenario has none; name a load, such as iperf3 protocol=tcp")
    return plan


def load_lab(
    lab: LabClient,
    plan: Plan,
    results: Path,
    progress: Progress,
    asked: AskedOfLab | None = None,
    *,
    trust: bool = False,
) -> RunOutcome:
    """Run the loads of a plan in a running lab, and store everything; the lab goes on.

    A lab that is no longer as it was built is loaded all the same, and the verdict says so.

    Args:
        lab: the lab.
        plan: of loads_plan().
        results: where the folder of the run is made.
        progress: called with what is going on.
        asked: how `testbed load` was asked for it; None = it was not.
        trust: whether MPI jobs of other folders may be built, as where the caller himself has named them.

    Raises:
        InputError, CapabilityError: nothing was run.
        LabError: the lab broke; the folder stays, marked incomplete.
    """
    with allow_programs(trust):
        return _load_lab(lab, plan, results, progress, asked)


def _load_lab(lab: LabClient, plan: Plan, results: Path, progress: Progress, asked: AskedOfLab | None) -> RunOutcome:
    engine = find_lab_engine(plan.scenario)
    engine.find_missing(plan, progress).raise_if_missing()
    folder = ResultFolder(results, plan)
    try:
        with _restore_links(lab, plan):
            folder.write_plan(engine.describe_environment(lab))
            if plan.scenario.lab.dilation not in ("auto", lab.facts.dilation):
                progress(f"slowing the lab down by {plan.scenario.lab.chosen_dilation:g}")
                lab.set_rates(plan)
            progress("checking the path of every pair")
            return finish(measure_on(lab, plan, folder, progress, _find_changes(lab, plan)), progress, asked)
    except LabError as error:
        raise LabError(error.lines, folder.path) from error


def _find_changes(lab: LabClient, plan: Plan) -> list[Finding]:
    """Whether the lab is still what the plan says; switches that learn have learned then."""
    problems = lab.verify(plan)
    if not problems:
        return []
    return [(Verdict.INVALID, f"the lab is not what the plan says, in {len(problems)} points: {problems[0]}")]


def _list_not_killable(built: Plan, plan: Plan) -> list[Problem]:
    """Loads that kill switches which share their process with others, since the lab was built without these loads."""
    alone = set(killed_switches(built))
    together = [switch for switch in killed_switches(plan) if switch not in alone]
    if not together:
        return []
    names = ", ".join(plan.topology.switch_name(switch) for switch in together)
    sentence = (
        f"{names} cannot be killed in this lab, since others are in the same process; put the load into the scenario "
        "and build the lab from that"
    )
    return [Problem("workloads", sentence)]


def _parse_dilation(plan: Plan, dilation: float | str) -> float | Literal["auto"]:
    most = largest_dilation(plan.scenario.links, plan.scenario.lab)
    if dilation == "auto":
        return "auto"
    if isinstance(dilation, str) or not 1 <= dilation <= most:
        raise InputError.one("dilation", f"should be auto or a number from 1 to {most:g}, not {dilation}")
    return float(dilation)


@contextmanager
def _restore_links(lab: LabClient, plan: Plan) -> Iterator[None]:
    """Let links and switches that events of the loads have changed be as planned again, if the block is left early."""
    try:
        yield
    except BaseException:
        changes = [change for load in range(len(plan.scenario.workloads)) for change in changes_of_load(plan, load)]
        links = sorted({link for change in changes for link in change.links})
        if changes:
            undone = Disturbance(
                up=True,
                channels=tuple(2 * link + end for link in links for end in (0, 1)),
                hosts=tuple(sorted({host for change in changes for host in change.hosts})),
                links=tuple(LinkChange(link, reset=True) for link in links),
            )
            killed = sorted({switch for change in changes for switch in change.switches})
            started = [Disturbance(up=True, switches=(switch,)) for switch in killed]
            if any(change.manager for change in changes):
                started.append(Disturbance(up=True, manager=True))
            with suppress(LabError), lab.second_connection() as other:
                for one in (undone, *started):
                    with suppress(LabError):  # of a switch or a manager that has not been killed
                        other.disturb(one)
        raise
