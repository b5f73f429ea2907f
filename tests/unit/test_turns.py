"""Tests that run side by side: who measures is alone, and nobody overtakes it; a kernel is compiled once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.turns import turn

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(60)
def test_a_test_that_runs_alone_waits_for_others_and_others_for_it(tmp_path):
    said: list[str] = []
    may_end = {name: threading.Event() for name in ("first", "second", "alone", "late")}

    def run(name: str) -> None:
        with turn(tmp_path, alone=name == "alone"):
            said.append(f"{name} begins")
            may_end[name].wait()
            said.append(f"{name} ends")

    def start(name: str) -> threading.Thread:
        thread = threading.Thread(target=run, args=(name,))
        thread.start()
        time.sleep(0.3)
        return thread

    threads = [start(name) for name in ("first", "second")]
    assert said == ["first begins", "second begins"]
    threads += [start("alone"), start("late")]
    assert len(said) == 2  # it waits for both, and who comes later for it
    may_end["late"].set()
    for name in ("first", "second", "alone"):
        may_end[name].set()
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    assert said[2:] == ["first ends", "second ends", "alone begins", "alone ends", "late begins", "late ends"]


def _kernel(folder: Path) -> subprocess.Popen[str]:
    program = (
        "import sys\nfrom pathlib import Path\nfrom tests.turns import compile_once\ncompile_once(Path(sys.argv[1]))\n"
        "from numba.core import event\nheard = event.RecordingListener()\nevent.register('numba:compile', heard)\n"
        "import numpy as np\nfrom testbed.kernels.distances import from_switches\n"
        "one = np.zeros(1, dtype=np.int32)\n"
        "assert from_switches(one, np.array([0, 0]), one, one).tolist() == [[0]]\n"
        "names = [one.data['dispatcher'].py_func.__name__ for _, one in heard.buffer if one.is_start]\n"
        "print(names.count('from_switches'))"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(folder / "cache")}
    return subprocess.Popen([sys.executable, "-c", program, str(folder)], env=environment, stdout=subprocess.PIPE,
                            text=True)  # fmt: skip


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled here")
def test_of_two_processes_one_compiles_a_kernel(tmp_path):
    both = [_kernel(tmp_path) for _ in range(2)]
    assert sorted(process.communicate(timeout=120)[0].strip() for process in both) == ["0", "1"]
