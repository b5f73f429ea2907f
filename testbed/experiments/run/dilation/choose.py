"""`dilation: auto`: the smallest dilation at which the scenario's own lab keeps up, found by trying."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from testbed.base.errors import LabError, setting
from testbed.engines.local_machine.calibration import MARGIN, first_guess, frame_margin, least_dilation
from testbed.engines.session import Session
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.dilation.pilot import Pilot, job_name, make_pilot, pilot_job, run_pilot, trial_of_job
from testbed.planning import Plan
from testbed.planning.rates import at_dilation
from testbed.scenario.spec import largest_dilation
from testbed.scenario.workloads.spec import Mpi

_SHOWN_REASONS = 3
# How many times slower a lab is made that was too slow, at least.
_SLOWER = 2.0
# Dilations that are tried with a job at most: where it keeps up at none of them, it is not for lack of dilation.
_JOB_TRIALS = 4
# s of trials after which the best that is known is taken, where something is: a finer choice costs more than it gives.
_MOST_SECONDS = 30.0
# How many times faster than Open vSwitch in userspace the modelled switches are, and its fast path, about; only where
# the search begins.
_MODEL_GAIN, _FAST_GAIN = 10.0, 4.0


@dataclass(frozen=True, slots=True)
class Trial:
    """A dilation that was tried."""

    dilation: float
    verdict: str
    reasons: tuple[str, ...]
    job: str = ""  # what MPI job was run; empty = UDP flows

    @property
    def has_kept_up(self) -> bool:
        """Whether the lab kept up."""
        return self.verdict == Verdict.PASS.word


@dataclass(frozen=True, slots=True)
class DilationChoice:
    """How a dilation was chosen."""

    dilation: float  # the smallest that was faithful, with jobs, too, unless that is said below
    guess: float  # where the search began
    guess_from: str  # `calibration` of this machine, or `default`
    margin: float  # how many times more than the loads need the lab had to manage
    pattern: str  # of the UDP flows that were tried
    factor: float  # how many times faster than at the tried dilation links were
    tried: tuple[Trial, ...]  # in the order of trying
    seconds: float  # that the search took
    # whether the lab kept up with the MPI job that was tried as well; None = there are no jobs
    kept_up_with_job: bool | None = None

    @property
    def failed_with_job(self) -> float:
        """The largest dilation at which the lab did not keep up with the job; 0 = none."""
        return max((one.dilation for one in self.tried if one.job and not one.has_kept_up), default=0.0)


@dataclass(frozen=True, slots=True)
class _Search:
    """Tries dilations on a running lab."""

    plan: Plan
    lab: Session
    pilot: Pilot  # the UDP flows
    allowed: tuple[float, ...]  # what may be chosen, ascending
    guess: float  # where to begin
    progress: Callable[[str], None]
    began: float  # s, monotonic
    trials: list[Trial] = field(default_factory=list)  # what was tried, in that order

    @property
    def jobs_failed(self) -> list[Trial]:
        """Trials with a job in which the lab did not keep up."""
        return [one for one in self.trials if one.job and not one.has_kept_up]

    def find_smallest(self, *, with_job: bool) -> float | None:
        """The smallest dilation at which the lab keeps up with flows and, if asked, with a job; None = there is none.

        Flows that were faithful at a smaller dilation are not tried again. Where jobs were not, it goes up a step at a
        time, and gives up after _JOB_TRIALS of them. After _MOST_SECONDS what is known by then is taken.
        """
        while True:
            tried = self._summarise_trials(with_job)
            step = next_step(self.allowed, tried, self.guess, leap=not self.jobs_failed)
            best = choose_step(self.allowed, tried)
            enough = time.monotonic() - self.began > _MOST_SECONDS
            if step is None or (enough and (best is not None or self.jobs_failed)):
                return best
            if not any(one.has_kept_up and one.dilation <= step for one in self.trials if not one.job):
                self._try(step, None)
            if with_job and self._summarise_trials(with_job).get(step, True):
                self._try(step, pilot_job(self.plan, step, modelled=bool(self.lab.facts.pace)))
                if len(self.jobs_failed) == _JOB_TRIALS:
                    return None

    def _summarise_trials(self, with_job: bool) -> dict[float, bool]:
        """Dilation → whether the lab kept up with all that was tried there."""
        counted = [one for one in self.trials if with_job or not one.job]
        return {
            step: all(one.has_kept_up for one in counted if one.dilation == step)
            for step in dict.fromkeys(one.dilation for one in counted)
        }

    def _try(self, step: float, job: Mpi | None) -> None:
        name = job_name(job) if job else ""
        what = f"{step:g} with an {name}" if job else f"{step:g}"
        self.progress(f"choosing the dilation: trying {what}")
        found = (
            trial_of_job(self.plan, self.lab, job, step) if job else run_pilot(self.plan, self.lab, self.pilot, step)
        )
        self.trials.append(Trial(step, found.verdict.word, found.reasons, name))
        self.progress(f"choosing the dilation: {what}: {found.verdict.word}")


def choose_dilation(plan: Plan, lab: Session, progress: Callable[[str], None]) -> tuple[Plan, DilationChoice | None]:
    """Settle the dilation of a running lab.

    Nothing is tried where the plan's dilation is a number; else the lab ends shaped for the one that is chosen.

    Returns:
        The plan at that dilation, and how it was chosen; None where the scenario says it.

    Raises:
        LabError: the lab keeps up at no dilation, or broke.
    """
    if plan.scenario.lab.dilation != "auto":
        return plan, None
    started = time.monotonic()
    guess, guess_from = first_guess(plan)
    modelled = bool(lab.facts.pace)
    gain = _MODEL_GAIN if modelled else _FAST_GAIN if lab.facts.fast_path and guess_from == "default" else 1.0
    least = least_dilation(plan, lab.facts.most_share)
    guess = max(guess / gain, least)
    progress(f"choosing the dilation, about {guess:.3g} by the {guess_from}")
    margin = MARGIN if modelled else frame_margin(plan)
    pilot = make_pilot(plan, margin, modelled=modelled)
    allowed = steps(least, largest_dilation(plan.scenario.links, plan.scenario.lab))
    search = _Search(plan, lab, pilot, allowed, guess, progress, started)
    has_jobs = pilot_job(plan, guess) is not None
    with_job = search.find_smallest(with_job=True) if has_jobs else None
    dilation = with_job or search.find_smallest(with_job=False)
    if dilation is None:
        raise LabError(_refusal(search.trials))
    if has_jobs and with_job is None:
        progress(_without_job(search.jobs_failed, dilation))
    settled = at_dilation(plan, dilation)
    lab.set_rates(settled)
    took = round(time.monotonic() - started, 2)
    return settled, DilationChoice(
        dilation, round(guess, 3), guess_from, margin, pilot.spec.pattern, round(pilot.factor, 4),
        tuple(search.trials), took, kept_up_with_job=with_job is not None if has_jobs else None,
    )  # fmt: skip


def _without_job(failed: Sequence[Trial], dilation: float) -> str:
    """That the lab kept up with jobs nowhere, and what is done about it."""
    tried = ", ".join(f"{one.dilation:g}" for one in sorted(failed, key=lambda one: one.dilation))
    reasons = "; ".join(failed[-1].reasons[:_SHOWN_REASONS])
    return (
        f"choosing the dilation: with an {failed[-1].job} the lab keeps up at none of {tried} ({reasons}); "
        f"{dilation:g} is taken, at which it does with flows, and jobs are judged by themselves"
    )


def _refusal(trials: list[Trial]) -> str:
    if not trials:
        return "no dilation is both small enough for the links and large enough for the hosts' shares of the processors"
    last = max(trials, key=lambda one: one.dilation)
    reasons = "; ".join(last.reasons[:_SHOWN_REASONS])
    return (
        f"lab.dilation: auto finds none: this machine does not keep up even at {last.dilation:g} ({reasons}); no load "
        "was run. Use a smaller fabric or fewer flows, end what else keeps the machine busy, or run it all the same: "
        f"{setting('lab.dilation', _plain(last.dilation))}"
    )


def larger_dilation(plan: Plan, dilation: float, beyond: float = 0.0) -> float | None:
    """What to try where the lab was too slow at a dilation: twice as much or the next step, or the most there can be.

    It is larger than `beyond`, too, if it can be; None = there is none larger than `dilation`.
    """
    allowed = steps(least_dilation(plan), largest_dilation(plan.scenario.links, plan.scenario.lab))
    above = [step for step in allowed if step > dilation]
    wanted = (step for step in above if step >= _SLOWER * dilation and step > beyond)
    return next(wanted, above[-1] if above else None)


_DECADE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)


def steps(least: float, most: float) -> tuple[float, ...]:
    """Dilations that may be chosen: 1, 1.5, 2, 3, 5, 7, 10, … between two limits."""
    every = (factor * 10**decade for decade in range(7) for factor in _DECADE)
    return tuple(step for step in takewhile(lambda step: step <= most, every) if step >= least)


def choose_step(steps: Sequence[float], tried: Mapping[float, bool]) -> float | None:
    """The smallest step that was faithful and has none above it that was not; None = there is none yet."""
    floor = _floor(tried)
    return min((step for step in steps if tried.get(step) and step > floor), default=None)


def next_step(steps: Sequence[float], tried: Mapping[float, bool], guess: float, *, leap: bool = True) -> float | None:
    """The step to try next, or None when trying has come to an end.

    Where a step was faithful and a larger one was not, the larger one counts: a lab that keeps up only now and then
    does not keep up.

    `steps` ascend; `tried`: step → whether the lab was faithful at it; `guess`: where to begin; `leap`: whether to go
    up by more than a step.
    """
    if not steps:
        return None
    if not tried:
        return next((step for step in steps if step >= guess), steps[-1])
    floor, ceiling = _floor(tried), choose_step(steps, tried)
    low = sum(step <= floor for step in steps) - 1  # position of the largest that failed; -1 = none did
    high = len(steps) if ceiling is None else steps.index(ceiling)
    if high - low <= 1:
        return None
    # While only one side is known, one step after the first trial, two after the second, and so on: a good guess costs
    # two trials, a bad one not many.
    if ceiling is None:
        return steps[min(low + (len(tried) if leap else 1), len(steps) - 1)]
    if low < 0:
        return steps[max(high - len(tried), 0)]
    return steps[(low + high) // 2]


def _floor(tried: Mapping[float, bool]) -> float:
    """Largest step that was not faithful; 0 = none."""
    return max((step for step, faithful in tried.items() if not faithful), default=0.0)


def _plain(dilation: float) -> float:
    """A dilation as it is typed: 200 for 200.0."""
    return int(dilation) if dilation.is_integer() else float(f"{dilation:g}")
