"""When frames left the busiest shaped ports: what shows whether the kernel let each go when its link was free.

A packet socket at a port sees each frame after the port's queue has released it, with the kernel's time stamp. Frames
wait in the socket's buffer and are read after the window, so that watching costs next to nothing while it lasts, and
so that what is read has no gaps: a full buffer loses only the last ones. How many frames wait at the port is asked
many times in between; from that gap_errors() of run/checks/telemetry_samples.py knows when the port had no pause.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from testbed.base.ethernet import MAX_WIRE_FRAME
from testbed.engines.lab.counters.rtnetlink import FIGURES, PortCounters
from testbed.engines.lab.counters.socket_buffers import set_buffer

# How long the busiest ports are looked for, and then watched, s.
_CHOOSING, _WATCHING = 0.5, 2.0
_PORTS = 4
# Between two looks at a queue: the time of so many full frames, within bounds, s. A port had no pause if more frames
# wait than leave meanwhile, and a TCP that loses nothing lets only a few wait.
_FRAMES_A_LOOK, _MIN_LOOK, _MAX_LOOK = 3, 2e-3, 20e-3
_MAX_FRAME = 65536
_BUFFER = 32 << 20
# linux/socket.h, linux/if_packet.h, linux/filter.h
_SO_TIMESTAMPNS, _SO_ATTACH_FILTER = 35, 26
_EVERY_PROTOCOL = 0x0003
_TIMESPEC = struct.Struct("=qq")
# Take a frame whose packet type is "outgoing" whole, and no other.
_FILTER = (
    struct.pack("=HBBI", 0x20, 0, 0, 0xFFFFF004)
    + struct.pack("=HBBI", 0x15, 0, 1, socket.PACKET_OUTGOING)
    + struct.pack("=HBBI", 0x06, 0, 0, 0x40000)
    + struct.pack("=HBBI", 0x06, 0, 0, 0)
)


class Departures:
    """Watches the busiest ports once, for a while.

    Args:
        ports: reads the switch ports; not to be shared meanwhile. None = nothing is watched.
        rates: bit/s of each.
        delay: s from the call of watch() until the busiest are looked for.
        stop: ends it early.
    """

    def __init__(self, ports: PortCounters | None, rates: Sequence[float], delay: float, stop: threading.Event) -> None:
        self._ports, self._rates, self._delay, self._stop = ports, np.asarray(rates), delay, stop
        self._frames: list[tuple[int, int, int]] = []
        self._looks: list[tuple[int, int, int]] = []

    def arrays(self) -> dict[str, npt.NDArray[np.int64]]:
        """What was seen.

        Returns:
            `departures` (N, 3): row of the port, time (ns by the system clock), bytes as Linux counts them.
            `looks` (K, 3): row of the port, time likewise, frames that waited.
        """
        return {
            "departures": np.array(self._frames, dtype=np.int64).reshape(-1, 3),
            "looks": np.array(self._looks, dtype=np.int64).reshape(-1, 3),
        }

    def watch(self) -> None:
        """Wait, choose the busiest ports, and watch them; returns when that is done or stopped."""
        if self._ports is None or self._stop.wait(self._delay):
            return
        sent = FIGURES.index("tx_bytes")
        before = self._ports.read()[:, sent]
        if self._stop.wait(_CHOOSING):
            return
        use = (self._ports.read()[:, sent] - before) / self._rates
        chosen = [int(row) for row in np.argsort(-use, kind="stable")[:_PORTS] if use[row] > 0]
        if not chosen:
            return
        ears = [(row, _listen(self._ports.ports[row])) for row in chosen]
        look = _FRAMES_A_LOOK * MAX_WIRE_FRAME * 8 / float(self._rates[chosen].max())
        look = min(max(look, _MIN_LOOK), _MAX_LOOK)
        until = time.monotonic() + _WATCHING
        while time.monotonic() < until:
            self._looks += [(row, time.time_ns(), self._ports.read_backlog(row)) for row in chosen]
            if self._stop.wait(look):
                break
        self._looks += [(row, time.time_ns(), self._ports.read_backlog(row)) for row in chosen]
        for row, ear in ears:
            with ear:
                self._frames += _drain_socket(row, ear)


def _listen(interface: str) -> socket.socket:
    ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    program = ctypes.create_string_buffer(_FILTER, len(_FILTER))
    ear.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_FILTER) // 8, ctypes.addressof(program))
    )
    set_buffer(ear, socket.SO_RCVBUF, _BUFFER)
    ear.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    ear.setblocking(False)
    ear.bind((interface, _EVERY_PROTOCOL))
    return ear


def _drain_socket(row: int, ear: socket.socket) -> list[tuple[int, int, int]]:
    """All frames that a socket has kept, in their order."""
    frames: list[tuple[int, int, int]] = []
    while True:
        try:
            frame, extra, _, _ = ear.recvmsg(_MAX_FRAME, socket.CMSG_SPACE(_TIMESPEC.size))
        except BlockingIOError:
            return frames
        for level, kind, data in extra:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIMESPEC.unpack(data)
                frames.append((row, seconds * 1_000_000_000 + nanoseconds, len(frame)))
