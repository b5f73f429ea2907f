"""Files in which the kernel shows what it has, for what reads them many times a second.

They are not read by pathlib, which interns each part of a path: a lab asks for thousands of numbers of processes a
minute, and Python's table of such strings grew by some 30 kB with every load (Python 3.12 never forgets them).
"""

from __future__ import annotations

import os


def read_kernel_file(path: str) -> str:
    """What a file says.

    Raises:
        OSError: it is gone.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read()


def has_network(pid: int) -> bool:
    """Whether a process has a network; one that has ended keeps its folder until it is waited for, but no network."""
    try:
        os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115 - as said above
    except OSError:
        return False
    return True


def processes() -> list[int]:
    """Numbers of all processes that are seen here."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - as said above
