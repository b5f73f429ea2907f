"""Libraries that only notebooks need, or a sentence where they are not there; and how calls say what they do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from testbed.base.errors import CapabilityError
from testbed.base.resources import install_extra
from testbed.base.untrusted_text import escape_line

Progress = Callable[[str], None]


def library(name: str, what: str) -> Any:
    """Import a library of the extra `notebook`.

    `what` needs it, for the message.

    Raises:
        CapabilityError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        sentence = f"{what} needs {name}, which is not here ({error}); {install_extra('notebook')}"
        raise CapabilityError(sentence) from error


class PrintedSteps:
    """Says steps on standard error, each with the seconds since the first; what commands do without a terminal."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._last = ""

    def __call__(self, text: str) -> None:
        """Say a step, once."""
        if text != self._last:
            print(f"[{time.monotonic() - self._started:6.1f} s] {escape_line(text)}", file=sys.stderr, flush=True)
        self._last = text


def ignore_progress(text: str) -> None:
    """Say nothing."""
    del text
