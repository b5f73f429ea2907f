"""Buffers of sockets, beyond what the machine allows everybody where that may be."""

from __future__ import annotations

import socket

_FORCED = {socket.SO_RCVBUF: 33, socket.SO_SNDBUF: 32}  # SO_RCVBUFFORCE and SO_SNDBUFFORCE of asm-generic/socket.h


def set_buffer(one: socket.socket, which: int, size: int) -> None:
    """Give a socket a buffer of so many bytes, or of what net.core.rmem_max or wmem_max allows.

    Args:
        one: the socket.
        which: SO_RCVBUF or SO_SNDBUF.
        size: bytes.

    Raises:
        OSError: it is no socket with buffers.
    """
    try:
        one.setsockopt(socket.SOL_SOCKET, _FORCED[which], size)
    except PermissionError:  # only root outside of user namespaces may
        one.setsockopt(socket.SOL_SOCKET, which, size)
