"""Planning and verifying, in fresh processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.table import Figure, median_text, progress

_ROOT = Path(__file__).resolve().parents[1]
_PROGRAM = """
import sys, time
from testbed.plan import make_plan
from testbed.scenario import parse_scenario
k = sys.argv[1]
scenario = parse_scenario(f"topology: {{kind: torus, sizes: [{k}, {k}]}}", "benchmark")
started = time.perf_counter()
plan = make_plan(scenario)
assert not plan.violations
print(time.perf_counter() - started)
"""


def planning(size: int, runs: int) -> list[Figure]:
    """Seconds to plan and prove a k×k torus: the call alone."""
    seconds = []
    for number in range(1, runs + 1):
        progress(f"planning {size}×{size}: run {number} of {runs}")
        command = [sys.executable, "-c", _PROGRAM, str(size)]
        seconds.append(float(subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout))
    return [Figure(f"{size}×{size} torus: plan and verify", median_text(seconds, "s"))]
