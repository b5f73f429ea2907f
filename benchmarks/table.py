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


def median_text(values: Sequence[float], unit: str) -> str:
    """Median, and least and most."""
    return f"{statistics.median(values):.3g} {unit}  ({min(values):.3g} – {max(values):.3g}, {len(values)} runs)"


def progress(text: str) -> None:
    """Say what is being measured."""
    print(text, file=sys.stderr, flush=True)
