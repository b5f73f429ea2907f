"""Links that go off and on by how much they are used while loads run, beside the same loads with all links on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from testbed.base.errors import InputError
from testbed.base.ethernet import VLAN_TAG
from testbed.base.messages import LinkReadings, PairReadings
from testbed.base.model import Sample
from testbed.engines.session import Session
from testbed.experiments.regulate.before_after import ENERGY, BeforeAfter, before_and_after, slower_findings
from testbed.experiments.regulate.choose_links import LinkChoice, list_power_levels
from testbed.experiments.regulate.figure import Stretch, draw_loop
from testbed.experiments.regulate.power import power_of
from testbed.experiments.regulate.run import ALL_ON, Stage, require_one_machine, require_regulable, require_traffic
from testbed.experiments.regulate.thresholds import Rule, integral
from testbed.experiments.regulate.traffic import (
    bytes_between,
    compute_peak_utilisation,
    of_pattern,
    read_pairs,
    uses_of,
)
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.dilation.choose import choose_dilation
from testbed.experiments.run.engine import RunOutcome
from testbed.experiments.run.engines import find_session_engine
from testbed.experiments.run.in_session import SessionEngine, changes_since, lab_facts
from testbed.experiments.run.loads.one_load import LoadRecord, load_labels, title_of
from testbed.fabric.power import PowerModel
from testbed.planning import Plan
from testbed.planning.rates import at_dilation
from testbed.results import ResultFolder
from testbed.scenario.workloads.spec import events_of

LOOP = "by load"


@dataclass(frozen=True, slots=True)
class UtilisationSample:
    """What the links were used in a period."""

    at: float  # its end; s since the loop began
    off: int  # links that were off
    use: float  # share of its rate that the busiest link carried


@dataclass(frozen=True, slots=True)
class Decision:
    """A change that the loop made."""

    at: float  # when it was decided on; s since the loop began
    seconds: float  # until the lab was carried over
    use: float  # what the busiest link was used in the period before
    expected: float  # what it would be afterwards
    on: tuple[str, ...]  # names of links that came on
    off: tuple[str, ...]  # names of links that went off
    drops: int  # frames that found a queue full in that period or meanwhile


@dataclass(frozen=True, slots=True)
class LoopRound:
    """One turn of all loads with the loop."""

    looks: tuple[UtilisationSample, ...]
    decisions: tuple[Decision, ...]
    loads: tuple[Stretch, ...]  # s since the loop began
    off: tuple[tuple[float, int], ...]  # (s since the loop began, links that are off from then on)


@dataclass(frozen=True, slots=True)
class LoopResult:
    """What regulation by load came to."""

    rule: Rule  # it decided by
    model: PowerModel  # of all switches
    levels: tuple[LinkChoice, ...]  # plans from all links on to the fewest
    watts: tuple[float, ...]  # of all switches with each of them
    turns: tuple[LoopRound, ...]
    compared: tuple[BeforeAfter, ...]  # each load with all links on and with the loop

    @property
    def joules(self) -> tuple[float, float]:
        """What all switches took while loads ran, all turns together: with all links on, and with the loop."""
        energy = [one for one in self.compared if one.metric == ENERGY]
        return sum(sum(one.before) for one in energy), sum(sum(one.after) for one in energy)

    @property
    def off_saved(self) -> float:
        """Share of all switches' energy that links off saved while loads ran with the loop.

        Of what they would have taken in the same time with all links on, so that how long loads took is not in it.
        """
        watts_of = {len(rung.off_links): watts for rung, watts in zip(self.levels, self.watts, strict=True)}
        ran = sum(load.end - load.begin for turn in self.turns for load in turn.loads)
        took = 0.0
        for turn in self.turns:
            steps = [(at, watts_of[off]) for at, off in turn.off]
            took += sum(integral(steps, load.begin, load.end) for load in turn.loads)
        return 1 - took / (self.watts[0] * ran) if ran else 0.0

    @property
    def off_share(self) -> float:
        """Share of all links' time that links were off while loads ran with the loop."""
        ran = sum(load.end - load.begin for turn in self.turns for load in turn.loads)
        off = sum(integral(turn.off, load.begin, load.end) for turn in self.turns for load in turn.loads)
        return off / (ran * self.levels[0].plan.wiring.link_count) if ran else 0.0

    def as_object(self) -> dict[str, object]:
        """All of it, as plain data."""
        return {
            "model": self.model.name,
            "rule": asdict(self.rule),
            "wake_up": self.model.off_on,
            "ladder": [
                {"off": list(rung.names), "watts": watts, "digest": rung.plan.digest}
                for rung, watts in zip(self.levels, self.watts, strict=True)
            ],
            "joules": dict(zip(("all_links", "by_load"), self.joules, strict=True)),
            "off_share": self.off_share,
            "off_saved": self.off_saved,
            "link_seconds_off": [
                sum(integral(turn.off, load.begin, load.end) for load in turn.loads) for turn in self.turns
            ],
            "turns": [asdict(turn) for turn in self.turns],
            "loads": [{**asdict(one), "ratio": one.ratio} for one in self.compared],
        }


