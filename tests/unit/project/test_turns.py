"""Tests that run side by side: those that measure have the machine for them, and nobody is overtaken; kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.turns import turn

ROOT = Path(__file__).parents[3]


class Running:
    """Threads in the place of processes that run tests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, list[str]()
        self._may_end: dict[str, threading.Event] = {}

    def start(self, name: str, *, alone: bool = False, seat: int | None = None) -> None:
        def run() -> None:
            with turn(self.folder, alone=alone, seat=seat):
                self.said.append(f"{name} begins")
                self._may_end[name].wait()
                self.said.append(f"{name} ends")

        self._may_end[name] = threading.Event()
        threading.Thread(target=run, daemon=True).start()
        time.sleep(0.3)

    def end(self, *names: str) -> None:
        for name in names:
            self._may_end[name].set()
            time.sleep(0.3)

    def said_then(self, *words: str) -> None:
        """Exactly these come next, in any order."""
        until = time.monotonic() + 20
        while len(self.said) < len(words) and time.monotonic() < until:
            time.sleep(0.01)
        assert sorted(self.said) == sorted(words)
        self.said.clear()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_test_that_runs_alone_waits_and_is_waited_for(tmp_path):
    tests = Running(tmp_path)
    tests.start("first")
    tests.start("second")
    tests.said_then("first begins", "second begins")
    tests.start("alone", alone=True)
    tests.start("late")
    tests.end("late")
    assert tests.said == []  # it waits for both, and who comes later for it
    tests.end("first", "second")
    tests.said_then("first ends", "second ends", "alone begins")
    tests.end("alone")
    tests.said_then("alone ends", "late begins", "late ends")


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_quiet_tests_run_beside_those_on_other_seats_only(tmp_path):
    tests = Running(tmp_path)
    tests.start("other")
    tests.start("left", seat=0)
    tests.start("right", seat=1)
    tests.said_then("other begins")
    tests.end("other")
    tests.said_then("other ends", "left begins", "right begins")
    tests.start("left again", seat=0)
    tests.start("alone", alone=True)
    tests.start("late")
    assert tests.said == []
    tests.end("left")
    tests.said_then("left ends", "left again begins")
    tests.end("late", "alone", "left again")
    tests.said_then("left again ends")
    tests.end("right")
    tests.said_then("right ends", "alone begins", "alone ends", "late begins", "late ends")


def _kernel(folder: Path) -> subprocess.Popen[str]:
    program = (
        "import sys\nfrom pathlib import Path\nfrom tests.turns import compile_once\ncompile_once(Path(sys.argv[1]))\n"
        "from numba.core import event\nheard = event.RecordingListener()\nevent.register('numba:compile', heard)\n"
        "import numpy as np\nfrom testbed.fabric.kernels.sssp import from_switches\n"
        "one = np.zeros(1, dtype=np.int32)\n"
        "assert from_switches(one, np.array([0, 0]), one, one).tolist() == [[0]]\n"
        "names = [one.data['dispatcher'].py_func.__name__ for _, one in heard.buffer if one.is_start]\n"
        "print(names.count('from_switches'))"
    )
    cache = str(folder / "cache")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": cache, "TESTBED_INTERPRET": "0"}
    return subprocess.Popen([sys.executable, "-c", program, str(folder)], env=environment, stdout=subprocess.PIPE,
                            text=True)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled here")
def test_of_two_processes_one_compiles_a_kernel(tmp_path):
    both = [_kernel(tmp_path) for _ in range(2)]
    assert sorted(process.communicate(timeout=120)[0].strip() for process in both) == ["0", "1"]
