"""Run the project's tests inside the virtual machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from testbed.emulate.vm.memory import NEEDED_BY_TESTS, free_memory
from testbed.emulate.vm.project import ROOT
from testbed.emulate.vm.stream import lines, started

_TEST_LIMIT = 1200  # s for one test, translated by QEMU on a busy machine
# Where pytest looks unless it is told: to read all tests only to deselect them takes longer than some of these.
_FOLDERS = "testpaths=tests/lab tests/vm"
_NO_TESTS = 5  # pytest's exit code where none was selected
# Tests look at what the machine has before and after, so each share of them sees a machine of its own.
_APART = (
    "unshare", "--pid", "--net", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc",
    "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
)  # fmt: skip


def run_tests(arguments: Sequence[str], line: Callable[[str], None]) -> int:
    """Run pytest, a share of the tests on each processor, and return its exit code, the worst of them.

    Args:
        arguments: for pytest.
        line: called with each line it prints, with the number of the share before it where there are several.
    """
    shares = max(1, min(os.cpu_count() or 1, free_memory() // NEEDED_BY_TESTS))

    def run(share: int) -> int:
        mark = f"{share + 1}| " if shares > 1 else ""
        return _run_share(f"{share}/{shares}", arguments, lambda text: line(f"{mark}{text}"))

    with ThreadPoolExecutor(shares) as pool:
        codes = set(pool.map(run, range(shares)))
    return max(codes - {_NO_TESTS}, default=_NO_TESTS)


def _run_share(share: str, arguments: Sequence[str], line: Callable[[str], None]) -> int:
    options = ["-p", "no:cacheprovider", f"--timeout={_TEST_LIMIT}", "-o", _FOLDERS]
    command = [*_APART, sys.executable, "-u", "-m", "pytest", *options, *arguments]
    # What a lab needs is in the machine, so a test that is skipped for want of it has failed.
    # CI makes pytest give whole reasons in its summary.
    told = {"TESTBED_REQUIRE_LAB": "1", "TESTBED_IN_VM": "1", "TESTBED_SHARE": share, "CI": "1"}
    environment = {**os.environ, **told}
    with started(command, subprocess.STDOUT, ROOT, environment) as process:
        for text in lines(process):
            line(text)
        return process.wait()
