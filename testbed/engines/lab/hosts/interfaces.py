"""Network interfaces go down and up without a program."""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Sequence

_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_REQUEST = struct.Struct("16sH22x")


def set_interfaces(names: Sequence[str], *, up: bool) -> None:
    """Take network interfaces down or up, as `ip link set` does, without the time that a program takes to start."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for name in names:
            asked = fcntl.ioctl(one, _SIOCGIFFLAGS, _REQUEST.pack(name.encode(), 0))
            flags = _REQUEST.unpack(asked)[1]
            fcntl.ioctl(one, _SIOCSIFFLAGS, _REQUEST.pack(name.encode(), flags | _IFF_UP if up else flags & ~_IFF_UP))
