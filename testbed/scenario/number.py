"""Values that are a number between two limits, or one of a few words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from testbed.errors import did_you_mean
from testbed.scenario.models import shown


def number_or(words: Sequence[str], least: float, most: float) -> Callable[[object], float | str]:
    """Return a check for pydantic's BeforeValidator; what it refuses, it refuses with a sentence."""
    wanted = f"should be {', '.join(['a number', *words[:-1]])} or {words[-1]}"

    def check(value: object) -> float | str:
        if isinstance(value, str):
            if value not in words:
                meant = did_you_mean(value, words)
                raise ValueError(f"{wanted}, not {shown(value)}{'.' if meant else ''}{meant}")
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{wanted}, not {shown(value)}")
        if not math.isfinite(value):
            raise ValueError(f"should be a finite number, not {shown(value)}")
        if value < least:
            raise ValueError(f"should be {least:.15g} or more, not {shown(value)}")
        if value > most:
            raise ValueError(f"should be {most:.15g} or less, not {shown(value)}")
        return float(value)

    return check


def number_schema(words: Sequence[str], least: float, most: float) -> dict[str, object]:
    """Return the JSON schema of the same values."""
    return {"anyOf": [{"enum": [*words]}, {"type": "number", "minimum": least, "maximum": most}]}
