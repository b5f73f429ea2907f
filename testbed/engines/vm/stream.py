"""Start a program that must not outlive this one, and read what it says line by line, with limits on silence."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_CHUNK = 1 << 16
# Also killed when this program is, even by SIGKILL.
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")


@contextmanager
def run_program(
    command: Sequence[str], errors: IO[bytes] | int, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program in a session of its own, and kill it when the block ends, however it ends.

    Its standard output is a pipe.
    """
    process = subprocess.Popen(
        [*_WITH_US, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, cwd=cwd, env=env,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def starved_seconds(pid: int) -> float:
    """Seconds so far in which a thread of a program was ready to run and got no processor, of the worst of them.

    0 where the kernel does not tell.
    """
    waited = [0]
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError, ValueError, IndexError):  # the thread has ended
            waited.append(int(file.read_text().split()[1]))
    return max(waited) / 1e9


def lines(
    process: subprocess.Popen[bytes],
    until: float | None = None,
    silence: float | None = None,
    starved: Callable[[], float] = lambda: 0.0,
) -> Iterator[str]:
    """Yield each line of a program's standard output until it closes it.

    Waiting ends at `until`, by time.monotonic(), or after `silence` s without a line; None = never. Of silence those
    seconds do not count in which the program got no processor: `starved` says how many there have been so far.

    Raises:
        TimeoutError: waiting has ended; its text says why.
    """
    assert process.stdout is not None
    descriptor, rest = process.stdout.fileno(), b""
    heard, starved_then = time.monotonic(), starved()
    while True:
        due = None if silence is None else heard + silence + starved() - starved_then
        ends = [at for at in (until, due) if at is not None]
        left = max(0.0, min(ends) - time.monotonic()) if ends else None
        if not select.select([descriptor], [], [], left)[0]:
            if until is not None and time.monotonic() >= until:
                raise TimeoutError("it did not end in time")
            if time.monotonic() < heard + (silence or 0.0) + starved() - starved_then:
                continue
            raise TimeoutError(f"it said nothing for {silence:g} s")
        chunk = os.read(descriptor, _CHUNK)
        heard, starved_then = time.monotonic(), starved()
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
        if not chunk:
            if rest:
                yield rest.decode(errors="replace")
            return
