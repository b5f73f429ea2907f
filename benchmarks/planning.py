"""Planning and proving: topology, routing, VLANs, every proof and the digest, in fresh processes.

The first plan of a process loads compiled code from disk and is not counted; the second is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import Figure, median_text, progress

ROOT = Path(__file__).resolve().parents[1]
_PROGRAM = """
import json, resource, sys, time
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
scenario = parse_scenario(sys.argv[1], "benchmark")
make_plan(scenario)
started = time.perf_counter()
plan = make_plan(scenario)
seconds = time.perf_counter() - started
assert plan.is_proved, plan.violations[0].sentence
ends = len(set(plan.topology.host_switch.tolist()))
memory = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"seconds": seconds, "pairs": ends * ends, "bytes": memory}))
"""


@dataclass(frozen=True)
class Case:
    """A fabric to plan; `most` is what the project promises, in seconds on two cores."""

    name: str
    scenario: str
    most: float


def _torus(size: int, most: float) -> Case:
    return Case(
        f"{size}×{size} torus, dor, fixed",
        f"topology: {{kind: torus, sizes: [{size}, {size}], parallel_links: 2}}",
        most,
    )


def _random(switches: int, routing: str, assignment: str, most: float, degree: int = 8) -> Case:
    return Case(
        f"random {degree}-regular {switches}, {routing}, {assignment}",
        f"topology: {{kind: random, switches: {switches}, degree: {degree}, seed: 1}}\n"
        f"routing: {{{routing}}}\nassignment: {{kind: {assignment}}}",
        most,
    )


CASES = (
    _torus(8, 1.0),
    _torus(16, 1.0),
    _torus(32, 1.0),
    _torus(64, 15.0),
    Case("16×16×16 torus, dor, fixed", "topology: {kind: torus, sizes: [16, 16, 16], parallel_links: 2}", 10.0),
    _random(256, "kind: updown", "renamed", 0.2),
    _random(1024, "kind: updown", "openflow", 1.5),
    _random(1024, "kind: sr", "openflow", 10.0),
    _random(1024, "kind: dl, layers: 3", "openflow", 20.0),
    _random(1024, "kind: nue, layers: 8", "openflow", 25.0),
    _random(10_000, "kind: updown, next_hop: destination", "static", 120.0, degree=16),
)


def planned(name: str, scenario: str) -> dict[str, float]:
    """Seconds, pairs of switches and bytes of a plan, made and proved in a process of its own.

    Raises:
        SystemExit: that failed.
    """
    command = [sys.executable, "-c", _PROGRAM, scenario]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def planning(runs: int) -> list[Figure]:
    """Seconds, memory and time a pair of each case."""
    figures = []
    for case in CASES:
        measured = []
        for number in range(1, runs + 1):
            progress(f"{case.name}: run {number} of {runs}")
            measured.append(planned(case.name, case.scenario))
        seconds = [run["seconds"] for run in measured]
        pairs = measured[0]["pairs"]
        figures += [
            Figure(f"{case.name}: plan and verify (at most {case.most:g} s)", median_text(seconds, "s")),
            Figure(f"{case.name}: a pair of switches", median_text([1e9 * s / pairs for s in seconds], "ns")),
            Figure(f"{case.name}: memory", median_text([run["bytes"] / 2**20 for run in measured], "MiB")),
        ]
    return figures
