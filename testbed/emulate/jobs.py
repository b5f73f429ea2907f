"""The programs of mpi_jobs/: what each job.yaml says, and building them with the wheel's mpicc."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from testbed.emulate.commands import run
from testbed.errors import CapabilityError, InputError, LabError, Problem, did_you_mean
from testbed.workloads.mpi import MpiJob

FOLDER = Path(__file__).resolve().parents[2] / "mpi_jobs"
_BUILD_LIMIT = 300.0


class _JobFile(BaseModel):
    """What a job.yaml may say."""

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str
    binary: str
    success: str
    args: tuple[str, ...] = ()
    time_limit_seconds: Annotated[float, Field(gt=0)] = 60.0
    output: Literal["json", "free"] = "json"
    fabric_bytes: Annotated[int, Field(ge=0)] = 0


def job_names() -> list[str]:
    """Names of all jobs."""
    return sorted(file.parent.name for file in FOLDER.glob("*/job.yaml"))


def read_job(name: str, place: str) -> MpiJob:
    """Return a job as its file describes it.

    Args:
        name: its folder.
        place: where it was named, for the message.

    Raises:
        InputError: no such job, or its file is wrong.
    """
    file = FOLDER / name / "job.yaml"
    if name not in job_names():
        raise InputError.one(
            place, f'there is no MPI job "{name}".{did_you_mean(name, job_names())} Known: {", ".join(job_names())}'
        )
    try:
        raw: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
        job = _JobFile.model_validate(raw)
    except yaml.YAMLError as error:
        raise InputError.one(str(file), f"is not YAML: {error}") from error
    except ValidationError as error:
        raise InputError(
            [Problem(f"{file}: {'.'.join(map(str, d['loc']))}", d["msg"]) for d in error.errors(include_url=False)]
        ) from error
    binary = str((file.parent / job.binary).resolve())
    return MpiJob(job.name, binary, job.success, job.args, job.time_limit_seconds, job.output, job.fabric_bytes)


def mpi_program(name: str) -> Path:
    """Path of `mpicc` or `mpiexec` of the environment this program runs in.

    Raises:
        CapabilityError: MPICH is not installed there.
    """
    program = Path(sys.prefix) / "bin" / name
    if not program.exists():
        raise CapabilityError(f"{name} of MPICH is not in {program.parent}; MPI jobs cannot run; run `make setup`")
    return program


def build_job(name: str) -> None:
    """Build a job and the polling shim; does nothing when both are up to date.

    Raises:
        CapabilityError: no compiler.
        LabError: it does not compile.
    """
    try:
        run(["make", "-C", str(FOLDER / "shim")], timeout=_BUILD_LIMIT)
        run(["make", "-C", str(FOLDER / name), f"MPICC={mpi_program('mpicc')}"], timeout=_BUILD_LIMIT)
    except LabError as error:
        raise LabError(f"the MPI job {name} does not build: {error}") from error


def shim_path() -> Path:
    """The library that lets waiting ranks sleep."""
    return FOLDER / "shim" / "build" / "blocking_poll.so"
