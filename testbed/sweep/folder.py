"""The folder of a sweep: made once, used by one program at a time, owned by the owner of `results/`."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import InputError
from testbed.results import INCOMPLETE
from testbed.sweep.record import RECORD, Record, read_record, record_text

RUNS = "runs"


def new_folder(root: Path, name: str) -> Path:
    """Make a sweep's folder.

    Raises:
        InputError: it cannot be made.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    try:
        _make(root)
        number = 1
        while True:
            folder = root / (f"{stamp}-sweep-{name}" + (f"-{number}" if number > 1 else ""))
            if not folder.exists():
                _make(folder / RUNS)
                return folder
            number += 1
    except OSError as error:
        sentence = f"results cannot be written there: {error.strerror}; give another folder with --results"
        raise InputError.one(str(root), sentence) from error


def newest_folder(root: Path, name: str) -> Path:
    """The folder of the newest sweep of a name.

    Raises:
        InputError: there is none, or a record is damaged.
    """
    candidates = [file.parent for file in root.glob(f"*-sweep-{name}*/{RECORD}")]
    records = [(read_record(folder), folder) for folder in candidates]
    found = [(record.started, folder.name, folder) for record, folder in records if record.sweep == name]
    if not found:
        raise InputError.one("--resume", f"there is no sweep {name} in {root}; leave --resume out to start one")
    return max(found)[2]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other programs out while the block runs; the kernel lets go when this one ends, however it ends.

    Raises:
        InputError: another program is at it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError.one(str(folder), "another program is running this sweep") from error
        yield
    finally:
        os.close(descriptor)


def write_record(folder: Path, record: Record) -> None:
    """Write sweep.json whole or not at all."""
    write(folder / RECORD, record_text(record).encode())


def write(file: Path, content: bytes) -> None:
    """Write a file whole or not at all; it belongs to the owner of its folder."""
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_bytes(content)
        owner = file.parent.stat()
        os.chown(partial, owner.st_uid, owner.st_gid)
        partial.replace(file)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def run_folders(folder: Path) -> set[Path]:
    """Folders of runs, finished or not."""
    return set((folder / RUNS).iterdir()) if (folder / RUNS).is_dir() else set()


def remove_unfinished(folders: set[Path]) -> None:
    """Delete those of the folders that are marked incomplete."""
    for folder in folders:
        if folder.name.endswith(INCOMPLETE):
            shutil.rmtree(folder)


def _make(folder: Path) -> None:
    """Make a folder that belongs to the owner of what it stands in, also when root makes it."""
    if not folder.exists():
        _make(folder.absolute().parent)
        folder.mkdir(exist_ok=True)
        above = folder.absolute().parent.stat()
        os.chown(folder, above.st_uid, above.st_gid)
