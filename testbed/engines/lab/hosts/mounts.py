"""Namespaces and mounts of the thread that calls: system calls that Python has no functions for."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

# linux/sched.h, linux/mount.h, linux/fcntl.h
NEW_FS, NEW_MOUNTS, NEW_NETWORK = 0x00000200, 0x00020000, 0x40000000
NEW_NAMES, NEW_IPC, NEW_PROCESSES = 0x04000000, 0x08000000, 0x20000000  # of hosts; of System V; of processes
NEW_USERS = 0x10000000  # of users: in a new one one has all capabilities
BIND = 0x1000
_PRIVATE = 0x4000 | 1 << 18  # and recursive
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS = 0x1, 0x2, 0x4, 0x8  # as flags of mounts and as attributes
_RECURSIVE, _EMPTY_PATH, _HERE = 0x8000, 0x1000, -100
_CLONE, _FROM_DESCRIPTOR = 1, 4
# System calls since Linux 5.2 have one number on all processors.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442

_libc = ctypes.CDLL(None, use_errno=True)
_T = TypeVar("_T")


class _Attributes(ctypes.Structure):
    """`struct mount_attr`."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "users")]


def run_in_thread_namespace(do: Callable[[], _T]) -> _T:
    """Call a function in a thread of its own, which may move to other namespaces; the thread ends with it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(do).result()


def unshare(kinds: int) -> None:
    """Leave namespaces that are shared with other threads for new ones.

    Raises:
        OSError: it is not allowed here.
    """
    _check(_libc.unshare(kinds), "unshare")


def enter(namespace: int, kind: int) -> None:
    """Move to a namespace by its descriptor.

    Raises:
        OSError: it is not allowed, or the thread still shares its folders with others.
    """
    _check(_libc.setns(namespace, kind), "setns")


def mount(kind: str, source: str, target: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system, without the time that a program takes to start.

    Raises:
        OSError: it cannot be mounted.
    """
    done = _libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode())
    _check(done, f"mounting {target}")


def make_private() -> None:
    """Keep what this thread's mount namespace mounts from now on to itself.

    Raises:
        OSError: it is not allowed here.
    """
    mount("", "none", "/", _PRIVATE)


def set_attributes(target: str | int, *, add: int = 0, clear: int = 0, below: bool = False) -> None:
    """Change what may be done by a mount.

    Args:
        target: where it is, or the descriptor of one that is nowhere.
        add: attributes that it gets.
        clear: attributes that it loses.
        below: whether those under it change, too.

    Raises:
        OSError: it cannot be changed, or Linux is older than 5.12.
    """
    wanted = _Attributes(add, clear, 0, 0)
    descriptor, path = (_HERE, target) if isinstance(target, str) else (target, "")
    flags = (_RECURSIVE if below else 0) | (0 if isinstance(target, str) else _EMPTY_PATH)
    done = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR), ctypes.c_long(descriptor), path.encode(), ctypes.c_ulong(flags),
        ctypes.byref(wanted), ctypes.c_size_t(ctypes.sizeof(wanted)),
    )  # fmt: skip
    _check(done, f"changing the mount {target}")


def copy_of(path: str, *, below: bool = True) -> int:
    """Descriptor of a copy of what is mounted at a path, and `below`; it is nowhere until `attach`.

    Raises:
        OSError: there is no such path.
    """
    flags = _CLONE | (_RECURSIVE if below else 0) | os.O_CLOEXEC
    made: int = _libc.syscall(ctypes.c_long(_OPEN_TREE), ctypes.c_long(_HERE), path.encode(), ctypes.c_ulong(flags))
    _check(made, path)
    return made


def attach(tree: int, target: str) -> None:
    """Mount a copy, once.

    Raises:
        OSError: there is no such folder.
    """
    done = _libc.syscall(
        ctypes.c_long(_MOVE_MOUNT), ctypes.c_long(tree), b"", ctypes.c_long(_HERE), target.encode(),
        ctypes.c_ulong(_FROM_DESCRIPTOR),
    )  # fmt: skip
    _check(done, f"mounting {target}")


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
