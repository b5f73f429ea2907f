"""A lab whose links go off by the traffic of its loads, and on again: before, between and after, measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from testbed.base.errors import InputError, LabError, Problem, argument
from testbed.base.model import Sample
from testbed.engines.session import Session
from testbed.experiments.regulate.before_after import (
    BeforeAfter,
    before_and_after,
    change_findings,
    loss_findings,
    loss_samples,
    slower_findings,
)
from testbed.experiments.regulate.choose_links import LinkChoice, choose_links, keep_full_speed, kept_links
from testbed.experiments.regulate.figure import draw
from testbed.experiments.regulate.plan_changes import Change, PlanMover, pair_opposite_hosts
from testbed.experiments.regulate.power import Power, as_object, power_of
from testbed.experiments.regulate.rate_changes import list_rate_changes, list_unavoidable, watching_rate
from testbed.experiments.regulate.traffic import Traffic
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.dilation.choose import choose_dilation
from testbed.experiments.run.engine import Records, RunOutcome, finish
from testbed.experiments.run.engines import find_session_engine
from testbed.experiments.run.in_session import SessionEngine, changes_since, lab_facts
from testbed.experiments.run.loads.context import Context, LoadOutcome
from testbed.experiments.run.loads.one_load import LoadRecord, load_context, record_outcome, run_load
from testbed.fabric.power import PowerModel
from testbed.planning import Plan
from testbed.planning.speeds import alike_problems
from testbed.results import ResultFolder
from testbed.results.samples import MPI_SENT, mpi_matrix
from testbed.results.telemetry import join
from testbed.scenario.engines import lab_problems
from testbed.scenario.workloads import WORKLOADS, loss_probe

ALL_ON, FEWER = "all links", "fewer links"
# What the datagrams of the pairs may take of a link is little.
PROBES_A_SECOND = 100.0


@dataclass(frozen=True, slots=True)
class Regulated:
    """What a regulation came to."""

    outcome: RunOutcome  # folder, verdict, samples
    choice: LinkChoice  # links that were off
    power: Power  # before and after
    changes: tuple[Change, ...]  # of plans, in order
    compared: tuple[BeforeAfter, ...]  # each load with all links and with fewer


def require_regulable(plan: Plan) -> None:
    """Let only plans pass whose links a controller can switch off under traffic.

    Raises:
        InputError: all that is in the way.
    """
    source = plan.scenario.source
    problems = lab_problems(plan.scenario.engine, source)
    problems += alike_problems(plan.scenario, "regulation")
    kind, model = plan.scenario.assignment_kind, plan.scenario.engine == "realtime"
    bundled = plan.bundles is not None
    if kind != "fixed" and (kind != "renamed" or model or bundled):
        ways = "fixed, on this engine" if model else "fixed, with aggregated links" if bundled else "fixed or renamed"
        problems.append(
            Problem(
                f"{source}: assignment.kind",
                f"a change of plans without loss needs VLANs by which ports change one after the other, {ways}, not "
                f"{kind}; set assignment.kind=fixed, with a routing that it can carry",
            )
        )
    if kind == "renamed" and plan.bundles is None and not plan.deadlock_free:
        sentence = "its paths can deadlock, and VLANs of one switch change only against the direction of the paths"
        problems.append(Problem(f"{source}: routing", f"{sentence}; choose another one, or assignment.kind=fixed"))
    if not model and plan.scenario.links.aggregate:
        if not bundled:
            sentence = "finds no parallel links to make one, and keeps a controller from the others; leave it out"
            problems.append(Problem(f"{source}: links.aggregate", sentence))
        elif plan.scenario.lab.fast_path != "off":
            sentence = "sends frames by what rules were until then, where links are aggregated; set lab.fast_path=off"
            problems.append(Problem(f"{source}: lab.fast_path", sentence))
    if plan.topology.host_count < 2:
        problems.append(Problem(f"{source}: topology", "has fewer than two hosts, so there is no traffic to go by"))
    if problems:
        raise InputError(problems)


def require_one_machine(plan: Plan, engine: SessionEngine | None) -> None:
    """Refuse aggregated links on an engine of other machines, where only a controller reaches all switches.

    Raises:
        InputError: it is one, and they are.
    """
    if engine is not None and plan.bundles is not None:
        sentence = "have switches that only a controller reaches, and none takes aggregated links; use one machine"
        raise InputError.one(argument("machines"), f"{sentence}, or links.aggregate=false", plan.scenario.source)


def require_traffic(plan: Plan) -> None:
    """Let only plans pass one of whose loads sends something.

    Raises:
        InputError: there is none.
    """
    if all(WORKLOADS[load.kind].pairs is not None for load in plan.scenario.workloads):
        none = "there is no load but pings and requests" if plan.scenario.workloads else "there is none"
        raise InputError.one("workloads", f"{none}, so there is no traffic to go by; add one", plan.scenario.source)


class Stage:
    """A result folder that fills while a lab is regulated."""

    def __init__(
        self, plan: Plan, lab: Session, folder: ResultFolder, model: PowerModel, progress: Callable[[str], None]
    ) -> None:
        self.plan, self.lab, self.folder, self.model, self.progress = plan, lab, folder, model, progress
        # The waking of a link is no frame's time: it is waited for as it is, not slowed down with the links.
        self.session = PlanMover(lab, model.off_on)
        self.installed = plan
        self.records = Records()
        self.changes: list[Change] = []

    def add(self, record: LoadRecord) -> LoadRecord:
        """Take over what a load gave, and store it."""
        self.records.add(record)
        self.folder.write_samples(self.records.samples)
        return record

    def run_loads(self, plan: Plan, links: str, turn: int, *, moving: bool = False) -> list[LoadRecord]:
        """Run the scenario's loads on a plan that is installed, or with `moving` on several in turn."""
        more, which = {"links": links, "round": str(turn)}, f"round {turn}"
        return [
            self.add(run_load(plan, self.lab, self.folder, load, self.next, self.progress, which, more, moving=moving))
            for load in plan.scenario.workloads
        ]

    @property
    def next(self) -> int:
        """Number of the next load."""
        return len(self.records.loads) + 1

    def context(self, plan: Plan, kind: str, **labels: str) -> Context:
        """The context of the next load, which is none of the scenario's."""
        return load_context(plan, self.lab, self.folder, kind, self.next, self.progress, "watching", labels)

    def change(self, name: str, plan: Plan, off: Sequence[int]) -> Plan:
        """Carry the lab over to another plan while every host sends numbered datagrams to another.

        Links whose speed differs are changed first, off the paths. Returns the plan as it is installed then.
        """
        pairs = pair_opposite_hosts(plan.topology.host_count)
        steps, goal = list_rate_changes(self.installed, plan, self.plan)
        dilation = plan.scenario.lab.chosen_dilation
        watched = [self.installed, *(step.plan for step in steps), goal]
        a_second = watching_rate(watched, pairs, loss_probe.SIZE, PROBES_A_SECOND * dilation) / dilation

        def carry_over(other: Session) -> list[Change]:
            made = [
                self.session.retune(other, f"{name}, speeds {number}", step, step.seconds(self.model))
                for number, step in enumerate(steps, 1)
            ]
            return [*made, self.session.move(other, name, goal, off)]

        def run(context: Context) -> LoadOutcome:
            context.progress("datagrams between all hosts while paths change")
            made, losses, _ = self.session.while_probing(context, pairs, a_second, carry_over)
            outcome = LoadOutcome()
            self.changes += made
            outcome.samples += loss_samples(context, losses)
            for number, step in enumerate((step for change in made for step in change.steps), 1):
                labels = {"step": f"{number} {step.action}"}
                outcome.samples.append(Sample("change_lab_time", step.seconds, "s", {**context.labels, **labels}))
            outcome.findings += [finding for change in made for finding in change_findings(change)]
            outcome.findings += loss_findings(losses)
            return outcome

        self.add(record_outcome(self.context(plan, "change", name=name), self.folder, run))
        self.installed = goal
        return goal

    def finish(self, facts: Mapping[str, Any]) -> RunOutcome:
        """Judge all of it, store what is not stored yet, with further keys of the manifest, and name the folder."""
        self.folder.write_json("changes.json", [asdict(change) for change in self.changes])
        return finish(self.records.store(self.folder, facts), self.progress)


