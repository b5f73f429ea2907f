"""Measured against predicted: three patterns by UDP and TCP, flow by flow; an all-to-all beside what links allow."""

from __future__ import annotations

import statistics
import subprocess
import sys

from benchmarks.command import ROOT
from benchmarks.flows import ratio_text
from benchmarks.table import Figure, progress
from testbed.results import load_run
from testbed.results.read_run import Run

_SWEEPS = ("patterns", "patterns-tcp")


def patterns() -> list[Figure]:
    """Run both sweeps and compare each flow's median with its prediction."""
    runs = [run for sweep in _SWEEPS for run in _run(sweep)]
    figures = [
        Figure(f"{run.plan.scenario.name}, {load['title']} ({load['verdict']})", ratio_text(run, load["load"]))
        for run in runs
        for load in run.manifest["loads"]
        if load["kind"] == "iperf3"
    ]
    figures += [
        Figure(f"{run.plan.scenario.name}, MPI all-to-all, over what links allow", f"{ratio:.2f}")
        for run in runs
        if (ratio := _all_to_all(run)) is not None
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


def _all_to_all(run: Run) -> float | None:
    """Time of an all-to-all over the least that links allow, median, where one ran."""
    ratios = [
        sample.value / sample.predicted
        for sample in run.samples
        if sample.metric == "mpi_alltoall_time"
        and sample.labels.get("statistic", "median") == "median"
        and sample.predicted
    ]
    return statistics.median(ratios) if ratios else None
