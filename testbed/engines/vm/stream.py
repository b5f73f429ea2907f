"""Start a program that must not outlive this one, and read what it says line by line, with limits on silence."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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


def lines(process: subprocess.Popen[bytes], until: float | None = None, silence: float | None = None) -> Iterator[str]:
    """Yield each line of a program's standard output until it closes it.

    Waiting ends at `until`, by time.monotonic(), or after `silence` s without a line; None = never.

    Raises:
        TimeoutError: waiting has ended; its text says why.
    """
    assert process.stdout is not None
    descriptor, rest, heard = process.stdout.fileno(), b"", time.monotonic()
    while True:
        ends = [at for at in (until, None if silence is None else heard + silence) if at is not None]
        left = max(0.0, min(ends) - time.monotonic()) if ends else None
        if not select.select([descriptor], [], [], left)[0]:
            if until is not None and time.monotonic() >= until:
                raise TimeoutError("it did not end in time")
            raise TimeoutError(f"it said nothing for {silence:g} s")
        chunk = os.read(descriptor, _CHUNK)
        heard = time.monotonic()
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
        if not chunk:
            if rest:
                yield rest.decode(errors="replace")
            return
