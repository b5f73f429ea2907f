"""Captured frames as pcapng (draft-ietf-opsawg-pcapng): nanoseconds, the interface's name, each frame's direction."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from testbed.base.messages import Frame
from testbed.base.version import __version__

_SECTION, _INTERFACE, _STATISTICS, _PACKET = 0x0A0D0D0A, 1, 5, 6
_BYTE_ORDER, _VERSION, _UNKNOWN_LENGTH = 0x1A2B3C4D, (1, 0), -1
_ETHERNET = 1
_NANOSECONDS = 9  # 10^-9 s
_APPLICATION = 4  # of a section
_NAME, _DESCRIPTION, _RESOLUTION = 2, 3, 9  # of an interface
_RECEIVED, _DROPPED = 4, 5  # of statistics
_FLAGS, _INBOUND, _OUTBOUND = 2, 1, 2  # of a packet
_HEAD = struct.Struct("<II")
_FRAME = struct.Struct("<IIIII")
_OPTION = struct.Struct("<HH")
_WORD, _LONG = struct.Struct("<I"), struct.Struct("<Q")
_END_OF_OPTIONS = _OPTION.pack(0, 0)


def header(interface: str, description: str) -> bytes:
    """What a file begins with: its section, and its one interface."""
    section = struct.pack("<IHHq", _BYTE_ORDER, *_VERSION, _UNKNOWN_LENGTH)
    about = struct.pack("<HHI", _ETHERNET, 0, 0)
    application = _option(_APPLICATION, f"testbed {__version__}".encode())
    options = [
        _option(_NAME, interface.encode()), _option(_DESCRIPTION, description.encode()),
        _option(_RESOLUTION, bytes([_NANOSECONDS])),
    ]  # fmt: skip
    return _block(_SECTION, section + application + _END_OF_OPTIONS) + _block(
        _INTERFACE, about + b"".join(options) + _END_OF_OPTIONS
    )


def packets(frames: Iterable[Frame]) -> bytes:
    """Frames as they follow each other in a file."""
    flags = {
        outbound: _option(_FLAGS, _WORD.pack(_OUTBOUND if outbound else _INBOUND)) + _END_OF_OPTIONS
        for outbound in (False, True)
    }
    return b"".join(
        _block(
            _PACKET,
            _FRAME.pack(0, frame.time >> 32, frame.time & 0xFFFFFFFF, len(frame.data), frame.length)
            + _padded(frame.data)
            + flags[frame.outbound],
        )
        for frame in frames
    )


def statistics(time: int, received: int, dropped: int) -> bytes:
    """What a file may end with.

    Args:
        time: ns since the epoch.
        received: frames that were seen.
        dropped: frames that passed and were not kept.
    """
    options = _option(_RECEIVED, _LONG.pack(received)) + _option(_DROPPED, _LONG.pack(dropped)) + _END_OF_OPTIONS
    return _block(_STATISTICS, struct.pack("<III", 0, time >> 32, time & 0xFFFFFFFF) + options)


def _option(code: int, value: bytes) -> bytes:
    return _OPTION.pack(code, len(value)) + _padded(value)


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) & 3)


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + _HEAD.size + _WORD.size
    return _HEAD.pack(kind, length) + body + _WORD.pack(length)
