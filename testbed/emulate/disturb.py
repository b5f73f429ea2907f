"""Failures while a load runs: links and ports go down and up, switches are killed and started."""

from __future__ import annotations

import fcntl
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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


class Timeline:
    """Disturbances at given times after a start, in a thread of its own.

    Args:
        events: each with `at` (s after the start), `up` (False = it dies), `interfaces` and `switches`.
        switch: kills a switch, or starts it.
    """

    def __init__(self, events: Sequence[Mapping[str, Any]], switch: Callable[[str, bool], None]) -> None:
        self._events = events
        self._switch = switch
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.done: list[dict[str, Any]] = []

    def start(self) -> None:
        """Begin to count time."""
        self._thread = threading.Thread(target=self._run, args=(time.monotonic(),), daemon=True)
        self._thread.start()

    def end(self) -> list[dict[str, Any]]:
        """Let nothing more happen; returns for each event that was carried out `began` and `ended` (s, monotonic)."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        return self.done

    def _run(self, start: float) -> None:
        for event in self._events:
            if self._ended.wait(max(0.0, start + event["at"] - time.monotonic())):
                return
            self.done.append(carry_out(event, self._switch))


def carry_out(event: Mapping[str, Any], switch: Callable[[str, bool], None]) -> dict[str, Any]:
    """Let one event happen; returns `began`, `ended` and, where it failed, `error`."""
    began, up = time.monotonic(), bool(event["up"])
    try:
        set_interfaces(event["interfaces"], up=up)
        for name in event["switches"]:
            switch(name, up)
    except Exception as error:
        return {"began": began, "ended": time.monotonic(), "error": str(error)}
    return {"began": began, "ended": time.monotonic()}
