"""The programs of the NAS Parallel Benchmarks: those of mpi_jobs/npb, or NASA's own from the folder NPB_DIR names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from testbed.emulate.jobs import FOLDER
from testbed.errors import CapabilityError, InputError
from testbed.workloads import mpi_npb, npb
from testbed.workloads.mpi import MpiJob
from testbed.workloads.spec import Npb

_PARTS = ("Makefile", "sys", "config")


def npb_job(spec: Npb) -> MpiJob:
    """Return the job of a kernel, which is the official one where the environment has NPB_DIR.

    Raises:
        InputError: that folder is none of the official benchmarks.
        CapabilityError: they cannot be compiled here.
    """
    official, kernel = official_folder(), spec.kernel.lower()
    if official is None:
        folder = FOLDER / "npb"
        binary, make = folder / "build" / kernel, [f"build/{kernel}"]
    else:
        _require_sources(official, spec)
        folder = FOLDER / "npb" / "official"
        binary = folder / "build" / "tree" / "bin" / f"{kernel}.{spec.class_}.x"
        make = [f"{npb.VARIABLE}={official}", f"KERNEL={kernel}", f"CLASS={spec.class_}"]
    return MpiJob(
        f"npb-{kernel}", str(binary), mpi_npb.SUCCESS, time_limit=npb.TIME_LIMIT, output="npb", folder=str(folder),
        trace=official is not None, make=tuple(make),
    )  # fmt: skip


def official_folder() -> Path | None:
    """The folder of the official benchmarks that the environment names; None where it names none."""
    named = os.environ.get(npb.VARIABLE, "")
    return Path(named).resolve() if named else None


def _require_sources(folder: Path, spec: Npb) -> None:
    lacking = [part for part in (*_PARTS, spec.kernel) if not (folder / part).exists()]
    if lacking:
        inside = sorted(path.name for path in folder.glob("NPB*-MPI")) if folder.is_dir() else []
        meant = f'. Did you mean "{folder / inside[0]}"?' if inside else ""
        raise InputError.one(
            npb.VARIABLE,
            f"{folder} has no {' and no '.join(lacking)}; it should be the folder NPB3.4-MPI of NASA's unpacked NPB, "
            f"or be left out to run the kernels of mpi_jobs/npb{meant}",
        )
    if any(sign in str(folder) for sign in " \t$'\"#:"):
        raise InputError.one(
            npb.VARIABLE, f"{folder} has a blank or one of $, ', \", #, : in its path; make cannot take it"
        )
    # IS alone is in C.
    if spec.kernel != "IS" and shutil.which("gfortran") is None:
        raise CapabilityError(
            f"gfortran is not installed, so the official {spec.kernel} in {folder} cannot be compiled; run `apt-get "
            f"install gfortran`, or unset {npb.VARIABLE} to run the kernels of mpi_jobs/npb"
        )
