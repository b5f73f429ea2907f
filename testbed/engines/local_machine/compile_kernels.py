"""Compile what commands use at once, side by side, so that no first call waits for it.

numba compiles a function for the types of its arguments when it is first called, and keeps the machine code. So the
commands themselves are run, on small fabrics, each in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from testbed.base.errors import EXIT_WARNINGS
from testbed.base.python_isolation import clean_environment, make_module_command

_LIMIT = 900.0
_FLITS = ("simulate", "ring4", "--cycles", "2000", "--warm-up", "500", "--packet", "8", "--loads", "0.1")
_FRAMES = ("simulate", "ring4", "--level", "packet", "--duration", "1", "--warm-up", "0.2", "--loads", "0.2")
_PLAN = ("plan", "updown-irregular16", "--set")
_UDP = 'workloads=[{"kind": "iperf3", "protocol": "udp"}]'
_TCP = 'workloads=[{"kind": "iperf3", "protocol": "tcp"}]'
_PAUSE = (*_FRAMES, "--flow-control", "pause")
SIMULATOR = (_PAUSE, _FLITS)  # what set-up compiles, for whoever simulates at once
# What takes longest first.
COMMANDS: tuple[tuple[str, ...], ...] = (
    _PAUSE,
    ("run", "ring4", "--engine", "simulate", "--set", _TCP),
    _FLITS,
    ("simulate", "ring4", "--pattern", "all_to_all", "--message", "1000"),
    (*_FRAMES, "--flow-control", "none"),
    ("run", "ring4", "--engine", "simulate", "--set", _UDP),
    *((*_PLAN, f"routing.kind={kind}", "--set", "assignment.kind=openflow") for kind in ("nue", "dfsssp", "lash")),
    (*_PLAN, "routing.kind=updown"),
    ("plan", "sr-irregular16"),
    ("plan", "dl-ud3-irregular16"),
    ("plan", "mesh4x4-renamed"),
    ("plan", "torus4x4-failures"),
    ("analyse", "torus4x4", "mesh4x4"),
    ("power", "torus4x4-3links"),
)


def compile_all(progress: Callable[[str], None], commands: Sequence[Sequence[str]] = COMMANDS) -> list[str]:
    """Run the commands, as many at once as there are processors; a sentence for each that did not work."""
    started, problems = time.monotonic(), []
    environment = {**clean_environment(), "TESTBED_INTERPRET": "0"}

    def run(words: Sequence[str], folder: str) -> str:
        command = make_module_command("testbed", *words)
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            return f"testbed {' '.join(words)}: did not end in {_LIMIT:g} s"
        if done.returncode in (0, 3):
            return ""
        last = (done.stderr.strip() or "it printed nothing").splitlines()[-1]
        return f"testbed {' '.join(words)}: exit code {done.returncode}: {last}"

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(run, words, folder) for words in commands]
        for number, one in enumerate(as_completed(running), 1):
            left = (time.monotonic() - started) / number * (len(running) - number)
            progress(f"compiling, side by side: {number} of {len(running)} parts, about {left:.0f} s left")
            if one.result():
                problems.append(one.result())
    return problems


def main() -> None:
    """Compile the simulator; says what could not be compiled, with exit code 3."""
    problems = compile_all(lambda _: None, SIMULATOR)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    sys.exit(EXIT_WARNINGS if problems else 0)


if __name__ == "__main__":
    main()
