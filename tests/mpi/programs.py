"""Build and run MPI programs as plain processes of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.engines.lab.hosts import build_mpi_jobs

ROOT = Path(__file__).parents[2]
BIN = Path(sys.prefix) / "bin"
needs_compiler = pytest.mark.skipif(
    not (shutil.which("make") and shutil.which("cc") and (BIN / "mpicc").exists()),
    reason="needs make, a C compiler and MPICH of the environment",
)


def make(folder: Path, *settings: str) -> None:
    """Build, one process at a time, and fail with what the compiler said."""
    with build_mpi_jobs.building(folder):
        done = subprocess.run(
            ["make", "-C", str(folder), f"MPICC={BIN / 'mpicc'}", *settings],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def mpirun(ranks: int, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program on some ranks."""
    return subprocess.run(
        [str(BIN / "mpiexec"), "-n", str(ranks), *command],
        capture_output=True, text=True, check=False, timeout=240, stdin=subprocess.DEVNULL, env={**os.environ, **env},
    )  # fmt: skip