def regulate_by_load(
    plan: Plan,
    results: Path,
    model: PowerModel,
    rounds: int,
    rule: Rule,
    progress: Callable[[str], None],
    engine: SessionEngine | None = None,
) -> tuple[RunOutcome, LoopResult]:
    """Run the loads of a plan with all links on, and with links that go off and on, `rounds` times in turn.

    `engine` is another one than the scenario's, on other machines.

    Raises:
        InputError, VerificationError, CapabilityError: nothing was started.
        LabError: the lab broke, or a change was refused; the folder stays, marked incomplete.
    """
    if problems := rule.problems():
        raise InputError(problems)
    plan.require_proof()
    plan.require_tables()
    require_regulable(plan)
    require_traffic(plan)
    require_one_machine(plan, engine)
    if any(events_of(load.spec) for load in plan.scenario.workloads):
        sentence = "has links that change, and a loop takes all for as planned; leave timeline out"
        raise InputError.one("workloads", sentence, plan.scenario.source)
    progress("planning with fewer and fewer links")
    rungs = list_power_levels(plan, of_pattern("all_to_all", plan.topology, plan.scenario.lab.seed))
    engine = engine or find_session_engine(plan.scenario)
    engine.find_missing(plan, progress).raise_if_missing()
    folder = ResultFolder(results, plan)
    with engine.open_checked(plan, folder, progress) as lab:
        settled, dilation = choose_dilation(plan, lab, progress)
        rungs = [replace(rung, plan=at_dilation(rung.plan, settled.scenario.lab.chosen_dilation)) for rung in rungs]
        watts = tuple(float(power_of(settled, rung, model).after.sum()) for rung in rungs)
        stage = Stage(settled, lab, folder, model, progress)
        read_pairs(lab)  # from now on they are counted
        for rung in rungs[1:]:
            stage.change(f"{len(rung.off_links)} links off", rung.plan, rung.off_links)
        stage.change("links on", settled, [])
        turns = [_turn(stage, rungs, watts, rule, turn) for turn in range(1, rounds + 1)]
        stage.records.findings += changes_since(settled, lab)
    compared = before_and_after(stage.records.samples, ALL_ON, LOOP)
    stage.records.findings += slower_findings(compared, "while links went off and on")
    if not any(turn.decisions for turn in turns):
        stage.records.findings.append((Verdict.WARN, "the busiest link was used too much at every look; none went off"))
    found = LoopResult(rule, model, tuple(rungs), watts, tuple(turns), tuple(compared))
    first = turns[0]
    looks = [(look.at, look.use) for look in first.looks]
    folder.write_bytes("loop.svg", draw_loop(rule, settled.wiring.link_count, looks, first.off, first.loads))
    folder.write_json("loop.json", found.as_object())
    return stage.finish(lab_facts(settled, dilation, lab)), found


def _turn(stage: Stage, rungs: Sequence[LinkChoice], watts: Sequence[float], rule: Rule, turn: int) -> LoopRound:
    """All loads with all links on, then with the loop."""
    before = stage.run_loads(stage.plan, ALL_ON, turn)
    _store_energy(stage, before, ALL_ON, turn, [(0.0, watts[0])])
    loop = _Loop(stage, rungs, rule)
    with loop.run_in_background():
        after = stage.run_loads(stage.plan, LOOP, turn, moving=True)
    _store_energy(stage, after, LOOP, turn, [(at, watts[rung]) for at, rung in loop.since])
    loads = [
        Stretch(record.span[0] - loop.began, record.span[1] - loop.began, title_of(load.kind, load_labels(load)))
        for load, record in zip(stage.plan.scenario.workloads, after, strict=True)
    ]
    off = [(at - loop.began, len(rungs[rung].off_links)) for at, rung in loop.since]
    return LoopRound(tuple(loop.looks), tuple(loop.decisions), tuple(loads), tuple(off))


