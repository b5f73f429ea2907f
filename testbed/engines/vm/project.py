"""The project, as it is in this folder, as a disk for the virtual machine: a plain tar archive."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.base import resources
from testbed.base.files import make_folder, write_whole

JOB = "job"
# All that runs in a lab. Results, environments and caches stay out.
LAB_PARTS = ("pyproject.toml", "testbed", "controllers", "mpi_jobs")
# With the tests and what they read.
ALL_PARTS = (
    *LAB_PARTS, "README.md", "LICENSE", "Makefile", "locks", "scripts", "scenarios", "tests", "benchmarks", "docs",
)  # fmt: skip
# The machine's Python is 3.11: what this one has compiled for it need not be compiled again.
_COMPILED = ".cpython-311.pyc"
_AGED = 1_000_000_000  # s since the epoch, long before anything is built in the machine


def pack_project(
    target: Path,
    job: Mapping[str, str],
    parts: Sequence[str] = ALL_PARTS,
    root: Path | None = None,
    more: Mapping[str, Path] | None = None,
) -> None:
    """Write the archive.

    `job` is name → text of further files, put into the folder `job`; `root` a clone, by default this project; `more`
    what is not part of it: place in the archive → file.

    Raises:
        OSError: a file cannot be read or written.
    """
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for part in parts:
            place = resources.find_part(part) if root is None else root / part
            if place.exists():
                archive.add(place, part, filter=_filter_member)
        for place_in_it, file in (more or {}).items():
            archive.add(file, place_in_it, recursive=False, filter=_own)
        for name, text in job.items():
            content = text.encode()
            member = tarfile.TarInfo(f"{JOB}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _filter_member(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    built = parts[0] == "mpi_jobs" and "build" in parts  # linked with the libraries of this machine
    stale = "__pycache__" in parts[:-1] and not member.name.endswith(_COMPILED)
    # Of an installed package: the other parts, once more.
    shared = parts[:2] in (("testbed", "share"), ("testbed", "controllers"))
    if built or stale or shared or not (member.isfile() or member.isdir() or member.issym()):
        return None
    if parts[0] == "mpi_jobs":
        # The guest has another date, and make builds anew what is older than its sources.
        member.mtime = _AGED
    return _own(member)


def _own(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """It belongs to root there."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def unpack_results(archive_file: Path, folder: Path) -> None:
    """Copy the files of the one folder that an archive holds into another folder.

    Zeros may follow the archive.

    Raises:
        tarfile.TarError: it is no archive.
        OSError: a file cannot be written.
    """
    with tarfile.open(archive_file, "r:") as archive:
        for member in archive:
            parts = Path(member.name).parts[1:]  # without the folder's own name
            content = archive.extractfile(member) if member.isfile() else None
            if content is None or not parts or ".." in parts:
                continue
            target = folder.joinpath(*parts)
            make_folder(target.parent, folder)
            write_whole(target, content.read(), below=folder)
