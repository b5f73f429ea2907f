"""The programs of MPI jobs: what each job.yaml says, and building them with the wheel's mpicc."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Ge, Gt

from testbed.base.errors import CapabilityError, InputError, Problem, did_you_mean, indent_lines
from testbed.base.files import make_folder, read_text
from testbed.base.limits import YAML
from testbed.base.python_isolation import find_python
from testbed.base.resources import find_build_folder, find_part, setup
from testbed.engines.lab.hosts.scenario_mpi_jobs import unpack_sources, with_trusted_sources
from testbed.scenario.parameter_models import fill
from testbed.scenario.read_blocks import read_value
from testbed.scenario.workloads import npb
from testbed.scenario.workloads.mpi import MpiJob, Output
from testbed.scenario.workloads.spec import Npb

FOLDER = find_part("mpi_jobs")
_BUILD_LIMIT = 600.0
_SHOWN_LINES = 6
_CAUSE = re.compile("error:|undefined |multiple definition|cannot find|No such file")  # of a compiler or linker


@dataclass(frozen=True, slots=True)
class _JobFile:
    """What a job.yaml may say; mpi_jobs/README.md describes it."""

    name: str
    description: str
    binary: str
    success: str
    args: tuple[str, ...] = ()
    time_limit_seconds: Annotated[float, Gt(0)] = 60.0
    output: Output = "json"
    fabric_bytes: Annotated[int, Ge(0)] = 0
    interpreter: Literal["python"] | None = None
    pattern: Literal["none", "optional", "required"] = "none"


def job_names() -> list[str]:
    """Names of all jobs of the testbed itself."""
    return sorted(file.parent.name for file in FOLDER.glob("*/job.yaml"))


def job_summaries() -> dict[str, str]:
    """Every job of the testbed itself, with its description."""
    return {name: _read(FOLDER / name / "job.yaml").description for name in job_names()}


def read_job(name: str, key: str, base: Path = Path(), source: str = "") -> MpiJob:
    """Return a job as its file describes it.

    `name` is a folder of mpi_jobs/, or with a `/` in it a path to a job's folder, which starts from `base`, as a rule
    the scenario's folder. `key` and `source` are where it was named.

    Raises:
        InputError: no such job, all that is wrong with its file, or it is not ours and nobody has said that it may be
            built.
    """
    folder = (base / name).resolve() if "/" in name else FOLDER / name
    file = folder / "job.yaml"
    if "/" in name and not file.is_file():
        raise InputError.one(key, f'there is no MPI job in "{name}": {folder} has no job.yaml', source)
    if "/" not in name and name not in job_names():
        beside = f' Did you mean "./{name}"?' if (base / name / "job.yaml").is_file() else ""
        meant = beside or did_you_mean(name, job_names())
        raise InputError.one(
            key,
            f'there is no MPI job "{name}".{meant} Known: {", ".join(job_names())}, or a path such as ./my_job',
            source,
        )
    job = _job(file)
    return job if folder.parent == FOLDER else with_trusted_sources(job, name, key, source)


def _job(file: Path) -> MpiJob:
    said = _read(file)
    folder = find_build_folder("mpi_jobs") / file.parent.name if file.parent.parent == FOLDER else file.parent
    binary = str((folder / said.binary).resolve())
    return MpiJob(
        said.name, binary, said.success, said.args, said.time_limit_seconds, said.output, said.fabric_bytes,
        find_python() if said.interpreter else "", said.pattern, str(folder),
    )  # fmt: skip


def _read(file: Path) -> _JobFile:
    try:
        text = read_text(file, file.parent, most=YAML)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(str(file), f"cannot be read: {reason}") from error
    raw = read_value(text, str(file))
    problems: list[Problem] = []
    said: _JobFile | None = fill(_JobFile, raw, "job", problems)
    if said is not None:
        problems += _more_problems(said)
    if said is None or problems:
        keys = (problem.key.removeprefix("job").removeprefix(".") for problem in problems)
        raise InputError([Problem(key, p.sentence, str(file)) for key, p in zip(keys, problems, strict=True)])
    return said


def _more_problems(said: _JobFile) -> list[Problem]:
    problems = []
    if not re.fullmatch(r"[\w-]+", said.name):
        problems.append(Problem("name", f'should be letters, digits, "-" and "_", not "{said.name}"'))
    try:
        re.compile(said.success)
    except re.error as error:
        problems.append(Problem("success", f'"{said.success}" is not a regular expression: {error}'))
    if said.fabric_bytes and said.output != "free":
        problems.append(Problem("fabric_bytes", f"is for output: free; with {said.output} the output itself tells it"))
    return problems


def mpi_program(name: str) -> Path:
    """Path of `mpicc` or `mpiexec` of the environment this program runs in.

    Raises:
        CapabilityError: MPICH is not installed there.
    """
    program = Path(sys.prefix) / "bin" / name
    if not program.exists():
        raise CapabilityError(f"{name} of MPICH is not in {program.parent}; MPI jobs cannot run; {setup()}")
    return program


def _compilers() -> list[str]:
    """What Makefiles are told: MPICC, and MPICXX and MPIFC where the environment has these compilers."""
    others = {"MPICXX": "mpicxx", "MPIFC": "mpifort"}
    there = {name: path for name, tool in others.items() if (path := Path(sys.prefix) / "bin" / tool).exists()}
    return [f"MPICC={mpi_program('mpicc')}", *(f"{name}={path}" for name, path in there.items())]


def mpi_libraries() -> Path:
    """Folder of MPICH's libraries, where programs that were built elsewhere find one of the same ABI."""
    return Path(sys.prefix) / "lib"


