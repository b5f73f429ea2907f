"""Folders that grow while a program runs: one program at a time, owned by the owner of `results/`."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.errors import InputError
from testbed.files import make_folder


def dated_folder(root: Path, name: str, inside: str) -> Path:
    """Make a folder named by the clock and a name, with another in it.

    Raises:
        InputError: it cannot be made.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    try:
        make_folder(root)
        number = 1
        while True:
            folder = root / (f"{stamp}-{name}" + (f"-{number}" if number > 1 else ""))
            if not folder.exists():
                make_folder(folder / inside)
                return folder
            number += 1
    except OSError as error:
        sentence = f"results cannot be written there: {error.strerror}; give another folder with --results"
        raise InputError.one(str(root), sentence) from error


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Keep other programs out while the block runs; the kernel lets go when this one ends, however it ends.

    Raises:
        InputError: another program is at it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError.one(str(folder), f"another program is running this {what}") from error
        yield
    finally:
        os.close(descriptor)
