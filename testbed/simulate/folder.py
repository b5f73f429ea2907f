"""The folder of a simulation: what was asked, and a file for each run that is done."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.errors import InputError, Problem
from testbed.files import write_whole
from testbed.results.folders import dated_folder
from testbed.simulate.point import Latency, Links, Point

RECORD = "simulation.json"
POINTS = "points"
TABLE = "points.csv"
SCHEMA_VERSION = 1
COLUMNS = (
    "load", "seed", "clocks", "accepted", "packets", "latency_mean", "latency_p50", "latency_p99", "latency_max",
    "fullest_channel", "fullest_use", "deadlock", "seconds",
)  # fmt: skip
# Of the packet level only.
LINK_COLUMNS = tuple(field.name for field in dataclasses.fields(Links))


def new_folder(root: Path, name: str, asked: dict[str, Any], word: str = "simulate") -> Path:
    """Make a simulation's folder.

    Args:
        root: the `results/` folder.
        name: of the scenario.
        asked: what all runs have in common, for simulation.json.
        word: before the name; that of the level.

    Raises:
        InputError: it cannot be made.
    """
    folder = dated_folder(root, f"{word}-{name}", POINTS)
    record = {"schema_version": SCHEMA_VERSION, "scenario": name, **asked}
    write_whole(folder / RECORD, _json(record))
    return folder


def newest_folder(root: Path, name: str, asked: dict[str, Any], word: str = "simulate") -> Path:
    """The folder of the newest simulation of a scenario, to go on with.

    Raises:
        InputError: there is none, it is damaged, or it asked for something else; every difference.
    """
    found = sorted(file.parent for file in root.glob(f"*-{word}-{name}*/{RECORD}"))
    found = [folder for folder in found if _read(folder / RECORD).get("scenario") == name]
    if not found:
        sentence = f"there is no simulation of {name} in {root}; leave --resume out to start one"
        raise InputError.one("--resume", sentence)
    folder = found[-1]
    record = read_record(folder)
    problems = [
        Problem(str(folder), f"{key} was {record.get(key)} and is {value} now; leave --resume out to start anew")
        for key, value in asked.items()
        if record.get(key) != value
    ]
    if problems:
        raise InputError(problems)
    return folder


def read_record(folder: Path) -> dict[str, Any]:
    """What all runs of a simulation have in common.

    Raises:
        InputError: it is damaged, or of another schema version.
    """
    record = _read(folder / RECORD)
    if record.get("schema_version") != SCHEMA_VERSION:
        sentence = f"has schema version {record.get('schema_version')}; this program reads {SCHEMA_VERSION}"
        raise InputError.one(str(folder / RECORD), sentence)
    missing = [key for key in ("scenario", "digest", "pattern") if key not in record]
    if missing:
        raise InputError.one(str(folder / RECORD), f"is damaged: it lacks {', '.join(missing)}")
    return record


def write_point(folder: Path, point: Point) -> None:
    """Keep what is done."""
    write_whole(folder / POINTS / f"load-{point.load!r}-seed-{point.seed}.json", _json(dataclasses.asdict(point)))


def read_points(folder: Path) -> list[Point]:
    """The runs that are done, by load and seed.

    Raises:
        InputError: a file is damaged.
    """
    found = []
    for file in (folder / POINTS).glob("load-*.json"):
        raw = _read(file)
        try:
            latency = None if raw["latency"] is None else Latency(**raw["latency"])
            lists = {"cycle": tuple(raw["cycle"]), "channel_flits": tuple(raw["channel_flits"])}
            links = None if raw.get("links") is None else Links(**raw["links"])
            found.append(Point(**{**raw, **lists, "latency": latency, "links": links}))
        except (LookupError, TypeError) as error:
            raise InputError.one(str(file), f"is damaged: {error!r}; delete it to have that run again") from error
    return sorted(found, key=lambda point: (point.load, point.seed))


def points_csv(points: Sequence[Point]) -> str:
    """One line a run."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    packets = any(point.links is not None for point in points)
    writer.writerow((*COLUMNS, *(LINK_COLUMNS if packets else ())))
    for point in points:
        latency = ("",) * 4 if point.latency is None else dataclasses.astuple(point.latency)
        writer.writerow(
            (point.load, point.seed, point.clocks, _cell(point.accepted), point.packets, *latency, point.fullest,
             _cell(point.fullest_use), " ".join(point.cycle), point.seconds,
             *(() if point.links is None else dataclasses.astuple(point.links)))
        )  # fmt: skip
    return text.getvalue()


def _cell(value: float | None) -> float | str:
    return "" if value is None else value


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False) + "\n").encode()


def _read(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError.one(str(file), f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise InputError.one(str(file), f"is damaged: {error}") from error
    if not isinstance(value, dict):
        raise InputError.one(str(file), "is damaged: it holds no JSON object")
    return value
