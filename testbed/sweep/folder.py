"""The folder of a sweep: made once, used by one program at a time, owned by the owner of `results/`."""

from __future__ import annotations

import shutil
from pathlib import Path

from testbed.errors import InputError
from testbed.files import write_whole
from testbed.results import INCOMPLETE
from testbed.results.store import dated_folder
from testbed.sweep.record import RECORD, Record, read_record, record_text

RUNS = "runs"


def new_folder(root: Path, name: str) -> Path:
    """Make a sweep's folder.

    Raises:
        InputError: it cannot be made.
    """
    return dated_folder(root, f"sweep-{name}", RUNS)


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


def write_record(folder: Path, record: Record) -> None:
    """Write sweep.json whole or not at all."""
    write_whole(folder / RECORD, record_text(record).encode())


def run_folders(folder: Path) -> set[Path]:
    """Folders of runs, finished or not."""
    return set((folder / RUNS).iterdir()) if (folder / RUNS).is_dir() else set()


def remove_unfinished(folders: set[Path]) -> None:
    """Delete those of the folders that are marked incomplete."""
    for folder in folders:
        if folder.name.endswith(INCOMPLETE):
            shutil.rmtree(folder)
