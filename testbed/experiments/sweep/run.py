"""Run a prepared sweep, one run after the other, so that it can be interrupted anywhere and resumed."""

from __future__ import annotations

import dataclasses
import re
import statistics
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from testbed.base.errors import InputError, Problem, TestbedError, argument
from testbed.base.files import rename
from testbed.base.units import format_eta
from testbed.experiments.run.advice import Invocation
from testbed.experiments.run.engine import RunOutcome
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.worker_protocol import LabWorkers
from testbed.experiments.sweep.plan_combinations import Planned
from testbed.experiments.sweep.record import (
    RUNS,
    Entry,
    Record,
    new_folder,
    newest_folder,
    read_record,
    remove_unfinished,
    run_folders,
    write_record,
)
from testbed.experiments.sweep.remote_runs import RemoteResult, run_remote, unpack
from testbed.experiments.sweep.results import SweepOutcome, write_comparison
from testbed.planning import Plan, make_plan
from testbed.results import load_run
from testbed.results.store import lock_folder
from testbed.scenario import Scenario
from testbed.scenario.pickle_plugins import pickle_value

Progress = Callable[[str], None]
_LONGEST = 120  # characters of a label in the name of a folder


Runner = Callable[[Plan, Path, Progress, Invocation], RunOutcome]


def run_sweep(
    planned: Planned,
    results: Path,
    progress: Progress,
    *,
    resume: bool = False,
    runner: Runner = run_scenario,
    workers: LabWorkers | None = None,
) -> SweepOutcome:
    """Run what is not done yet, then compare all.

    Repeats are run in rounds, so that a machine that changes slowly does not look like a difference of scenarios.

    With `resume` the newest sweep of that name goes on. With `workers` runs are theirs, and as many at a time as they
    have room for; the folder is the same.

    Raises:
        InputError: the folder cannot be made, what is to be resumed is not there or no longer the same, or no worker
            may run labs.
    """
    fresh = _make_record(planned)
    if workers is not None:
        _require_labs(planned, workers)
    folder = newest_folder(results, planned.sweep.name) if resume else new_folder(results, planned.sweep.name)
    with lock_folder(folder, "sweep"):
        record = _resume_record(folder, fresh, progress) if resume else fresh
        write_record(folder, record)
        waiting = [number for number, entry in enumerate(record.entries) if entry.state != "finished"]
        if workers is not None:
            record = _run_on_workers(planned, folder, record, waiting, progress, workers)
        else:
            for number in waiting:
                record = _one(planned, folder, record, number, progress, runner)
        progress("comparing all runs")
        return write_comparison(planned.sweep, folder, record)


def _make_record(planned: Planned) -> Record:
    entries = (
        Entry(job.label, repeat, job.settings, job.scenario_digest, job.plan_digest)
        for repeat in range(1, planned.sweep.repeats + 1)
        for job in planned.jobs
    )
    return Record(planned.sweep.name, planned.sweep.source, time.time(), tuple(entries))


def _resume_record(folder: Path, fresh: Record, progress: Progress) -> Record:
    """The record of before, without what was not finished and with the repeats that have come to it.

    Raises:
        InputError: the sweep file or a plan has changed since.
    """
    record = read_record(folder)
    before = {(entry.label, entry.repeat): entry for entry in record.entries}
    now = {(entry.label, entry.repeat): entry for entry in fresh.entries}
    problems = []
    labels, rounds = {label for label, _ in before}, max(repeat for _, repeat in before)
    added = {key for key in now if key[0] in labels and key[1] > rounds}
    for what, keys in (("is new", now.keys() - before.keys() - added), ("is gone", before.keys() - now.keys())):
        problems += [f"{label}, repeat {repeat}, {what}" for label, repeat in sorted(keys)]
    for key in before.keys() & now.keys():
        old, new = before[key], now[key]
        if old.plan_digest != new.plan_digest:
            problems.append(f"{key[0]} had plan {old.plan_digest} and now has {new.plan_digest}")
        elif old.scenario_digest != new.scenario_digest:
            problems.append(f"{key[0]} has other settings or loads now")
    if problems:
        anew = f"leave {argument('resume')} out to start anew"
        sentence = f"the sweep has changed since it began, so it cannot be resumed; {anew}"
        changes = [Problem(str(folder), problem) for problem in sorted(dict.fromkeys(problems))]
        raise InputError([Problem(str(folder), sentence), *changes])
    record = dataclasses.replace(record, entries=(*record.entries, *(now[key] for key in now if key in added)))
    used = set()
    for number, entry in enumerate(record.entries):
        if entry.state == "finished" and entry.folder is not None:
            try:
                load_run(folder / entry.folder, below=folder)
                used.add(folder / entry.folder)
                continue
            except InputError as error:
                progress(f"{entry.label} is run again: {error}")
        record = record.replace_entry(
            number, state="waiting", folder=None, verdict="", reasons=(), advice="", seconds=None, error=""
        )
    remove_unfinished(run_folders(folder) - used)
    kept = len(used)
    progress(f"{kept} of {len(record.entries)} runs are done already")
    return record


