"""The virtual machine: how long its image takes to build, and how long it takes until a lab is running in it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.command import ROOT
from benchmarks.table import Figure, median_text, progress
from testbed.base.resources import CACHE
from testbed.engines.vm.image import build_image

PARTS = ("image", "boot")
# Nothing is measured but the start, so the dilation is given.
_RUN = (
    "torus4x4", "--engine", "vm", "--real-time", "--set", "lab.dilation=700",
    "--set", "workloads=[{kind: ping, count: 1}]",
)  # fmt: skip
# Seconds since the command began, and what begins then.
_STEP = re.compile(r"\[ *([\d.]+) s\] (.*)")
_BEGIN, _UP, _BUILD, _READY = (
    "booting the virtual machine", "[VM] the machine is up", "[VM] building the lab", "[VM] checking the path"
)  # fmt: skip


def machine(part: str, runs: int) -> list[Figure]:
    """Measure one of them.

    Args:
        part: `image`: `make vm` with nothing built before, once, which fetches packages; `boot`: from QEMU's start
            until a lab of the 4×4 torus is running, in real time.
        runs: of `boot`.
    """
    return _image() if part == "image" else _boot(runs)


def _image() -> list[Figure]:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=CACHE) as folder:
        begun = time.monotonic()
        build_image(progress, Path(folder))
        cold = time.monotonic() - begun
        begun = time.monotonic()
        build_image(progress, Path(folder))
        warm = time.monotonic() - begun
    return [Figure("image of the virtual machine", f"cold {cold:.0f} s (360 wanted), warm {warm:.3f} s")]


def _boot(runs: int) -> list[Figure]:
    found: list[tuple[float, ...]] = []
    for number in range(runs):
        progress(f"boot {number + 1} of {runs}: testbed run {' '.join(_RUN)}")
        done = subprocess.run(
            [sys.executable, "-m", "testbed", "run", *_RUN], cwd=ROOT, check=False, capture_output=True, text=True
        )
        if done.returncode not in (0, 3):
            raise SystemExit(f"it ended with exit code {done.returncode}: {done.stderr[-2000:]}")
        begin, *steps = (_first(done.stderr, step) for step in (_BEGIN, _UP, _BUILD, _READY))
        found.append(tuple(step - begin for step in steps))
    words = ("the program has started", "building the lab begins", "the lab is running (25 s wanted)")
    return [
        Figure(f"virtual machine, 4×4 torus: {word}", median_text(seconds, "s"))
        for word, seconds in zip(words, zip(*found, strict=True), strict=True)
    ]


def _first(told: str, begins: str) -> float:
    """Time of the first step whose text begins so."""
    return next(float(at) for at, text in _STEP.findall(told) if text.startswith(begins))