def measured_traffic(plan: Plan, records: Sequence[LoadRecord]) -> Traffic:
    """What the hosts sent each other in loads: as MPI told, or else as counted in the fabric.

    Raises:
        LabError: nothing was recorded.
    """
    count = plan.topology.host_count
    matrix = np.zeros((count, count))
    for record in records:
        sent = [sample for sample in record.samples if sample.metric == MPI_SENT]
        matrix += mpi_matrix(sent, plan.topology)
        watched = record.outcome.telemetry if record.outcome is not None else []
        if not sent and watched:
            counted = join(watched)
            matrix += counted.traffic_matrix() if len(counted.traffic_bytes) else 0
    if not matrix.any():
        raise LabError(
            "no traffic was recorded, so no link can be chosen by it; MPI loads need trace: true where the kernel "
            "cannot count pairs of hosts (`testbed doctor`), other loads need lab.telemetry"
        )
    return Traffic("the measured traffic", matrix, "bytes between hosts, all links on")


def regulate(
    plan: Plan,
    results: Path,
    model: PowerModel,
    rounds: int,
    progress: Callable[[str], None],
    *,
    slower: bool = False,
    engine: SessionEngine | None = None,
) -> Regulated:
    """Run the loads of a plan with all links on, and without those that their traffic can spare.

    Both are measured `rounds` times, in turn; with `slower` links stay on at a lower speed where that is enough.
    `engine` is another one than the scenario's, on other machines.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was started.
        LabError: the lab broke, or a change was refused; the folder stays, marked incomplete.
    """
    plan.require_proof()
    plan.require_tables()
    require_regulable(plan)
    require_traffic(plan)
    if slower and plan.bundles is not None:
        sentence = "sets speeds of single links, and links.aggregate makes parallel ones one; leave out one of both"
        raise InputError.one(argument("slower"), sentence, plan.scenario.source)
    require_one_machine(plan, engine)
    engine = engine or find_session_engine(plan.scenario)
    engine.find_missing(plan, progress).raise_if_missing()
    folder = ResultFolder(results, plan)
    with engine.open_checked(plan, folder, progress) as lab:
        settled, dilation = choose_dilation(plan, lab, progress)
        stage = Stage(settled, lab, folder, model, progress)
        choice = _rounds(stage, rounds, slower=slower)
        records = stage.records
        records.findings += changes_since(settled, lab)
    power = power_of(settled, choice, model)
    compared = before_and_after(records.samples, ALL_ON, FEWER)
    records.samples += power_samples(power, choice, compared)
    records.findings += slower_findings(compared, "without the links that were off")
    stage.folder.write_json("power.json", as_object(settled, [(choice, [power])]))
    if choice.off_links or choice.slowed_links:
        stage.folder.write_bytes("power.svg", draw(settled, [(choice, [power])], "svg"))
    outcome = stage.finish(lab_facts(settled, dilation, lab))
    return Regulated(outcome, choice, power, tuple(stage.changes), tuple(compared))


