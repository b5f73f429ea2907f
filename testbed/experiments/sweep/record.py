"""A sweep's folder, used by one program at a time, and its `sweep.json`, written after every step: what is done."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from testbed.base.errors import InputError, Problem, argument, reading
from testbed.base.files import open_folder, read_text, remove_folder, write_whole
from testbed.base.limits import parse_json
from testbed.experiments.compare.variants import shorten_label
from testbed.results import INCOMPLETE
from testbed.results.store import dated_folder
from testbed.scenario.parameter_models import fill

RECORD = "sweep.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a sweep."""

    label: str  # scenario and swept values, in words
    repeat: int  # from 1
    settings: tuple[str, ...]  # as `testbed run --set` takes them
    scenario_digest: str  # of everything the scenario says
    plan_digest: str  # of its plan
    # `broken` ended without a result; only `finished` has one
    state: Literal["waiting", "running", "finished", "broken"] = "waiting"
    folder: str | None = None  # result folder, below the sweep's folder; of a broken run what it has left
    verdict: str = ""  # of a finished run
    reasons: tuple[str, ...] = ()  # of the verdict
    advice: str = ""  # what to type where the lab was too slow; mostly empty
    seconds: float | None = None  # that it took
    error: str = ""  # why it is broken


@dataclass(frozen=True, slots=True)
class Record:
    """A sweep's runs."""

    sweep: str  # its name
    source: str  # its file
    started: float  # when, seconds since 1970
    entries: tuple[Entry, ...]  # in the order they run

    def replace_entry(self, number: int, **values: Any) -> Record:
        """The record with other values in one entry."""
        entry = dataclasses.replace(self.entries[number], **values)
        return dataclasses.replace(self, entries=(*self.entries[:number], entry, *self.entries[number + 1 :]))


def record_text(record: Record) -> str:
    """The content of sweep.json."""
    runs = [dataclasses.asdict(entry) for entry in record.entries]
    whole = {
        "schema_version": SCHEMA_VERSION, "sweep": record.sweep, "source": record.source, "started": record.started,
        "runs": runs,
    }  # fmt: skip
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def read_record(folder: Path) -> Record:
    """Read a sweep's record.

    Raises:
        InputError: it is damaged, or of another schema version.
    """
    place = str(folder / RECORD)
    with reading(folder / RECORD):
        raw = parse_json(read_text(folder / RECORD, folder))
        version = raw["schema_version"]
        if version != SCHEMA_VERSION:
            raise InputError.one(place, f"has schema version {version}; this program reads {SCHEMA_VERSION}")
        problems: list[Problem] = []
        entries = [fill(Entry, run, f"runs.{number}", problems) for number, run in enumerate(raw["runs"])]
        if problems:
            raise InputError([Problem(place, f"is damaged: {problem}") for problem in problems])
        if not entries:
            raise ValueError("it lists no run")
        entries = [
            dataclasses.replace(entry, label=shorten_label(entry.label)) for entry in entries if entry is not None
        ]
        for entry in entries:
            if entry.folder is not None and (Path(entry.folder).is_absolute() or ".." in Path(entry.folder).parts):
                raise ValueError(f"the run {entry.label} leads out of its folder, to {entry.folder}")
        return Record(str(raw["sweep"]), str(raw["source"]), float(raw["started"]), tuple(entries))


def finished_folders(folder: Path) -> list[Path]:
    """Result folders of the finished runs of a sweep.

    Raises:
        InputError: the record is damaged, or no run is finished.
    """
    found = [
        folder / entry.folder
        for entry in read_record(folder).entries
        if entry.state == "finished" and entry.folder is not None
    ]
    if not found:
        raise InputError.one(str(folder), "no run of this sweep is finished")
    for run in found:
        if run.is_dir():
            with reading(run), open_folder(run, folder):
                pass  # no link leads to it
    return found


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
        raise InputError.one(
            argument("resume"), f"there is no sweep {name} in {root}; leave {argument('resume')} out to start one"
        )
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
            remove_folder(folder, folder.parent)
