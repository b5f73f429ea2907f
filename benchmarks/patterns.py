"""Measured against predicted: three patterns by UDP and by TCP, flow by flow, and an all-to-all against one switch."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.command import ROOT
from benchmarks.flows import ratio_text
from benchmarks.table import Figure, progress
from testbed.results import load_run
from testbed.results.load import Run

_SWEEPS = ("patterns", "patterns-tcp")
# What the project promises; the tree is only there to be slower.
_PROMISED = ("mesh4x4", "torus4x4", "fattree14", "myri-clos")


def patterns() -> list[Figure]:
    """Run both sweeps and compare each flow's median with its prediction."""
    runs = [run for sweep in _SWEEPS for run in _run(sweep)]
    figures = [
        Figure(f"{run.plan.scenario.name}, {load['title']} ({load['verdict']})", ratio_text(run, load["load"]))
        for run in runs
        for load in run.manifest["loads"]
        if load["kind"] == "iperf3"
    ]
    seconds = {run.plan.scenario.name: time for run in runs if (time := _all_to_all(run)) is not None}
    figures += [
        Figure(f"{name}, MPI all-to-all against flat", f"{seconds['flat16'] / time:.3f}{_note(name)}")
        for name, time in seconds.items()
    ]
    return figures


def _run(sweep: str) -> list[Run]:
    file = f"scenarios/sweeps/{sweep}.yaml"
    progress(f"testbed sweep {file}")
    results = ROOT / "results"
    known = set(results.glob(f"*-sweep-{sweep}"))
    done = subprocess.run([sys.executable, "-m", "testbed", "sweep", file], cwd=ROOT, check=False)
    folder = max(set(results.glob(f"*-sweep-{sweep}")) - known, default=None)
    if folder is None or done.returncode not in (0, 1, 3):
        raise SystemExit(f"the sweep ended with exit code {done.returncode}")
    return [load_run(path) for path in sorted((folder / "runs").iterdir())]


def _note(name: str) -> str:
    return " (promised 0.9 and more)" if name in _PROMISED[1:] else ""


def _all_to_all(run: Run) -> float | None:
    """Seconds of an all-to-all, median, where one ran."""
    times = [
        sample.value
        for sample in run.samples
        if sample.metric == "mpi_alltoall_time" and sample.labels.get("statistic", "median") == "median"
    ]
    return statistics.median(times) if times else None
