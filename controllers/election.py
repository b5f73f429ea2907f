"""Which of several managers of one plan steers: the one that holds the lock of the plan's file."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


def lock_of(plan: Path) -> Path:
    """The file whose lock elects one of the managers of a plan's file."""
    return Path(f"{plan}.lock")


class Election:
    """A manager's place in the queue for a lock, which the kernel takes from its holder when that dies.

    `file` is of the lock, and the same for all managers of a plan; an empty one is made.
    """

    def __init__(self, file: Path) -> None:
        self._lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)  # open until this process ends

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it; whether this manager has it now."""
        with suppress(BlockingIOError):
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def wait(self) -> None:
        """Return when this manager has the lock."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def release_lock(self) -> None:
        """Let the lock go, as by dying."""
        os.close(self._lock)
