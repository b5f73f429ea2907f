"""How the parts grow with the fabric: planning with its proof, simulation, lab, realtime engine; each over four sizes.

For each quantity the exponent of a power law through all sizes (least squares of logarithms) is shown: what doubling
the number of switches does to it is 2 to that power.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.command import testbed
from benchmarks.planning import ROOT, planned
from benchmarks.table import Figure, progress
from testbed.results import load_run

PARTS = ("planning", "simulation", "lab", "real-time")
_TORI, _RANDOM = (8, 16, 32, 64), (256, 512, 1024, 2048)
_SIMULATED, _LABS, _PACED = (4, 8, 16, 32), (3, 4, 6, 8), (2, 3, 4, 6)
_CLOCKS = 20_000
_POINT = """
import json, resource, sys, time
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
from testbed.engines.simulate import Network, Settings, simulate
size, clocks = int(sys.argv[1]), int(sys.argv[2])
plan = make_plan(parse_scenario(f"topology: {{kind: torus, sizes: [{size}, {size}]}}", "benchmark"))
simulate(Network.from_routes(plan.topology, plan.routes, Settings(clocks=1000, warm_up=0), 1), 0.1, 1)
started = time.perf_counter()
network = Network.from_routes(plan.topology, plan.routes, Settings(clocks=clocks, warm_up=0), 1)
simulate(network, 0.8 * 4 / size / 4, 1)
seconds = time.perf_counter() - started
print(json.dumps({"seconds": seconds, "bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
"""


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Of the power law that fits best."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def _series(what: str, unit: str, switches: Sequence[int], values: Sequence[float]) -> Figure:
    shown = ", ".join(f"{count:,}: {value:.3g}" for count, value in zip(switches, values, strict=True))
    return Figure(f"{what} [{unit}] by switches", f"{shown};  exponent {exponent(switches, values):.2f}")


def _planning() -> list[Figure]:
    figures = []
    cases: tuple[tuple[str, Sequence[int], Callable[[int], str]], ...] = (
        ("torus, dor, fixed", _TORI, lambda k: f"topology: {{kind: torus, sizes: [{k}, {k}], parallel_links: 2}}"),
        (
            "random 8-regular, up*/down*, openflow", _RANDOM,
            lambda n: f"topology: {{kind: random, switches: {n}, degree: 8, seed: 1}}\n"
            "routing: {kind: updown}\nassignment: {kind: openflow}",
        ),
    )  # fmt: skip
    for name, sizes, text in cases:
        found = []
        for size in sizes:
            progress(f"planning: {name}, {size}")
            found.append(planned(name, text(size)))
        switches = [size * size for size in sizes] if sizes is _TORI else list(sizes)
        figures.append(_series(f"plan and proof, {name}", "s", switches, [one["seconds"] for one in found]))
        figures.append(_series(f"memory, {name}", "MiB", switches, [one["bytes"] / 2**20 for one in found]))
    return figures


def _simulation() -> list[Figure]:
    found = []
    for size in _SIMULATED:
        progress(f"simulation: {size}×{size}")
        command = [sys.executable, "-c", _POINT, str(size), str(_CLOCKS)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    switches = [size * size for size in _SIMULATED]
    return [
        _series(f"a flit-level point of {_CLOCKS:,} clocks, torus", "s", switches, [one["seconds"] for one in found]),
        _series("its memory", "MiB", switches, [one["bytes"] / 2**20 for one in found]),
    ]


def _lab() -> list[Figure]:
    rows = []
    for size in _LABS:
        name = f"scaling-{size}"
        facts = testbed("up", "torus4x4", "--set", f"topology.sizes=[{size},{size}]", "--name", name)
        try:
            memory = _memory(int(facts["process"]))
        finally:
            started = time.monotonic()
            testbed("down", name)
            ended = time.monotonic() - started
        rows.append((facts["built_seconds"], facts["checked_seconds"], memory / 2**20, ended))
    switches = [size * size for size in _LABS]
    kinds = (
        ("lab up, torus", "s"),
        ("check of every pair", "s"),
        ("its memory", "MiB"),
        ("lab down, whole command", "s"),
    )
    return [_series(what, unit, switches, [row[column] for row in rows]) for column, (what, unit) in enumerate(kinds)]


def _memory(init: int) -> int:
    """Bytes that all processes of a lab have for themselves, or their share of what they have in common."""
    total = 0
    for entry in Path(f"/proc/{init}/root/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines = (entry / "smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def _real_time() -> list[Figure]:
    """The loop's share of a processor, and how late it is, with every host sending at the same dilation."""
    shares, late, switches = [], [], []
    for size in _PACED:
        with tempfile.TemporaryDirectory() as folder:
            words = (
                f"topology.sizes=[{size},{size}]", "lab.dilation=100", "engine=realtime",
                "workloads=[{kind: iperf3, protocol: udp, offered_load: 0.9, seconds: 4, repeats: 1}]",
            )  # fmt: skip
            settings = [part for word in words for part in ("--set", word)]
            done = testbed("run", "torus4x4", *settings, "--results", folder)
            samples = load_run(Path(done["results"])).samples
        shares.append(next(one.value for one in samples if one.metric == "cpu_switches"))
        late.append(1e6 * next(one.value for one in samples if one.labels.get("quantile") == "p99"))
        switches.append(size * size)
    return [
        _series("realtime engine's loop, dilation 100", "processors", switches, shares),
        _series("p99 of how late it delivers", "µs", switches, late),
    ]


def scaling(part: str) -> list[Figure]:
    """One part."""
    return {"planning": _planning, "simulation": _simulation, "lab": _lab, "real-time": _real_time}[part]()
