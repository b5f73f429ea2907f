"""Ctrl-C at random moments: what becomes of the program, and what it leaves."""

from __future__ import annotations

import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import ROOT
from benchmarks.table import Figure, progress

TRIES = 200
_SEED = 1
_SIGNALS = (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LIMIT = 60.0  # seconds after which a program counts as one that does not end
_FABRIC = """\
topology: {kind: random, switches: 1024, degree: 8, hosts_per_switch: 1, seed: 3}
routing: {kind: updown}
assignment: {kind: openflow}
"""
COMMANDS: dict[str, tuple[str, ...]] = {
    "plan": ("plan", "../fabric.yaml"),
    "verify": ("verify", "../fabric.yaml", "--set", "topology.switches=512"),
    "simulate": ("simulate", "torus8x8", "--loads", "0.1,0.2,0.3", "--clocks", "60000", "--warm-up", "1000"),
    "simulate packets": ("simulate", "torus8x8", "--level", "packet", "--loads", "0.1,0.3", "--duration", "100"),
    "analyse": ("analyse", "torus8x8", "../fabric.yaml", "--set", "topology.seed=4"),
}


@dataclass(frozen=True)
class Try:
    """One interrupted program.

    Attributes:
        code: its exit code; negative: the signal that ended it.
        seconds: from the signal to its end.
        said: on standard error.
        left: files half written, and processes.
    """

    code: int
    seconds: float
    said: str
    left: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether it ended as it should; one that had done its work may say so."""
        return self.code in (0, 130) and not self.left and "Traceback" not in self.said and "Error" not in self.said


def interrupts(tries: int) -> list[Figure]:
    """Interrupt each command, with machine code on disk and with none.

    Args:
        tries: of all commands together.

    Raises:
        SystemExit: a program did not end as it should.
    """
    figures: list[Figure] = []
    bad: list[str] = []
    each = max(1, round(tries / 2 / len(COMMANDS)))
    with tempfile.TemporaryDirectory(prefix="interrupts-") as name:
        folder = Path(name)
        (folder / "fabric.yaml").write_text(_FABRIC)
        for command in COMMANDS:
            for cold in (False, True):
                found = _row(folder, command, each, cold=cold)
                title = f"{command}, {'nothing' if cold else 'all'} compiled before"
                figures.append(Figure(title, _text(found)))
                progress(f"{title}: {figures[-1].text}")
                bad += [f"{title}: exit {one.code}, left {one.left}\n{one.said}" for one in found if not one.good]
    for text in bad:
        progress(text)
    if bad:
        raise SystemExit(f"{len(bad)} programs did not end as they should")
    return figures


def _row(folder: Path, command: str, tries: int, *, cold: bool) -> list[Try]:
    if not cold:
        _run(folder, command, None, cold=cold)
    whole = _run(folder, command, None, cold=cold).seconds
    progress(f"{command}, {'cold' if cold else 'warm'}: {whole:.1f} s whole")
    chance = random.Random(f"{_SEED} {command} {cold}")
    plans = [
        (chance.uniform(0, whole), chance.choice(_SIGNALS), chance.choice((None, None, None, chance.uniform(0, 1))))
        for _ in range(tries)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda plan: _run(folder, command, plan, cold=cold), plans))


def _run(folder: Path, command: str, plan: tuple[float, int, float | None] | None, *, cold: bool) -> Try:
    """Start a command and send a signal after some seconds, and perhaps a second one later.

    The seconds count from the moment at which the program has taken the signals over: before, Python alone decides.
    """
    own = Path(tempfile.mkdtemp(dir=folder))
    cache = own / "cache" if cold else folder / "cache"
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            ["env", "--default-signal=INT,TERM,HUP", sys.executable, "-m", "testbed", *COMMANDS[command]],
            cwd=own, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        started = time.monotonic()
        if plan is not None:
            delay, number, second = plan
            wait_for_handlers(process)
            time.sleep(delay)
            started = time.monotonic()
            process.send_signal(number)
            if second is not None:
                time.sleep(second)
                process.send_signal(signal.SIGINT)
        try:
            process.wait(_LIMIT if plan is not None else None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        seconds = time.monotonic() - started
        said.seek(0)
        text = said.read()
    partial = [str(path) for path in (own / "results").rglob("*") if path.name.endswith(".partial")]
    shutil.rmtree(own)
    return Try(process.returncode, seconds, text, (*partial, *_session(process.pid)))


def wait_for_handlers(process: subprocess.Popen[Any]) -> None:
    """Wait until a program has a handler for SIGHUP, which Python alone has not."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        if int(lines.get("SigCgt", "0"), 16) >> (signal.SIGHUP - 1) & 1:
            return
        time.sleep(0.001)


def _session(leader: int) -> list[str]:
    """Processes that are left of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(f"process {entry.name}")
    return found


def _text(found: Sequence[Try]) -> str:
    seconds = [one.seconds for one in found if one.code == 130]
    spent = f"{statistics.median(seconds):.2f} s to the end, at most {max(seconds):.2f} s" if seconds else "-"
    finished = sum(one.code == 0 for one in found)
    return (
        f"{len(found)} tries: {len(seconds)} exit 130, {finished} had done their work, "
        f"{sum(not one.good for one in found)} otherwise; {spent}"
    )