def _store_energy(
    stage: Stage, records: Sequence[LoadRecord], links: str, turn: int, watts: Sequence[tuple[float, float]]
) -> None:
    """Add joules of each load: watts of the model, of the paper's own, over laboratory seconds."""
    for load, record in zip(stage.plan.scenario.workloads, records, strict=True):
        labels = {"load": str(record.entry["load"]), "kind": load.kind, **load_labels(load)}
        labels |= {"links": links, "round": str(turn), "model": stage.model.name}
        stage.records.samples.append(Sample(ENERGY, integral(watts, *record.span), "J", labels))


class _Loop:
    """Looks at the links of a lab again and again, and carries it along a ladder of plans."""

    def __init__(self, stage: Stage, rungs: Sequence[LinkChoice], rule: Rule) -> None:
        self.stage, self.rungs, self.rule = stage, rungs, rule
        self.began = time.monotonic()
        self.looks: list[UtilisationSample] = []
        self.decisions: list[Decision] = []
        # When which rung was there: a link counts as off from the end of the change to the begin of the next one.
        self.since: list[tuple[float, int]] = [(self.began, 0)]
        self._plans = [rung.plan for rung in rungs]
        self._stop = threading.Event()

    @contextmanager
    def run_in_background(self) -> Iterator[None]:
        """Run while the block does, over a connection of its own; all links are on before and afterwards."""
        pool = ThreadPoolExecutor(1)
        try:
            with self.stage.lab.second_connection() as other:
                running = pool.submit(self._run, other)
                yield
                self._stop.set()
                running.result()
                if self._level:
                    self._change_level(other, 0)
                if problems := other.walk(self._plans[0], ()):
                    told = f"after the loop the switches differ from the plan: {problems[0]} ({len(problems)})"
                    self.stage.records.findings.append((Verdict.INVALID, told))
        finally:
            # After an error or Ctrl-C it is not waited for: it ends with the lab.
            self._stop.set()
            pool.shutdown(wait=False)

    @property
    def _level(self) -> int:
        return self.since[-1][1]

    def _run(self, other: Session) -> None:
        wiring, changed, before = self._plans[0].wiring, float("-inf"), _read(other)
        tag = VLAN_TAG if self._plans[0].vlans.tagged_trunks else 0
        while not self._stop.wait(self.rule.period):
            now = _read(other)
            use = compute_peak_utilisation(before[0], now[0], len(wiring.channel_source), tag)
            uses = uses_of(self._plans, self._level, bytes_between(before[1], now[1], wiring.host_count), use)
            at = time.monotonic()
            self.looks.append(UtilisationSample(at - self.began, len(self.rungs[self._level].off_links), use))
            here, rung = self.rungs[self._level], self.rule.decide(self._level, uses, at - changed)
            if rung != self._level:
                self.stage.progress(
                    f"the busiest link is used {100 * use:.0f} %: {len(self.rungs[rung].off_links)} links off"
                )
                self._change_level(other, rung)
                changed, now = time.monotonic(), _read(other)
                on, off = _names(here, self.rungs[rung])
                drops = sum(now[0].drops) - sum(before[0].drops)
                self.decisions.append(Decision(at - self.began, changed - at, use, uses[rung], on, off, drops))
            before = now

    def _change_level(self, other: Session, rung: int) -> None:
        """Carry the lab over to another rung."""
        there = self.rungs[rung]
        made = self.stage.session.move(
            other, f"{len(there.off_links)} links off", there.plan, there.off_links, walk=False
        )
        self.stage.changes.append(made)
        # A link that goes off is on until then, and one that comes on takes its watts from the beginning.
        self.since.append((time.monotonic() if rung > self._level else made.started, rung))


def _names(here: LinkChoice, there: LinkChoice) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Links that come on and those that go off from one rung to another."""
    on = tuple(name for name in here.names if name not in there.names)
    return on, tuple(name for name in there.names if name not in here.names)


def _read(lab: Session) -> tuple[LinkReadings, PairReadings]:
    return lab.read_links(), read_pairs(lab)
