"""All loads with all seeds, side by side, so that they can be interrupted anywhere and resumed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np

from testbed.base.errors import InputError, Problem, setting
from testbed.base.model import Floats
from testbed.base.units import format_eta
from testbed.engines.simulate.detail_levels import Runs, level_of, runs_of
from testbed.engines.simulate.flit_point import Point, Row, rows_of
from testbed.engines.simulate.flit_settings import Settings, pattern_problems
from testbed.engines.simulate.packet_settings import PacketSettings
from testbed.engines.simulate.result_folder import (
    new_folder,
    newest_folder,
    read_points,
    samples_of,
    store,
    write_point,
)
from testbed.planning import Plan
from testbed.planning.speeds import alike_problems
from testbed.results.store import lock_folder
from testbed.scenario.pickle_plugins import Pickled, pickle_value

Progress = Callable[[str], None]


class Workers(Protocol):
    """Other processes that run functions, on this machine or others."""

    @property
    def slots(self) -> int:
        """Functions they run at a time."""

    def share(self, value: object) -> object:
        """Put a value where every worker can take it from; what this returns stands for it in submit()."""

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Run a function on some worker."""


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """A simulation that has come to its end."""

    plan: Plan  # what was simulated
    settings: Settings | PacketSettings  # of the switches and the traffic
    folder: Path  # of its results
    points: tuple[Point, ...]  # every run in it, by load and seed

    @property
    def rows(self) -> tuple[Row, ...]:
        """One a load."""
        return rows_of(self.points)

    @property
    def packet_settings(self) -> PacketSettings | None:
        """The settings, where they are those of the packet level."""
        return self.settings if isinstance(self.settings, PacketSettings) else None

    @property
    def must_not_deadlock(self) -> bool:
        """Whether a deadlock would be a fault: of a plan without a declared one, and of switches that drop."""
        drops = self.packet_settings is not None and not self.packet_settings.lossless
        return drops or self.plan.scenario.expect != "deadlock"

    @property
    def deadlock(self) -> Point | None:
        """The first run that deadlocked, or None."""
        return next((point for point in self.points if point.cycle), None)

    @property
    def channel_use(self) -> tuple[tuple[float, ...], Floats]:
        """Loads at which no run deadlocked, and (C, L) the share of the time that each channel carried something."""
        flowing = [point for point in self.points if not point.cycle]
        loads = tuple(sorted({point.load for point in flowing}))
        use = [
            np.mean([np.array(point.channel_use) for point in flowing if point.load == load], axis=0) for load in loads
        ]
        return loads, np.stack(use, axis=1) if use else np.zeros((len(self.plan.topology.channel_source), 0))

    @property
    def highest(self) -> Row | None:
        """The load with the highest accepted traffic, which is the throughput; None where all deadlocked."""
        flowing = [row for row in self.rows if row.accepted is not None]
        return max(flowing, key=lambda row: row.accepted.mean if row.accepted else 0.0, default=None)


