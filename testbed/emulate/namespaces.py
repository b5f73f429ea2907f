"""Make something inside another process's network namespace, such as a socket, which then stays in it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_CLONE_NEWNET = 0x40000000


def in_network_of(pid: int, make: Callable[[], _T]) -> _T:
    """Call a function in the network namespace of a process, in a thread of its own, and return its result.

    Raises:
        OSError: the process is gone.
    """

    def inside() -> _T:
        with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        return make()

    # A thread that has moved cannot be used for anything else; the pool ends it.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(inside).result()