def _one(planned: Planned, folder: Path, record: Record, number: int, progress: Progress, runner: Runner) -> Record:
    """Run one and return the record with what came of it; what goes wrong in it stays in it."""
    entry = record.entries[number]
    before = run_folders(folder)
    record = record.replace_entry(number, state="running")
    write_record(folder, record)
    left = format_eta(seconds_left(record.entries))
    head = ", ".join([f"run {number + 1} of {len(record.entries)}", *([left] if left else []), entry.label])
    started = time.monotonic()
    try:
        progress(f"{head}: planning")
        plan = make_plan(next(job.scenario for job in planned.jobs if job.label == entry.label))
        asked = Invocation.from_scenario(plan.scenario, entry.settings)
        outcome = runner(plan, folder / RUNS, lambda text: progress(f"{head}: {text}"), asked)
        done: dict[str, object] = {
            "state": "finished", "folder": str(_named(outcome.folder, plan.scenario.name, entry).relative_to(folder)),
            "verdict": outcome.verdict.word, "reasons": outcome.reasons, "advice": outcome.advice,
        }  # fmt: skip
    except Exception as error:
        # One run's trouble, even a fault of this program, must not cost a night's other runs; it is told at the end.
        text = str(error) if isinstance(error, TestbedError) else traceback.format_exc()
        rest = sorted(str(path.relative_to(folder)) for path in run_folders(folder) - before)
        done = {"state": "broken", "error": text, "folder": rest[0] if rest else None}
        progress(f"{head}: broken: {text}")
    except BaseException:
        remove_unfinished(run_folders(folder) - before)
        write_record(folder, record.replace_entry(number, state="waiting"))
        raise
    record = record.replace_entry(number, **done, seconds=round(time.monotonic() - started, 3))
    write_record(folder, record)
    return record


def _needs_lab(scenario: Scenario) -> bool:
    return scenario.engine != "simulate"


def _require_labs(planned: Planned, workers: LabWorkers) -> None:
    labs = [job.label for job in planned.jobs if _needs_lab(job.scenario)]
    if labs and not workers.lab_slots:
        sentence = (
            f"{labs[0]}{f' and {len(labs) - 1} more need' if len(labs) > 1 else ' needs'} a lab, and no worker says "
            "that it may run one; start one a machine, as root, with `dask worker ADDRESS --nthreads 1 --resources "
            f"lab=1`, or leave {argument('cluster')} out"
        )
        raise InputError([Problem(argument("cluster"), sentence)])


def _put(ended: SimpleQueue[tuple[int, Future[RemoteResult]]], number: int, task: Future[RemoteResult]) -> None:
    ended.put((number, task))


def _run_on_workers(
    planned: Planned, folder: Path, record: Record, waiting: Sequence[int], progress: Progress, workers: LabWorkers
) -> Record:
    """Give runs to workers, and return the record with what came of them; each is stored as it ends.

    On the way out, however that is, what has not begun is cancelled.
    """
    ended: SimpleQueue[tuple[int, Future[RemoteResult]]] = SimpleQueue()
    jobs = {job.label: job for job in planned.jobs}
    labs = sum(_needs_lab(jobs[record.entries[number].label].scenario) for number in waiting)
    places = ", ".join(
        f"{count} {what} at a time on {slots} places"
        for count, what, slots in (
            (len(waiting) - labs, "simulations", workers.slots),
            (labs, "labs", workers.lab_slots),
        )
        if count
    )
    if waiting:
        progress(f"runs on workers: {places}")
    begun, tasks = time.monotonic(), []
    try:
        for number in waiting:
            job = jobs[record.entries[number].label]
            submit = workers.submit_lab if _needs_lab(job.scenario) else workers.submit
            task = submit(run_remote, pickle_value(job.scenario, job.scenario), job.settings, job.plan_digest)
            tasks.append(task)
            task.add_done_callback(partial(_put, ended, number))
        for count in range(1, len(waiting) + 1):
            number, task = ended.get()
            carried = task.result()
            entry = record.entries[number]
            arrived = unpack(carried, folder / RUNS)
            done: dict[str, object] = {"seconds": carried.seconds, "folder": None}
            if arrived is not None:
                name = jobs[entry.label].scenario.name
                done["folder"] = str((arrived if carried.error else _named(arrived, name, entry)).relative_to(folder))
            if carried.error:
                done |= {"state": "broken", "error": carried.error}
            else:
                done |= {
                    "state": "finished", "verdict": carried.verdict, "reasons": carried.reasons,
                    "advice": carried.advice,
                }  # fmt: skip
            record = record.replace_entry(number, **done)
            write_record(folder, record)
            left = format_eta((time.monotonic() - begun) / count * (len(waiting) - count))
            said = f"broken: {carried.error}" if carried.error else carried.verdict
            progress(f"{count} of {len(waiting)} runs done, {left}: {entry.label}: {said}")
    finally:
        for task in tasks:
            task.cancel()
    return record


def _named(folder: Path, name: str, entry: Entry) -> Path:
    """The folder of a run of a scenario of this name, with the settings of its label in its own."""
    label = re.sub(r"[^\w.=,+-]+", "-", entry.label)[:_LONGEST].strip("-")
    named = folder.with_name(folder.name.replace(name, label, 1))
    if named.exists():
        return folder
    rename(folder, named)
    return named


def seconds_left(entries: Sequence[Entry]) -> float | None:
    """Seconds for all runs that are not done: each as long as its own repeats took, else as the mean of all.

    Returns:
        None before the first run is done.
    """
    done: dict[str, list[float]] = {}
    for entry in entries:
        if entry.state in ("finished", "broken") and entry.seconds is not None:
            done.setdefault(entry.label, []).append(entry.seconds)
    if not done:
        return None
    usual = statistics.fmean(seconds for some in done.values() for seconds in some)
    left = (entry for entry in entries if entry.state in ("waiting", "running"))
    return sum(statistics.fmean(done[entry.label]) if entry.label in done else usual for entry in left)
