"""Going through the rows, so that nothing is computed twice and an interrupt costs one run at most."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from testbed.base.errors import InputError, TestbedError, argument
from testbed.base.files import code_digest, make_folder, write_whole
from testbed.base.units import format_eta
from testbed.experiments.paper.compare_numbers import Result, judge
from testbed.experiments.paper.published_numbers import Item
from testbed.experiments.paper.runner_arguments import Call
from testbed.experiments.paper.runners import RUNNERS
from testbed.experiments.run.worker_protocol import LabWorkers


@dataclass(frozen=True, slots=True)
class Found:
    """What a runner gave, kept in a file of its own."""

    call: str  # runner and options
    values: tuple[float, ...]  # one a drawing
    seconds: float  # it took


class Store:
    """Values of runners in a folder, by runner, options and the program's code; what other code gave is not taken."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, call: Call) -> Found | None:
        """What the runner gave before; None where there is none, or none that can be read."""
        try:
            raw = json.loads(self._file(call).read_text(encoding="utf-8"))
            return Found(raw["call"], tuple(float(value) for value in raw["values"]), float(raw["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, call: Call, values: Sequence[float], seconds: float) -> Found:
        """Keep it.

        Raises:
            InputError: the folder cannot be written.
        """
        found = Found(call.text, tuple(map(float, values)), seconds)
        content = json.dumps({"call": found.call, "values": found.values, "seconds": round(seconds, 3)}, indent=1)
        try:
            make_folder(self._folder)
            write_whole(self._file(call), content.encode())
        except OSError as error:
            raise InputError.one(str(self._folder), f"cannot be written: {error.strerror}") from error
        return found

    def _file(self, call: Call) -> Path:
        name = hashlib.sha256(f"{code_digest()}\n{call.text}".encode()).hexdigest()[:24]
        return self._folder / f"{name}.json"


def run_items(
    items: Sequence[Item],
    store: Store,
    progress: Callable[[str], None],
    *,
    quick: bool,
    workers: LabWorkers | None = None,
) -> dict[str, tuple[Result, ...]]:
    """Obtain our numbers, cheapest first, and judge them.

    A runner that fails fails the rows that need it; the others go on.

    Args:
        items: to go through.
        store: of what was run before.
        progress: called with one line on what is going on.
        quick: leave out what needs a lab or a long simulation, but show what was run before.
        workers: run them; None = this program does, one after the other.

    Raises:
        InputError: labs are needed, and no worker may run one.

    Returns:
        name of the item → results in the order of its rows.
    """
    calls: dict[str, Call] = {}
    for row in (row for item in items for row in item.rows):
        for leaf in row.call.leaves if row.call is not None else ():
            calls.setdefault(leaf.text, leaf)
    known = {text: found for text, call in calls.items() if (found := store.get(call)) is not None}
    wanted = [call for text, call in calls.items() if text not in known and (call.quick or not quick)]
    wanted.sort(key=lambda call: RUNNERS[call.run].seconds(call.options))
    expected = [RUNNERS[call.run].seconds(call.options) for call in wanted]
    errors: dict[str, str] = {}
    if workers is not None:
        _run_on_workers(wanted, workers, store, progress, known, errors)
        return {item.name: _judge_item(item, known, errors) for item in items}
    taken = 0.0
    for number, call in enumerate(wanted):
        pace = taken / sum(expected[:number]) if number else 1.0
        left = format_eta(pace * sum(expected[number:]))
        progress(f"{number + 1} of {len(wanted)}: {_short(call.text)}, {left}")
        values, error, seconds = compute_figures(call)
        if error:
            errors[call.text] = error
        else:
            known[call.text] = store.put(call, values, seconds)
        taken += seconds
    return {item.name: _judge_item(item, known, errors) for item in items}


def compute_figures(call: Call) -> tuple[tuple[float, ...], str, float]:
    """What a runner gives, why it gives nothing (else empty), and the seconds that it took."""
    values: tuple[float, ...] = ()
    started, error = time.monotonic(), ""
    try:
        values = tuple(map(float, RUNNERS[call.run].run(call.options)))
    except TestbedError as problem:
        error = str(problem)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
    return values, error, time.monotonic() - started


def _put(ended: SimpleQueue[tuple[Call, Future[Any]]], call: Call, task: Future[Any]) -> None:
    ended.put((call, task))


def _run_on_workers(
    wanted: Sequence[Call],
    workers: LabWorkers,
    store: Store,
    progress: Callable[[str], None],
    known: dict[str, Found],
    errors: dict[str, str],
) -> None:
    """Give runners to workers, the longest first; each value is kept as it comes.

    On the way out, however that is, what has not begun is cancelled.
    """
    labs = [call for call in wanted if RUNNERS[call.run].lab]
    if labs and not workers.lab_slots:
        sentence = (
            f"{len(labs)} of {len(wanted)} values need a lab, and no worker says that it may run one; start one a "
            "machine, as root, with `dask worker ADDRESS --nthreads 1 --resources lab=1`, or choose others by "
            f"{argument('only')}"
        )
        raise InputError.one(argument("cluster"), sentence)
    if wanted:
        progress(f"{len(wanted)} values, on {workers.slots} workers")
    ended: SimpleQueue[tuple[Call, Future[Any]]] = SimpleQueue()
    tasks, begun = [], time.monotonic()
    try:
        for call in reversed(wanted):
            task = (workers.submit_lab if RUNNERS[call.run].lab else workers.submit)(compute_figures, call)
            tasks.append(task)
            task.add_done_callback(partial(_put, ended, call))
        for number in range(1, len(wanted) + 1):
            call, task = ended.get()
            values, error, seconds = task.result()
            if error:
                errors[call.text] = error
            else:
                known[call.text] = store.put(call, values, seconds)
            left = format_eta((time.monotonic() - begun) / number * (len(wanted) - number))
            progress(f"{number} of {len(wanted)}, {left}: {_short(call.text)}")
    finally:
        for task in tasks:
            task.cancel()


def _judge_item(item: Item, known: dict[str, Found], errors: dict[str, str]) -> tuple[Result, ...]:
    ours: list[float | None] = []
    failed: list[str] = []
    for row in item.rows:
        leaves = row.call.leaves if row.call is not None else ()
        failed.append("; ".join(errors[leaf.text] for leaf in leaves if leaf.text in errors))
        whole = bool(leaves) and all(leaf.text in known for leaf in leaves)
        ours.append(row.call.value(lambda call: known[call.text].values) if whole and row.call is not None else None)
    return judge(item.rows, ours, failed)


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"
