"""Figures with their spread."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A named figure as text."""

    name: str
    text: str


def as_markdown(figures: Sequence[Figure]) -> str:
    """A table for the documents."""
    lines = [f"| {figure.name} | {figure.text.replace('; ', ' | ')} |" for figure in figures]
    columns = max(line.count("|") for line in lines) - 1
    rows = [line + " |" * (columns + 1 - line.count("|")) for line in lines]
    return "\n".join([f"|{' |' * columns}", f"|{' --- |' * columns}", *rows])


def median_text(values: Sequence[float], unit: str) -> str:
    """Median, and least and most."""
    return f"{statistics.median(values):.3g} {unit}  ({min(values):.3g} – {max(values):.3g}, {len(values)} runs)"


def progress(text: str) -> None:
    """Say what is being measured."""
    print(text, file=sys.stderr, flush=True)
