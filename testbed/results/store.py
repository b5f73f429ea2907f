"""Write a result folder so that a crash never leaves a half file or a half run that looks whole."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypedDict

import yaml

from testbed.base.errors import InputError, StorageError, argument
from testbed.base.files import make_folder, make_new_folder, rename, write_whole
from testbed.base.model import Sample
from testbed.planning import Plan
from testbed.planning.store import plan_to_json
from testbed.planning.summary import summary
from testbed.results.samples import SAMPLES, samples_to_csv
from testbed.scenario.read_scenario import as_dict

SCHEMA_VERSION = 1
INCOMPLETE = ".incomplete"
SIMULATION = "simulation"  # the kind of a folder whose figures no lab has measured
MANIFEST_KEYS = (
    "schema_version", "scenario", "digest", "started", "finished", "seconds", "dilation", "verdict", "reasons",
    "loads", "plan", "files",
)  # fmt: skip


class AttemptEntry(TypedDict):
    """A load in the manifest that ran again, at another dilation."""

    dilation: float
    verdict: str
    reasons: list[str]
    seconds: float
    folder: str  # of its raw output and samples


class _Entry(TypedDict):
    load: str  # the label of its samples
    title: str
    kind: str
    verdict: str
    reasons: list[str]


class LoadEntry(_Entry, total=False):
    """A load in the manifest."""

    seconds: float  # that it took
    times: dict[str, int]  # a workloads.spec.Times
    no_traffic_matrix: str  # why its telemetry has none
    clock_error: float  # laboratory s that times of different machines may be off
    dilation: float  # and so on: as in results.load.LoadHead
    too_slow: bool
    short_of_time: bool
    attempts: list[AttemptEntry]


class ResultFolder:
    """A run's folder while it is being written.

    Attributes:
        path: where the files are now; ends in `.incomplete` until finish().
    """

    def __init__(self, root: Path, plan: Plan) -> None:
        """Make the folder.

        Raises:
            InputError: the folder cannot be made.
        """
        self._started, self._since = time.time(), time.monotonic()
        self._plan = plan
        self.path = dated_folder(root, f"{plan.scenario.name}-{plan.digest[:8]}", ending=INCOMPLETE)

    @classmethod
    def open_existing(cls, path: Path, plan: Plan) -> ResultFolder:
        """Write into a folder that is there already and has its final name, such as that of a simulation."""
        found = cls.__new__(cls)
        found.path, found._plan = path, plan
        found._started, found._since = time.time(), time.monotonic()
        return found

    def write_text(self, name: str, text: str) -> None:
        """Write a file whole or not at all.

        Raises:
            StorageError: it cannot be written.
        """
        self.write_bytes(name, text.encode())

    def write_bytes(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all.

        Raises:
            StorageError: it cannot be written.
        """
        try:
            make_folder((self.path / name).parent, self.path)
            write_whole(self.path / name, content, below=self.path)
        except OSError as error:
            raise StorageError(f"{name} cannot be written: {error.strerror}", self.path) from error

    def move(self, name: str, to: str) -> None:
        """Give a file or folder another name, if it is there.

        Raises:
            StorageError: that cannot be done.
        """
        try:
            if (self.path / name).exists():
                make_folder((self.path / to).parent, self.path)
                rename(self.path / name, self.path / to, self.path)
        except OSError as error:
            raise StorageError(f"{name} cannot be moved to {to}: {error.strerror}", self.path) from error

    def write_json(self, name: str, value: Any) -> None:
        """Write an object as indented JSON."""
        self.write_text(name, json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def write_plan(self, environment: Mapping[str, Any]) -> None:
        """Write what is known before the first load: scenario as resolved, plan, machine."""
        self.write_text(
            "scenario.yaml", yaml.safe_dump(as_dict(self._plan.scenario), sort_keys=False, allow_unicode=True)
        )
        self.write_text("plan.json", plan_to_json(self._plan))
        self.write_json("environment.json", dict(environment))

    def write_samples(self, samples: Iterable[Sample]) -> None:
        """Write all samples so far."""
        self.write_text(SAMPLES, samples_to_csv(samples))

    def write_manifest(
        self,
        verdict: str,
        reasons: Iterable[str],
        loads: Iterable[LoadEntry],
        lab: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Write the manifest, the entry point of the folder.

        `lab` has further keys, about what the lab was like; with `dilation` where the scenario leaves it to the
        machine.
        """
        self.write_json(
            "manifest.json",
            {
                "schema_version": SCHEMA_VERSION,
                "scenario": self._plan.scenario.name,
                "digest": self._plan.digest,
                "started": _iso(self._started),
                "finished": _iso(time.time()),
                "seconds": round(time.monotonic() - self._since, 3),
                **({} if "dilation" in lab else {"dilation": self._plan.scenario.lab.chosen_dilation}),
                **lab,
                "verdict": verdict,
                "reasons": list(reasons),
                "loads": [dict(load) for load in loads],
                "plan": summary(self._plan),
                "files": {
                    "scenario": "scenario.yaml",
                    "plan": "plan.json",
                    "environment": "environment.json",
                    "samples": SAMPLES,
                    "report": "report.html",
                    "raw": "raw/",
                },
            },
        )

    def finish(self) -> Path:
        """Give the folder its final name; returns it.

        Raises:
            StorageError: that cannot be done.
        """
        final = self.path.with_name(self.path.name.removesuffix(INCOMPLETE))
        try:
            rename(self.path, final)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be given its final name: {error.strerror}") from error
        self.path = final
        return final


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(seconds))


def dated_folder(root: Path, name: str, inside: str = ".", ending: str = "") -> Path:
    """Make a folder named by the clock and a name, and so far with an ending, with another in it.

    All belong to the owner of `root`.

    Raises:
        InputError: it cannot be made.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    try:
        make_folder(root)
        for number in itertools.count(1):
            final = root / (f"{stamp}-{name}" + (f"-{number}" if number > 1 else ""))
            folder = final.with_name(final.name + ending)
            if not final.exists():
                with suppress(FileExistsError):
                    make_new_folder(folder)
                    break
        make_folder(folder / inside, folder)
        return folder
    except OSError as error:
        sentence = f"results cannot be written there: {error.strerror}; give another folder with {argument('results')}"
        raise InputError.one(str(root), sentence) from error


@contextmanager
def lock_folder(folder: Path, what: str) -> Iterator[None]:
    """Keep other programs out while the block runs; the kernel lets go when this one ends, however it ends.

    Raises:
        InputError: another program is at it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError.one(str(folder), f"another program is running this {what}") from error
        yield
    finally:
        os.close(descriptor)