def simulate_plan(
    plan: Plan,
    settings: Settings | PacketSettings,
    loads: Sequence[float],
    seeds: int | Callable[[float], int],
    results: Path,
    progress: Progress,
    *,
    resume: bool = False,
    jobs: int | None = None,
    workers: Workers | None = None,
) -> SimulationOutcome:
    """Run every load with every seed; each run that is done is kept at once.

    Runs are threads, since the kernels let go of the interpreter's lock, or tasks of workers; results are the same.

    `loads`: flits for each host that sends and clock; `seeds`: 1 to this number, the same for all loads or by load;
    `jobs`: threads at a time, None = as many as there are processors for this program.

    Raises:
        InputError: settings that do not fit each other or the fabric, or no such simulation to resume.
        VerificationError: the plan breaks an invariant it does not declare.
    """
    plan.require_proof()
    problems = alike_problems(plan.scenario, "the simulator")
    if problems:
        raise InputError(problems)
    problems = [
        *bundle_problems(plan),
        *level_of(settings).problems(plan, settings, seeds if isinstance(seeds, int) else 1),
        *pattern_problems(settings.pattern, plan.topology, _seed(plan)),
    ]
    if problems:
        raise InputError(problems)
    runs = runs_of(plan, settings)
    asked: dict[str, object] = {"digest": plan.digest, "pattern_seed": _seed(plan), **runs.asked}
    name, word = plan.scenario.name, level_of(settings).word
    folder = newest_folder(results, name, asked, word) if resume else new_folder(results, name, asked, word)
    with lock_folder(folder, "simulation"):
        done = {(point.load, point.seed): point for point in read_points(folder)}
        runs_at = (lambda load: seeds) if isinstance(seeds, int) else seeds
        wanted = [(load, seed) for load in sorted(loads) for seed in range(1, runs_at(load) + 1)]
        waiting = [pair for pair in wanted if pair not in done]
        if done:
            progress(f"{len(wanted) - len(waiting)} of {len(wanted)} runs are done already")
        if waiting:
            progress("loading the simulator; compiling it, the first time, takes half a minute")
            runs.warm()  # workers on this machine take the machine code from the disk, too
            if workers is None:
                jobs = min(jobs or len(os.sched_getaffinity(0)), len(waiting))
                begun = _threads(runs, waiting, jobs)
            else:
                jobs = workers.slots
                begun = _tasks(plan, settings, waiting, workers)
            progress("1 run" if len(waiting) == 1 else f"{len(waiting)} runs, {jobs} at a time")
            with begun as ended:
                for point in _store_points(ended, len(waiting), progress, folder):
                    done[point.load, point.seed] = point
        points = tuple(done[pair] for pair in sorted(done))
        store(folder, plan, runs.asked, points, samples_of(plan, settings.pattern, points))
    return SimulationOutcome(plan, settings, folder, points)


def bundle_problems(plan: Plan) -> list[Problem]:
    """The simulator's links carry one flit a cycle, also those that represent several."""
    if plan.bundles is None or (plan.bundles.sizes == 1).all():
        return []
    place = f"{plan.scenario.source}: links.aggregate"
    sentence = f"the simulator knows no aggregated links; simulate with {setting('links.aggregate', value=False)}"
    return [Problem(place, sentence)]


def _seed(plan: Plan) -> int:
    return plan.scenario.lab.seed


Ended = SimpleQueue["Future[Point | None]"]  # in the order in which they do


@contextmanager
def _threads(runs: Runs, waiting: Sequence[tuple[float, int]], jobs: int) -> Iterator[Ended]:
    """Run what is waiting, a few at a time; on the way out, however that is, the threads are made to end."""
    stop = threading.Event()
    ended: Ended = SimpleQueue()
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        for load, seed in waiting:
            pool.submit(runs.one, load, seed, stop.is_set).add_done_callback(ended.put)
        yield ended
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _tasks(
    plan: Plan, settings: Settings | PacketSettings, waiting: Sequence[tuple[float, int]], workers: Workers
) -> Iterator[Ended]:
    """Give what is waiting to workers; on the way out what has not begun is cancelled."""
    ended: Ended = SimpleQueue()
    shared = workers.share(pickle_value((plan, settings), plan.scenario))
    tasks = [workers.submit(point_of, shared, load, seed) for load, seed in waiting]
    try:
        for task in tasks:
            task.add_done_callback(ended.put)
        yield ended
    finally:
        for task in tasks:
            task.cancel()


def _store_points(ended: Ended, count: int, progress: Progress, folder: Path) -> Iterator[Point]:
    """The points of so many runs as they end, each stored at once."""
    started = time.monotonic()
    for number in range(1, count + 1):
        point = ended.get().result()
        if point is None:
            continue
        write_point(folder, point)
        yield point
        seconds = (time.monotonic() - started) / number * (count - number)
        left = f", {format_eta(seconds)}" if number < count else ""
        progress(f"{number} of {count} runs done{left}: load {point.load:g}, seed {point.seed}")


_LAST: list[tuple[Pickled, Runs]] = []


def point_of(shared: Pickled, load: float, seed: int) -> Point | None:
    """One run, in a worker, which keeps what the runs of a plan have in common until it gets another plan.

    `shared`: plan and settings.
    """
    if not _LAST or _LAST[0][0] is not shared:
        _LAST[:] = [(shared, runs_of(*shared.load()))]
    return _LAST[0][1].one(load, seed, lambda: False)
