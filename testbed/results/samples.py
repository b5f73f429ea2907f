"""Samples as CSV: metric, value, unit, predicted, labels (a JSON object)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

from testbed.model import Sample

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
