"""The same scenarios on Open vSwitch and on modelled switches, in turn: the main job, and figures of a paper.

Figures are medians over all pairs and runs. Dilations are what the scenarios and sweeps say.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from benchmarks.command import testbed
from benchmarks.table import Figure, progress
from testbed.base.model import Sample
from testbed.base.units import format_quantity
from testbed.experiments.run.engines import run_scenario
from testbed.planning import make_plan
from testbed.results import load_run
from testbed.scenario import find_scenario, load_scenario

# Labels that tell figures apart; others say which of many alike, whose median is taken.
_APART = ("protocol", "pattern", "bytes")
_SHOWN = (
    "goodput", "goodput_mean", "loss", "retransmits", "rtt_min", "mpi_latency", "mpi_bandwidth",
    "mpi_pingping_bandwidth", "mpi_alltoall_time", "completion_time",
)  # fmt: skip
_SWEEPS = {"fig7": ("fig7-realtime", "fig7"), "fig8": ("fig8-realtime", "fig8"), "fig10": ("fig10-realtime", "fig10")}
_NAMES = {"ovs": "Open vSwitch", "realtime": "modelled switches"}

Found = dict[str, list[str]]  # what was measured → as it was on each engine


def median_figures(samples: Iterable[Sample]) -> dict[str, str]:
    """Medians of samples that are alike, beside those of their predictions."""
    alike: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    for one in samples:
        if one.metric in _SHOWN:
            words = (one.metric, *(str(one.labels[key]) for key in _APART if one.labels.get(key)))
            alike[words].append(one)
    found = {}
    for named, every in alike.items():
        value = statistics.median(one.value for one in every)
        text = format_quantity(value, every[0].unit)
        predicted = [one.predicted for one in every if one.predicted]
        if predicted:
            text += f" ({format_quantity(statistics.median(predicted), every[0].unit)} predicted)"
        found[" ".join(named)] = text
    return found


def _torus(runs: int) -> Found:
    found: Found = defaultdict(list)
    for _ in range(runs):
        for engine, name in _NAMES.items():
            plan = make_plan(load_scenario(find_scenario("torus4x4"), [f"engine={engine}"]))
            with tempfile.TemporaryDirectory() as folder:
                began = time.monotonic()
                outcome = run_scenario(plan, Path(folder), progress)
                took = time.monotonic() - began
                run = load_run(outcome.folder)
            whole = f"dilation {run.dilation:g}, {took:.0f} s, {outcome.verdict.word}"
            for what, text in {"whole run": whole, **median_figures(outcome.samples)}.items():
                found[what].append(f"{name}: {text}")
    return found


def _sweep(part: str, runs: int) -> Found:
    found: Found = defaultdict(list)
    for sweep, name in zip(_SWEEPS[part], reversed(_NAMES.values()), strict=True):
        with tempfile.TemporaryDirectory() as folder:
            done = testbed("sweep", sweep, "--results", folder, "--repeats", str(runs))
            grouped: dict[str, list[Sample]] = defaultdict(list)
            words: dict[str, list[str]] = defaultdict(list)
            for one in done["runs"]:
                if one.get("folder"):
                    run = load_run(Path(done["results"]) / one["folder"])
                    grouped[one["label"]] += run.samples
                words[one["label"]].append(one.get("verdict") or one["state"])
        for label, samples in grouped.items():
            found[f"{name}, {label}"] = [
                ", ".join(words[label]),
                *(f"{a}: {b}" for a, b in median_figures(samples).items()),
            ]
    return found


PARTS = ("torus4x4", *_SWEEPS)


def engines(part: str, runs: int) -> list[Figure]:
    """Measure one part on both engines, `runs` times."""
    found = _torus(runs) if part == "torus4x4" else _sweep(part, runs)
    return [Figure(f"{part}, {what}", "; ".join(texts)) for what, texts in found.items()]
