"""Samples as CSV, a column a label, and what failures cost, as JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from testbed.base.errors import reading
from testbed.base.files import read_text
from testbed.base.limits import parse_json
from testbed.base.model import Longs, Sample, Topology
from testbed.base.untrusted_text import csv_text, unescape_cell

SAMPLES = "samples.csv"  # in a result folder
_SHOWN = 60
COLUMNS = ("metric", "value", "unit", "predicted")
# Until version 0.1 all labels were one column, a JSON object; such files are still read.
_OLD = (*COLUMNS, "labels")
# Before the name of a label that would be taken for another column.
_PREFIX = "label_"


def samples_to_csv(samples: Iterable[Sample]) -> str:
    """Return CSV text with a header line: COLUMNS, then a column for each label that any sample has, by name.

    A sample without a label has an empty cell there.
    """
    every = tuple(samples)
    labels = sorted({label for sample in every for label in sample.labels})
    rows: list[tuple[str | float, ...]] = []
    for sample in every:
        predicted = "" if sample.predicted is None else float(sample.predicted)
        cells = (_cell(sample.labels[label]) if label in sample.labels else "" for label in labels)
        unit = _cell(sample.unit) if sample.unit else ""
        figure = (_cell(sample.metric), float(sample.value), unit, predicted)
        rows.append((*figure, *cells))
    return csv_text((*COLUMNS, *map(_column, labels)), rows)


def samples_from_csv(text: str) -> tuple[Sample, ...]:
    """Return the samples of a CSV text.

    Raises:
        ValueError: a column is missing or there twice, a line is not as long as the first, or a figure is none.
    """
    if not text.endswith("\n"):
        raise ValueError("its last line is cut off")
    rows = csv.reader(io.StringIO(text), strict=True)
    header = tuple(next(rows, ()))
    if header[: len(COLUMNS)] != COLUMNS or len(set(header)) != len(header):
        raise ValueError(f"its columns should be {', '.join(COLUMNS)} and one for each label")
    old, labels = header == _OLD, [_label(name) for name in header[len(COLUMNS) :]]
    found = []
    for line, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} cells and the first has {len(header)}")
        metric, value, unit, predicted, *cells = row
        said = {name: _value(cell) for name, cell in zip(labels, cells, strict=True) if cell}
        found.append(
            Sample(
                _value(metric),
                float(value),
                _value(unit),
                _labels(cells[0]) if old else said,
                float(predicted) if predicted else None,
            )
        )
    return tuple(found)


def _column(label: str) -> str:
    return _cell(f"{_PREFIX}{label}" if label in _OLD or label.startswith(_PREFIX) else label)


def _label(column: str) -> str:
    return _value(column).removeprefix(_PREFIX)


def _cell(value: str) -> str:
    """What stands for a value: JSON where else it would be taken for no label, for JSON, or for several lines."""
    plain = value and not value.startswith('"') and value.isprintable()
    return value if plain else json.dumps(value)


def _value(cell: str) -> str:
    return str(parse_json(cell)) if cell.startswith('"') else unescape_cell(cell)


def _labels(text: str) -> dict[str, str]:
    labels = parse_json(text)
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise ValueError(f"labels should be an object of texts, not {text[:_SHOWN]}")
    return labels


MPI_SENT = "mpi_bytes_sent"


def mpi_matrix(samples: Iterable[Sample], topology: Topology) -> Longs:
    """(H, H) bytes that ranks on a host (row) sent to those on another (column), of samples of MPI_SENT."""
    number = {topology.host_name(host): host for host in range(topology.host_count)}
    matrix = np.zeros((topology.host_count, topology.host_count), dtype=np.int64)
    for sample in samples:
        matrix[number[sample.labels["src"]], number[sample.labels["dst"]]] += int(sample.value)
    return matrix


class Moment(TypedDict):
    """Something that happened while a load ran."""

    event: str  # in words
    at: float  # laboratory s after the start


class Failure(Moment):
    """What failed or came back, and what that cost; s from then on, None where it did not happen."""

    detection: float | None  # until the controller heard of it
    diverted: float | None  # until hosts had their backup VLANs
    takeover: float | None  # until a backup path carried; None where no watched datagram was lost, or it never did
    manager_takeover: float | None  # until the next manager steered; not in files of version 0.1
    recovery: float | None  # until new tables were in
    settled: float | None  # until only those were
    frames_lost: int
    lost_by_pair: list[int]
    hosts_moved: int
    cut_off: int  # pairs of hosts
    without_backup: int  # likewise
    routing_after: str
    deadlock: list[str]


class Arrivals(TypedDict):
    """Datagrams of a pair of hosts by the time they were sent."""

    src: str
    dst: str
    sent: list[int]
    arrived: list[int]


class LinkRepeat(TypedDict):
    """A repeat while which links changed; `events` also have the links and what they changed to."""

    events: list[Moment]


class Repeat(TypedDict, total=False):
    """Which repeat of a load."""

    repeat: str  # its number, where a load has several


class FailureRepeat(Repeat):
    """A repeat with failures."""

    seconds: float
    rate: float  # datagrams a second of each pair
    events: list[Failure]
    pairs: list[Arrivals]


def failures_file(load: str) -> str:
    """Name of the file, in a run's folder, of the load with this number."""
    return f"failures-{load}.json"


def changes_file(load: str) -> str:
    """Likewise of links that changed."""
    return f"timeline-{load}.json"


def load_failures(folder: Path, load: str) -> list[FailureRepeat]:
    """What was stored of a load, a repeat an entry; nothing where it had no failures.

    Raises:
        InputError: the file is damaged.
    """
    found: list[FailureRepeat] = _read_repeats(folder / failures_file(load), load)
    return found


def load_changes(folder: Path, load: str) -> list[LinkRepeat]:
    """Likewise of links that changed while it ran.

    Raises:
        InputError: the file is damaged.
    """
    found: list[LinkRepeat] = _read_repeats(folder / changes_file(load), load)
    return found


def _read_repeats(file: Path, load: str) -> Any:
    with reading(file):
        if not load or not file.exists():
            return []
        found = parse_json(read_text(file, file.parent))
        _check_repeats(found)
    return found


def _check_repeats(found: object) -> None:
    """Refuse what is not a list of repeats with their events and, where things died, pairs.

    Raises:
        ValueError, TypeError, LookupError: it is something else.
    """
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise TypeError("it should be a list of repeats")
    for repeat in found:
        for event in repeat["events"]:
            if not math.isfinite(event["at"]):
                raise ValueError(f"an event is at {event['at']}")
        for pair in repeat.get("pairs", ()):
            if not (isinstance(pair["src"], str) and isinstance(pair["dst"], str)):
                raise TypeError("a pair should have the names of two hosts")
            if not math.isfinite(sum(pair["sent"]) + sum(pair["arrived"]) + repeat["seconds"]):
                raise ValueError("a count of datagrams is not finite")
