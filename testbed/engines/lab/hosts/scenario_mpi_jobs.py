"""MPI jobs that a scenario names by a path: built from a copy of what was trusted, in a folder that only we write.

A Makefile is a program that runs with the caller's rights, as root for a lab, and a scenario may be somebody else's. So
its folder is read once, and what is built is what was read. It is built elsewhere, since whoever owns the folder could
change it meanwhile.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from dataclasses import replace
from pathlib import Path

from testbed.base.errors import CapabilityError, InputError
from testbed.base.files import make_folder
from testbed.base.resources import CACHE
from testbed.base.trust import JobFolder, may_run, read_job_folder, store, why_not
from testbed.scenario.workloads.mpi import MpiJob


def with_trusted_sources(job: MpiJob, name: str, key: str, source: str) -> MpiJob:
    """A job of a path that is built from a copy of its folder; one without a Makefile brings its program and stays.

    `name`, `key` and `source` say as what it was named, and where.

    Raises:
        InputError: its files cannot be read, or the caller has not said that it may be built.
    """
    folder = Path(job.folder)
    if not (folder / "Makefile").exists():
        return job
    try:
        sources = read_job_folder(folder)
    except OSError as error:
        sentence = f"the MPI job {name} cannot be read: {error.filename}: {error.strerror}"
        raise InputError.one(key, sentence, source) from error
    if not may_run(sources):
        what = (
            f"{name} is an MPI job of {sources.owner} ({sources.size}, SHA-256 {sources.digest[:16]}…) whose Makefile "
            "would build it with your rights"
        )
        raise InputError.one(key, why_not(what, sources), source)
    copy, program = _place_of(sources), Path(job.binary)
    binary = copy / program.relative_to(folder) if program.is_relative_to(folder) else program
    return replace(job, folder=str(copy), binary=str(binary), sources=sources)


def _place_of(sources: JobFolder) -> Path:
    """Where the copy of a job is: for root at the same path on all machines."""
    kept = CACHE if os.geteuid() == 0 else store().parent
    return kept / "mpi_jobs" / sources.digest[:32]


def unpack_sources(sources: JobFolder) -> None:
    """Write the copy that a job is built from, unless it is there.

    Raises:
        CapabilityError: it cannot be written, or others could write it too.
    """
    folder = _place_of(sources)
    kept = folder.parent
    partial = kept / f".{folder.name}.{secrets.token_hex(8)}"
    try:
        make_folder(kept.parent)
        kept.mkdir(mode=0o755, exist_ok=True)
        _require_own(kept)
        if not folder.exists():
            _write(sources, partial)
            _put(partial, folder)
    except OSError as error:
        sentence = f"{folder}, where {sources.path} would be built, cannot be written: {error.strerror}"
        raise CapabilityError(sentence) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _require_own(folder)


def _put(partial: Path, folder: Path) -> None:
    try:
        partial.rename(folder)
    except OSError:
        if not folder.exists():  # another program has not been quicker
            raise


def _write(sources: JobFolder, folder: Path) -> None:
    folder.mkdir(mode=0o755)
    for name, file in sources.files.items():
        target = folder / name
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.can_run else 0o644)
        os.utime(target, ns=(file.changed, file.changed))


def _require_own(folder: Path) -> None:
    status = folder.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or not folder.is_dir():
        raise CapabilityError(f"others can write into {folder}, where MPI jobs are built; remove it, or chmod go-w it")
