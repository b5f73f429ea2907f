"""Run the project's tests inside the virtual machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence

from testbed.base.python_isolation import clean_environment, make_module_command
from testbed.base.resources import PACKAGES
from testbed.engines.vm.machine import NEEDED_BY_TESTS, free_memory
from testbed.engines.vm.stream import lines, run_program

_TEST_LIMIT = 1200  # s for one test, translated by QEMU on a busy machine


def _list_places() -> str:
    """Where pytest looks unless it is told: to read all tests only to deselect them takes longer than some of these."""
    labs = sorted((PACKAGES / "tests" / "lab").glob("test_*.py"))
    marked = [file for file in labs if "mark.vm" in file.read_text(encoding="utf-8")]
    return " ".join(["testpaths=tests/vm", *(file.relative_to(PACKAGES).as_posix() for file in marked)])


def run_tests(arguments: Sequence[str], line: Callable[[str], None]) -> int:
    """Run pytest, on each processor as far as memory goes, and return its exit code."""
    workers = max(1, min(os.cpu_count() or 1, free_memory() // NEEDED_BY_TESTS))
    options = ["-p", "no:cacheprovider", f"--timeout={_TEST_LIMIT}", "-o", _list_places()]
    options += ["-n", str(workers), "--dist", "loadgroup", "--no-loadscope-reorder"]  # as `make test` does
    command = [*make_module_command("pytest", *options, *arguments, unbuffered=True)]
    # What a lab needs is in the machine, so a test that is skipped for want of it has failed.
    # CI makes pytest give whole reasons in its summary.
    environment = {**clean_environment(), "TESTBED_REQUIRE_LAB": "1", "TESTBED_IN_VM": "1", "CI": "1"}
    with run_program(command, subprocess.STDOUT, PACKAGES, environment) as process:
        for text in lines(process):
            line(text)
        return process.wait()
