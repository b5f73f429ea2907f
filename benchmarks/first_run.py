"""From a wheel to a verdict: a fresh environment, the package installed there, its first and its second run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from benchmarks.command import ROOT
from benchmarks.table import Figure, median_text, progress

_RUN = ("run", "torus4x4", "--engine", "realtime")
_LIMIT = 1800.0
_VERDICT = re.compile(r"verdict: (\w+)")


def first_run(runs: int) -> list[Figure]:
    """Measure it as `pipx install WHEEL` and `testbed run` do it, with pip's cache and no machine code.

    Args:
        runs: from an empty environment each; the second run of the command shows what compiling has taken.
    """
    seconds: dict[str, list[float]] = {}
    verdicts = []
    for number in range(1, runs + 1):
        with tempfile.TemporaryDirectory(prefix="benchmark-", dir="/var/tmp") as name:
            folder = Path(name)
            progress(f"run {number} of {runs}: building the wheel")
            _call(
                sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation", "-w", name,
                str(ROOT),
            )  # fmt: skip
            (wheel,) = folder.glob("*.whl")
            progress(f"run {number} of {runs}: installing it")
            begun = time.monotonic()
            venv.create(folder / "environment", with_pip=True)
            python = str(folder / "environment" / "bin" / "python")
            _call(python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", str(wheel))
            installed = time.monotonic()
            seconds.setdefault("install the wheel", []).append(installed - begun)
            command = [str(folder / "environment" / "bin" / "testbed"), *_RUN]
            variables = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "machine-code")}
            for which in ("first", "second"):
                progress(f"run {number} of {runs}: the {which} run")
                started = time.monotonic()
                done = subprocess.run(
                    command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=_LIMIT
                )
                if done.returncode not in (0, 3):
                    raise RuntimeError(f"testbed {' '.join(_RUN)} failed: {done.stderr.strip()[-300:]}")
                seconds.setdefault(f"{which} run", []).append(time.monotonic() - started)
                verdicts += _VERDICT.findall(done.stdout)
                if which == "first":
                    seconds.setdefault("from the wheel to a verdict", []).append(time.monotonic() - begun)
    return [
        *(Figure(name, median_text(found, "s")) for name, found in seconds.items()),
        Figure("verdicts", ", ".join(verdicts)),
    ]


def _call(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
