"""Runs on Dask's workers: how much faster two are than one process, what an item costs beside its run, a killed worker.

Scheduler and workers are processes of their own on this machine, as users start them.
"""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.table import Figure, median_text, progress
from testbed.engines.local_machine.cluster import Cluster, open_cluster
from testbed.engines.simulate import Settings, simulate_plan
from testbed.engines.simulate.flit_point import Point
from testbed.experiments.sweep import prepare, run_sweep
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

_ROOT = Path(__file__).resolve().parents[1]
_LOADS, _SEEDS = tuple(0.02 * number for number in range(1, 17)), 4  # 64 points
_LONG, _SHORT = Settings(clocks=600_000, warm_up=10_000, buffer=256), Settings(clocks=1100, warm_up=1000, buffer=256)
_SWEEP = """
scenarios: [./ring.yaml]
set: {lab.seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}
workloads: [{kind: iperf3, protocol: udp, pattern: neighbour, repeats: 1}]
repeats: 4
"""
_RING = "engine: simulate\ntopology: {kind: ring, switches: 4}\nsimulator: {duration: 100, warm_up: 5}\n"


@contextmanager
def _program(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", *words, "--no-dashboard"]
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _workers(folder: Path, count: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler's address, and its workers of one thread."""
    from distributed import Client  # noqa: PLC0415 - takes half a second

    file = folder / "scheduler.json"
    with ExitStack() as ends:
        words = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        ends.enter_context(_program(folder, *words))
        while not file.exists() or not file.read_text():
            time.sleep(0.1)
        with Client(scheduler_file=str(file)) as client:
            address = str(client.scheduler_info()["address"])
        more = ("--nthreads", "1", "--no-nanny")
        processes = [
            ends.enter_context(_program(folder, "distributed.cli.dask_worker", address, *more)) for _ in range(count)
        ]
        with Client(address) as client:
            client.wait_for_workers(count)
        yield address, processes


def _points(folder: Path, settings: Settings, workers: Cluster | None) -> tuple[float, list[Point]]:
    """Seconds, and the points without the time that each took."""
    plan = make_plan(parse_scenario("topology: {kind: torus, sizes: [8, 8]}", "benchmark"))
    started = time.monotonic()
    found = simulate_plan(
        plan, settings, _LOADS, _SEEDS, folder, lambda text: None, jobs=None if workers else 1, workers=workers
    )
    return time.monotonic() - started, list(found.points)


def cluster(runs: int) -> list[Figure]:
    """All of it; in turn, run by run."""
    ratios, alone, apart, overheads, same = [], [], [], [], True
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with _workers(folder, 2) as (address, _), open_cluster(address, progress) as workers:
            _points(folder / "first", _SHORT, workers)  # loads compiled code
            _points(folder / "first", _SHORT, None)
            for number in range(1, runs + 1):
                progress(f"64 points, run {number} of {runs}: one process")
                one, points = _points(folder / f"one{number}", _LONG, None)
                progress(f"64 points, run {number} of {runs}: two workers")
                two, others = _points(folder / f"two{number}", _LONG, workers)
                same = same and [_bare(point) for point in points] == [_bare(point) for point in others]
                ratios.append(one / two)
                alone.append(one)
                apart.append(two)
                # What two workers need for runs that take no time of their own.
                short, trivial = _points(folder / f"short{number}", _SHORT, workers)
                overheads.append(1e3 * (2 * short - sum(point.seconds for point in trivial)) / len(trivial))
        figures = [
            Figure("64 points, one process, one thread", median_text(alone, "s")),
            Figure("64 points, two workers of one thread", median_text(apart, "s")),
            Figure("64 points: ratio, run by run (at least 1.85)", median_text(ratios, "×")),
            Figure("64 points: the same, digit for digit", "yes" if same else "NO"),
            Figure("an item's overhead on a worker (at most 50)", median_text(overheads, "ms")),
        ]
        return [*figures, _killed(folder)]


def _bare(point: Point) -> Point:
    return dataclasses.replace(point, seconds=0.0)


def _killed(folder: Path) -> Figure:
    """A sweep of 40 runs, one of whose two workers is killed."""
    (folder / "ring.yaml").write_text(_RING)
    (folder / "sweep.yaml").write_text(_SWEEP)
    place = folder / "scheduler"
    place.mkdir()
    planned = prepare(folder / "sweep.yaml")
    with _workers(place, 2) as (address, processes), open_cluster(address, progress) as workers:

        def told(text: str) -> None:
            if text.startswith("15 of 40 runs done") and processes[0].poll() is None:
                processes[0].send_signal(signal.SIGKILL)

        found = run_sweep(planned, folder / "results", told, workers=workers)
        killed = processes[0].wait(20) == -signal.SIGKILL
    finished = [entry for entry in found.record.entries if entry.state == "finished"]
    stored = len(list((found.folder / "runs").iterdir()))
    text = f"{len(finished)} finished, {stored} folders, {'SIGKILL after the 15th' if killed else 'NOT KILLED'}"
    return Figure("40 runs of a sweep, one of two workers killed", text)