def _rounds(stage: Stage, rounds: int, *, slower: bool) -> LinkChoice:
    """All links, fewer or slower ones, and back, so often; they are chosen by the traffic of the first time."""
    choice: LinkChoice | None = None
    for turn in range(1, rounds + 1):
        records = stage.run_loads(stage.plan, ALL_ON, turn)
        if choice is None:
            stage.progress("choosing links by the traffic")
            traffic = measured_traffic(stage.plan, records)
            choice = choose_links(stage.plan, traffic, slower=slower, keep=kept_links(stage.plan))
            choice = keep_full_speed(choice, list_unavoidable(stage.plan, choice.slowed_links))
            if not choice.off_links and not choice.slowed_links:
                stage.records.findings.append((Verdict.WARN, "the traffic needs all links, so none went off"))
                return choice
        installed = stage.change("links off", choice.plan, choice.off_links)
        stage.run_loads(installed, FEWER, turn)
        stage.change("links on", stage.plan, [])
    assert choice is not None
    return choice


def power_samples(power: Power, choice: LinkChoice, compared: Sequence[BeforeAfter]) -> list[Sample]:
    """Watts of all switches, and what a load takes of energy in comparison."""
    of_model = {"model": power.model.name}
    found = [
        Sample("switch_power", float(watts.sum()), "W", {**of_model, "links": links})
        for watts, links in ((power.before, ALL_ON), (power.after, FEWER))
    ]
    found.append(Sample("power_saved", power.saving, "ratio", of_model))
    found.append(Sample("links_off", len(choice.off_links), "count", of_model))
    if choice.slowed_links:
        found.append(Sample("links_slower", len(choice.slowed_links), "count", of_model))
    found += [
        Sample("energy_ratio", (1 - power.saving) * one.ratio, "ratio", {**of_model, "load": "", "title": one.title})
        for one in compared
        if one.is_time
    ]
    return found
