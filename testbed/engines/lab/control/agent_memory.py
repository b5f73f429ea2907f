"""How a lab's process 1, which runs for days, keeps its memory small."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

_libc = ctypes.CDLL(None)
_HEAPS = -8  # M_ARENA_MAX of malloc.h
_NAMES = 1 << 14


def use_single_arena() -> None:
    """Let all threads take memory from one heap, which does not grow by the number of those that there have been.

    They hold Python's lock, so that they never wait for each other there.
    """
    with suppress(AttributeError):  # a C library that has one heap anyway
        _libc.mallopt(_HEAPS, 1)


def presize_intern_table() -> None:
    """Enlarge Python's table of names at once, which would else take half a megabyte after some 500 loads.

    It has few free places when all modules are there, and a place that a name leaves is not used again until the table
    is made anew, with three times the places that are in use: once. Names come and go with each load.
    """
    for number in range(_NAMES):
        sys.intern(f"{number} of a table")


def trim_heap() -> None:
    """Return memory that is free to the kernel, also from between what is in use.

    The C library gives back the end of its heap only, and the holes get more with each load and each long answer.
    """
    with suppress(AttributeError):  # a C library that has no such word
        _libc.malloc_trim(0)
