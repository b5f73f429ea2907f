"""As much of bpf(2) as one small counting program needs: a map, a program, and a name for it in a file system.

Linux's own header for this is linux/bpf.h; the instruction set is that of its Documentation/bpf/standardization.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from pathlib import Path

# System call numbers differ by architecture; those that came after x86 share one table.
_NUMBERS = {"x86_64": 321, "i686": 357, "ppc64le": 361, "s390x": 351}
_NEWER = 280
_MAP_CREATE, _PROG_LOAD, _OBJ_PIN = 0, 5, 6
_ARRAY = 2
_MMAPABLE = 1 << 10
_SCHED_CLS = 3
_ATTRIBUTE_SIZE = 128
_LOG_SIZE = 1 << 16
_LICENSE = b"Apache-2.0"


def instruction(code: int, to: int = 0, of: int = 0, offset: int = 0, value: int = 0) -> bytes:
    """Encode one instruction: operation code, the two registers, jump or memory offset, immediate value."""
    return struct.pack("=BBhi", code, of << 4 | to, offset, value)


def array_map(entry_size: int, entries: int) -> int:
    """Make an array that user space can map into its memory; returns its file descriptor.

    Raises:
        OSError: the kernel cannot, or does not allow it.
    """
    return _call(_MAP_CREATE, struct.pack("=IIIII", _ARRAY, 4, entry_size, entries, _MMAPABLE))


def load(program: bytes) -> int:
    """Load a program that looks at frames (`sched_cls`); returns its file descriptor.

    Raises:
        OSError: the kernel refuses it; the text ends with what its verifier says.
    """
    code, license_text = ctypes.create_string_buffer(program, len(program)), ctypes.create_string_buffer(_LICENSE)
    log = ctypes.create_string_buffer(_LOG_SIZE)
    count, where = len(program) // 8, ctypes.addressof
    try:
        head = struct.pack("=IIQQ", _SCHED_CLS, count, where(code), where(license_text))
        return _call(_PROG_LOAD, head + struct.pack("=IIQI", 1, _LOG_SIZE, where(log), 0))
    except OSError as error:
        said = log.value.decode(errors="replace").strip().splitlines()
        raise OSError(error.errno, f"{error.strerror}: {said[-1]}" if said else error.strerror) from error


def pin(descriptor: int, path: Path) -> None:
    """Give a program a name in a mounted file system of type `bpf`, by which `tc` finds it."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    _call(_OBJ_PIN, struct.pack("=QI", ctypes.addressof(name), descriptor))


def _call(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    number = _NUMBERS.get(platform.machine(), _NEWER)
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), _ATTRIBUTE_SIZE))
    result = int(libc.syscall(number, command, buffer, len(buffer)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
