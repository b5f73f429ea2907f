"""The program as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.table import progress

ROOT = Path(__file__).resolve().parents[1]
_MEASURED = (0, 1, 3)  # exit codes with which there are figures


def testbed(*words: str) -> dict[str, Any]:
    """Run `testbed WORDS --format json` in the project's folder and return what it prints; its progress is shown.

    Raises:
        SystemExit: nothing was measured.
    """
    progress(f"testbed {' '.join(words)}")
    done = subprocess.run(
        [sys.executable, "-m", "testbed", *words, "--format", "json"],
        cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode not in _MEASURED:
        raise SystemExit(f"it ended with exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
