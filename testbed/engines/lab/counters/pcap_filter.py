"""Filter expressions of pcap-filter(7), by libpcap, which tcpdump brings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes.util import find_library

from testbed.base.errors import CapabilityError, InputError

_ETHERNET = 1
_SNAPSHOT = 1 << 18
_NO_MASK = 0xFFFFFFFF
_NAMES = ("libpcap.so.0.8", "libpcap.so.1")


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint), ("instructions", ctypes.c_void_p)]


class _Header(ctypes.Structure):
    _fields_ = [
        ("seconds", ctypes.c_long), ("microseconds", ctypes.c_long), ("captured", ctypes.c_uint),
        ("length", ctypes.c_uint),
    ]  # fmt: skip


def compile_filter(expression: str, place: str) -> Callable[[bytes, int], bool]:
    """Return a function that tells whether a frame passes, from its bytes and its length on the wire.

    Args:
        expression: such as `vlan 5 and icmp`; a tag is part of a frame, so `icmp` alone passes no tagged one.
        place: the option it was given by, for messages.

    Raises:
        InputError: libpcap does not understand it.
        CapabilityError: libpcap is not there.
    """
    library = _libpcap()
    handle, program = library.pcap_open_dead(_ETHERNET, _SNAPSHOT), _Program()
    if library.pcap_compile(handle, ctypes.byref(program), expression.encode(), 1, _NO_MASK) != 0:
        said = library.pcap_geterr(handle).decode(errors="replace")
        raise InputError.one(
            place, f'"{expression}" is no filter of pcap-filter(7): {said}; an example: vlan 5 and icmp'
        )
    header, where = _Header(), ctypes.byref(program)

    def passes(data: bytes, length: int) -> bool:
        header.captured, header.length = len(data), length
        return bool(library.pcap_offline_filter(where, ctypes.byref(header), data))

    return passes


def _libpcap() -> ctypes.CDLL:
    for name in (*_NAMES, find_library("pcap")):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None:
            library.pcap_open_dead.restype = ctypes.c_void_p
            library.pcap_compile.argtypes = [
                ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint,
            ]  # fmt: skip
            library.pcap_geterr.argtypes, library.pcap_geterr.restype = [ctypes.c_void_p], ctypes.c_char_p
            library.pcap_offline_filter.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
            return library
    raise CapabilityError(
        "libpcap is not there, so frames cannot be filtered; install tcpdump, which brings it, or leave the filter out"
    )
