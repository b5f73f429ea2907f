"""Kill `testbed up` at random moments and look at what is left: `make chaos ARGS="--tries 500 --seed 3"`."""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.command import ROOT
from testbed.emulate import launch, registry

_SCENARIO = "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 50}\n"
_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_GONE = 20.0  # seconds after which what is still there counts as left behind


def main() -> None:
    """Kill, and fail where anything is left or the next lab does not stand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    asked = parser.parse_args()
    sys.stdout.write(f"the seed is {asked.seed}; the same moments again: --seed {asked.seed}\n")
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory(prefix="chaos-") as name:
        file = Path(name) / f"chaos-{os.getpid()}.yaml"
        file.write_text(_SCENARIO)
        whole = _whole(file)
        bad: list[str] = []
        slowest = 0.0
        for number in range(asked.tries):
            delay, how = chance.uniform(0, whole), chance.choice(_SIGNALS)
            seconds, left = _killed(file, delay, how)
            slowest = max(slowest, seconds)
            bad += [f"try {number}, {how.name} after {delay:.2f} s: {what}" for what in left]
        _whole(file)
    for line in bad:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(
        f"{asked.tries} kills in the first {whole:.1f} s: {len(bad)} left something; all gone in {slowest:.2f} s at "
        "most; the next lab stood\n"
    )
    sys.exit(1 if bad else 0)


def _testbed(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "testbed", *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _whole(file: Path) -> float:
    """Seconds that a lab takes to stand; it is ended.

    Raises:
        SystemExit: it does not stand, or does not end.
    """
    started = time.monotonic()
    code = _testbed("up", str(file)).wait()
    seconds = time.monotonic() - started
    if code or _testbed("down", file.stem).wait():
        raise SystemExit(f"a lab does not stand or does not end (exit code {code})")
    return seconds


def _killed(file: Path, delay: float, how: signal.Signals) -> tuple[float, list[str]]:
    """Seconds until nothing was there any more, and what stayed."""
    program = _testbed("up", str(file))
    time.sleep(delay)
    program.send_signal(how)
    program.wait()
    started = time.monotonic()
    if any(entry.name == file.stem for entry in registry.entries()):  # it stood already, and is known
        _testbed("down", file.stem).wait()
    left = _left(file.stem)
    while left and time.monotonic() - started < _GONE:
        time.sleep(0.01)
        left = _left(file.stem)
    return time.monotonic() - started, left


def _left(name: str) -> list[str]:
    labs = [f"process {lab.init}" for lab in launch.labs() if lab.scenario == name]
    held = [entry.name for entry in registry.entries()] + [claim.name for claim in registry.being_built()]
    return labs + [f"the record of {name}"] * held.count(name)


if __name__ == "__main__":
    main()