def build_job(job: MpiJob) -> None:
    """Build a job and the polling shim; does nothing when both are up to date.

    A folder without a Makefile brings its program built. A Makefile that is not ours runs from trusted sources alone.

    Raises:
        CapabilityError: something it needs is missing, or it does not compile.
    """
    _fetch()
    if job.sources is not None:
        unpack_sources(job.sources)
    _make("shim", find_build_folder("mpi_jobs") / "shim")
    folder = Path(job.folder)
    if (folder / "Makefile").exists():
        if job.sources is None and not folder.is_relative_to(find_build_folder("mpi_jobs")):
            raise CapabilityError(f"the MPI job {job.name} has got a Makefile meanwhile; run the command again")
        _make(job.name, folder, *_compilers(), *job.make)
    program = Path(job.binary)
    if not program.is_file():
        raise CapabilityError(f"the MPI job {job.name} has no program {program}; its Makefile should make it")
    if not job.interpreter and not os.access(program, os.X_OK):
        raise CapabilityError(f"the program {program} of the MPI job {job.name} is not executable; chmod +x it")


def _fetch() -> None:
    """Copy the sources of an installed package to where programs may be built."""
    folder = find_build_folder("mpi_jobs")
    if folder.exists():
        return
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        make_folder(folder.parent)
        shutil.copytree(FOLDER, partial)
        partial.rename(folder)
    except OSError as error:
        if not folder.exists():  # another program has not been quicker
            sentence = (
                f"{folder} cannot be written, so MPI jobs cannot be built: {error.strerror}; run the command with sudo"
            )
            raise CapabilityError(sentence) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _make(name: str, folder: Path, *settings: str) -> None:
    try:
        with building(folder):
            done = subprocess.run(
                ["make", "--no-print-directory", "-C", str(folder), *settings],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_BUILD_LIMIT,
                check=False,
            )  # fmt: skip
    except FileNotFoundError as error:
        raise CapabilityError(f"make is not installed, so MPI jobs cannot be built; {setup()}") from error
    except subprocess.TimeoutExpired as error:
        raise CapabilityError(f"the MPI job {name} was not built in {_BUILD_LIMIT:g} s") from error
    if done.returncode != 0:
        raise CapabilityError(indent_lines(f"the MPI job {name} does not build: {_reason(done.stderr)}"))


@contextmanager
def building(folder: Path) -> Iterator[None]:
    """Let one build of a folder run at a time, of all programs on the machine."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _reason(errors: str) -> str:
    """Lines that say what is wrong, without make's own: from a compiler's or linker's first error on, else the last."""
    lines = [line for line in errors.splitlines() if line.strip() and not re.match(r"make(\[\d+\])?:", line)]
    first = next((n for n, line in enumerate(lines) if _CAUSE.search(line)), max(0, len(lines) - _SHOWN_LINES))
    return "\n".join(lines[first : first + _SHOWN_LINES]) or (errors.strip() or "it printed no reason")


def build_tracer() -> None:
    """Build the library that records what ranks send each other; does nothing when it is up to date.

    Raises:
        CapabilityError: something it needs is missing.
    """
    _fetch()
    _make("trace", find_build_folder("mpi_jobs") / "trace", f"MPICC={mpi_program('mpicc')}")


def tracer_path() -> Path:
    """The library that records what ranks send each other."""
    return find_build_folder("mpi_jobs") / "trace" / "build" / "trace.so"


def shim_path() -> Path:
    """The library that lets waiting ranks sleep."""
    return find_build_folder("mpi_jobs") / "shim" / "build" / "blocking_poll.so"


_PARTS = ("Makefile", "sys", "config")


def npb_job(spec: Npb) -> MpiJob:
    """Return the job of a kernel, which is the official one where the environment has NPB_DIR.

    Raises:
        InputError: that folder is none of the official benchmarks.
        CapabilityError: they cannot be compiled here.
    """
    official, kernel = official_folder(), spec.kernel.lower()
    if official is None:
        folder = find_build_folder("mpi_jobs") / "npb"
        binary, make = folder / "build" / kernel, [f"build/{kernel}"]
    else:
        _require_sources(official, spec)
        folder = find_build_folder("mpi_jobs") / "npb" / "official"
        binary = folder / "build" / "tree" / "bin" / f"{kernel}.{spec.class_}.x"
        make = [f"{npb.VARIABLE}={official}", f"KERNEL={kernel}", f"CLASS={spec.class_}"]
    return MpiJob(
        f"npb-{kernel}", str(binary), npb.SUCCESS, time_limit=npb.TIME_LIMIT, output="npb", folder=str(folder),
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
