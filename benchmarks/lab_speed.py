"""Building and taking down a shaped torus: this project's lab against stock Mininet, in turn, on one machine."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.table import Figure, median_text, progress

_ROOT = Path(__file__).resolve().parents[1]
_NAMESPACES = ["unshare", "--pid", "--net", "--mount", "--uts", "--fork", "--kill-child", "--mount-proc"]


def _stock(size: int) -> dict[str, Any]:
    command = [*_NAMESPACES, sys.executable, "-m", "benchmarks.stock_mininet", str(size)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"stock Mininet failed: {done.stderr.strip()[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _ours(size: int) -> dict[str, float]:
    """Whole commands: `testbed up` with planning, proof and Python's start; `testbed down` likewise."""
    testbed = [sys.executable, "-m", "testbed"]
    name = f"bench-{size}x{size}"
    setting = [f"--set=topology.sizes=[{size},{size}]", f"--name={name}", "--format=json"]
    started = time.monotonic()
    up = subprocess.run([*testbed, "up", "torus4x4", *setting], cwd=_ROOT, capture_output=True, text=True, check=False)
    whole_up = time.monotonic() - started
    if up.returncode != 0:
        raise RuntimeError(f"testbed up failed: {up.stderr.strip()[-300:]}")
    facts = json.loads(up.stdout)
    started = time.monotonic()
    subprocess.run([*testbed, "down", name], cwd=_ROOT, capture_output=True, check=True)
    whole_down = time.monotonic() - started
    # The check of every pair's path, which stock Mininet has not, is not part of building.
    return {"up": whole_up - facts["checked_seconds"], "checked": facts["checked_seconds"], "down": whole_down}


def lab_speed(size: int, runs: int) -> list[Figure]:
    """Measure both in turn and compare run by run."""
    stock, ours = [], []
    for number in range(1, runs + 1):
        progress(f"{size}×{size}: run {number} of {runs}, stock Mininet")
        stock.append(_stock(size))
        progress(f"{size}×{size}: run {number} of {runs}, this lab")
        ours.append(_ours(size))
    figures = []
    for what in ("up", "down"):
        theirs, mine = [s[what] for s in stock], [o[what] for o in ours]
        ratios = [t / m for t, m in zip(theirs, mine, strict=True)]
        figures.append(Figure(f"{size}×{size} {what}: stock Mininet", median_text(theirs, "s")))
        figures.append(Figure(f"{size}×{size} {what}: this lab, whole command", median_text(mine, "s")))
        figures.append(Figure(f"{size}×{size} {what}: ratio, run by run", median_text(ratios, "×")))
    figures.append(
        Figure(f"{size}×{size}: check of all paths, not in up", median_text([o["checked"] for o in ours], "s"))
    )
    return figures
