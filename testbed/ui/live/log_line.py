"""Lines of the page's log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the page's log."""

    command: str  # that would do the same
    said: str  # what came of it
    wrong: bool = False
