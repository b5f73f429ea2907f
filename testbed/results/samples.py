"""Samples as CSV (metric, value, unit, predicted, labels as a JSON object), and what failures cost, as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from testbed.errors import InputError
from testbed.model import Longs, Sample, Topology

COLUMNS = ("metric", "value", "unit", "predicted", "labels")


def samples_to_csv(samples: Iterable[Sample]) -> str:
    """Return CSV text with a header line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for sample in samples:
        predicted = "" if sample.predicted is None else repr(float(sample.predicted))
        labels = json.dumps(dict(sample.labels), ensure_ascii=False, sort_keys=True)
        writer.writerow((sample.metric, repr(float(sample.value)), sample.unit, predicted, labels))
    return text.getvalue()


def samples_from_csv(text: str) -> tuple[Sample, ...]:
    """Return the samples of a CSV text.

    Raises:
        ValueError: a column is missing or a figure is none.
    """
    reader = csv.DictReader(io.StringIO(text), strict=True)
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise ValueError(f"its columns should be {', '.join(COLUMNS)}")
    return tuple(
        Sample(
            row["metric"],
            float(row["value"]),
            row["unit"],
            json.loads(row["labels"]),
            float(row["predicted"]) if row["predicted"] else None,
        )
        for row in reader
    )


MPI_SENT = "mpi_bytes_sent"


def mpi_matrix(samples: Iterable[Sample], topology: Topology) -> Longs:
    """(H, H) bytes that ranks on a host (row) sent to those on another (column), of samples of MPI_SENT."""
    number = {topology.host_name(host): host for host in range(topology.host_count)}
    matrix = np.zeros((topology.host_count, topology.host_count), dtype=np.int64)
    for sample in samples:
        matrix[number[sample.labels["src"]], number[sample.labels["dst"]]] += int(sample.value)
    return matrix


def failures_file(load: str) -> str:
    """Name of the file, in a run's folder, of the load with this number."""
    return f"failures-{load}.json"


def changes_file(load: str) -> str:
    """Likewise of links that changed."""
    return f"timeline-{load}.json"


def load_failures(folder: Path, load: str) -> list[dict[str, Any]]:
    """What was stored of a load, a repeat an entry; nothing where it had no failures.

    Raises:
        InputError: the file is damaged.
    """
    return _stored(folder / failures_file(load), load)


def load_changes(folder: Path, load: str) -> list[dict[str, Any]]:
    """Likewise of links that changed while it ran.

    Raises:
        InputError: the file is damaged.
    """
    return _stored(folder / changes_file(load), load)


def _stored(file: Path, load: str) -> list[dict[str, Any]]:
    if not load or not file.exists():
        return []
    try:
        found: list[dict[str, object]] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError.one(str(file), f"is damaged: {error}") from error
    return found
