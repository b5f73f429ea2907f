"""What the failures of a load cost, as it is stored: a list, with an object a repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.errors import InputError


def failures_file(load: str) -> str:
    """Name of the file, in a run's folder, of the load with this number."""
    return f"failures-{load}.json"


def load_failures(folder: Path, load: str) -> list[dict[str, Any]]:
    """What was stored of a load; nothing where it had no failures.

    Raises:
        InputError: the file is damaged.
    """
    file = folder / failures_file(load)
    if not load or not file.exists():
        return []
    try:
        found: list[dict[str, object]] = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError.one(str(file), f"is damaged: {error}") from error
    return found
