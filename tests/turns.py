"""Several processes run tests at once: whose turn it is, and who compiles a kernel."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

SEATS = 2  # tests that measure, and leave the machine mostly idle, run so many at a time


@contextmanager
def locked(file: Path, *, shared: bool = False) -> Iterator[None]:
    """Wait for the lock on a file and hold it."""
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


@contextmanager
def turn(folder: Path, *, alone: bool = False, seat: int | None = None) -> Iterator[None]:
    """Wait until a test may run, and hold others off: all others if it runs alone, else those that do.

    Args:
        folder: of the locks, the same for all.
        alone: no other test may run meanwhile.
        seat: number below SEATS, of a test beside which only those on other seats may run; None = beside all such.
    """
    with ExitStack() as held:
        seats = [held.enter_context((folder / f"seat-{number}.lock").open("w")) for number in range(SEATS)]
        # Who waits here for others to end has stopped the queue: nobody is overtaken.
        with locked(folder / "queue.lock"):
            for mine in seats if seat is None else [seats[seat]]:
                fcntl.flock(mine, fcntl.LOCK_SH if seat is None and not alone else fcntl.LOCK_EX)
        yield


def compile_once(folder: Path) -> None:
    """Let one process compile a kernel while the others wait for it, and take its machine code from the disk.

    A kernel for arguments of other types is another one, which another process may compile meanwhile.

    Args:
        folder: of the locks, the same for all.
    """
    from numba.core.compiler_lock import global_compiler_lock  # noqa: PLC0415
    from numba.core.dispatcher import Dispatcher  # noqa: PLC0415

    dispatcher: Any = Dispatcher
    compiled = dispatcher.compile
    compiling: set[str] = set()

    def compile_in_turn(self: Any, signature: Any) -> Any:
        types = hashlib.sha256(str(signature).encode()).hexdigest()[:16]
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}-{types}"
        # The lock of threads goes first, as a thread that holds it may wait for what another one would compile.
        with global_compiler_lock:
            if name in compiling:
                return compiled(self, signature)
            with locked(folder / f"{name}.lock"):
                compiling.add(name)
                try:
                    return compiled(self, signature)
                finally:
                    compiling.discard(name)

    dispatcher.compile = compile_in_turn
