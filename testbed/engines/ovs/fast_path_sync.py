"""Keeps the fast path in step with the running switches: what it holds is read from them, and from nothing else.

A flow monitor at each switch tells of every change of its rules, whoever makes it. The switch is taken off the fast
path at once, and put on again, with what its rules are then, when they have been left alone for a moment. Open vSwitch
takes classifiers off a port when its settings change (`ovs-vsctl`); the kernel tells of that, and they are put back.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from testbed.base.errors import LabError
from testbed.engines.ovs.fast_path import RANK, FastPath
from testbed.engines.ovs.flow_monitor import FlowMonitor

_QUIET = 0.1  # s without a change until rules are read
_SETTLE_LIMIT = 10.0
_AT_ONCE = 16
# linux/rtnetlink.h, linux/pkt_sched.h: message header and tcmsg.
_MESSAGE = struct.Struct("=IHHII")
_TC = struct.Struct("=BxxxiIII")
_GROUP_TC, _QUEUEING_GONE, _CLASSIFIER_GONE = 8, 37, 45
_INGRESS = 0xFFFFFFF1


class FastPathSync:
    """Keeps entries of a fast path; begins with start().

    Args:
        path: the fast path.
        folder: where switches have their management sockets.
        dump: returns the rules of some running switches, a line each, by switch.
    """

    def __init__(
        self, path: FastPath, folder: Path, dump: Callable[[Sequence[str]], Mapping[str, Sequence[str]]]
    ) -> None:
        self.path, self._folder, self._dump = path, folder, dump
        self._changes: dict[str, int] = defaultdict(int)
        self._due: dict[str, float] = {}  # switch → when its rules are to be read
        self._monitors: dict[str, FlowMonitor] = {}
        self._why_off: dict[str, str] = {}
        self._state = threading.Condition()
        self._heard = selectors.DefaultSelector()
        self._woken, self._wake = os.pipe()
        self._kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)

    def start(self) -> None:
        """Listen to all switches, and fill.

        Raises:
            LabError: a switch cannot tell of changes.
        """
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._listen, self.path.switches))
        self._kernel.bind((0, _GROUP_TC))
        for one in (self._woken, self._kernel):
            self._heard.register(one, selectors.EVENT_READ)
        for what in (self._on_flow_monitor, self._fill):
            threading.Thread(target=what, daemon=True).start()

    def why_off(self) -> dict[str, str]:
        """Why, for each switch that is off for longer than a moment."""
        with self._state:
            return dict(self._why_off)

    def settle(self) -> None:
        """Return when every switch is on with its rules of now, or off for a reason.

        Where rules do not come to rest, it returns after a while.
        """
        with self._state:
            asked = []
            for monitor in self._monitors.values():
                with suppress(OSError):  # that it has ended is heard
                    asked.append((monitor, monitor.ask()))

            def is_settled() -> bool:
                told = (m.answered >= n for m, n in asked if self._monitors.get(m.bridge) is m)
                return all(told) and not self._due

            self._state.wait_for(is_settled, _SETTLE_LIMIT)

    def end(self, switch: str) -> None:
        """Take a switch off before its process is killed."""
        with self._state:
            self._disable(switch, "its process was killed")

    def begin(self, switch: str) -> None:
        """Put a switch on again whose process was started anew."""
        self._listen(switch)
        os.write(self._wake, b"1")

    def _listen(self, switch: str) -> None:
        monitor = FlowMonitor(switch, self._folder / f"{switch}.mgmt")
        with self._state:
            self._monitors[switch] = monitor
            self._invalidate(switch, 0.0)
        self._heard.register(monitor, selectors.EVENT_READ)

    def _invalidate(self, switch: str, after: float) -> None:
        """Take a switch off, for its rules to be read after so many seconds."""
        self._changes[switch] += 1
        self.path.clear(switch)
        self._why_off.pop(switch, None)
        self._due[switch] = time.monotonic() + after
        self._state.notify_all()

    def _disable(self, switch: str, why: str) -> None:
        """Take a switch off for good."""
        self._changes[switch] += 1
        self.path.clear(switch)
        self._due.pop(switch, None)
        self._why_off[switch] = why
        monitor = self._monitors.pop(switch, None)
        if monitor is not None:
            self._heard.unregister(monitor)
            monitor.close()
        self._state.notify_all()

    def _on_flow_monitor(self) -> None:
        while True:
            for key, _ in self._heard.select():
                monitor = key.fileobj
                if isinstance(monitor, FlowMonitor):
                    self._hear_switch(monitor)
                elif monitor is self._kernel:
                    self._on_netlink()
                else:
                    os.read(self._woken, 1024)

    def _hear_switch(self, monitor: FlowMonitor) -> None:
        with self._state:
            if self._monitors.get(monitor.bridge) is not monitor:
                return
            try:
                if monitor.read_changes():
                    self._invalidate(monitor.bridge, _QUIET)
                self._state.notify_all()
            except LabError as error:
                self._disable(monitor.bridge, str(error))

    def _on_netlink(self) -> None:
        """Put classifiers back that were taken off a port."""
        try:
            text = self._kernel.recv(1 << 16)
        except OSError:  # more than fits was said at once; so perhaps all are gone
            bare = set(self.path.switches)
        else:
            bare = {switch for number in _bare(text) if (switch := self.path.switch_at(number)) is not None}
        with self._state:
            for switch in bare:
                if switch in self._monitors:
                    self._invalidate(switch, _QUIET)
            try:
                self.path.attach(bare)
            except LabError as error:
                for switch in bare:
                    self._disable(switch, str(error))

    def _fill(self) -> None:
        while True:
            with self._state:
                now = time.monotonic()
                ready = {switch: self._changes[switch] for switch, due in self._due.items() if due <= now}
                if not ready:
                    self._state.wait(min(self._due.values()) - now if self._due else None)
                    continue
            try:
                dumped, failed = self._dump(list(ready)), ""
            except LabError as error:
                dumped, failed = {}, f"its rules cannot be read: {error}"
            for switch, changes in ready.items():
                self._fill_one(switch, changes, dumped.get(switch, ()), failed)

    def _fill_one(self, switch: str, changes: int, lines: Sequence[str], why: str) -> None:
        """Put a switch on with the entries for its rules, unless these have changed meanwhile; or note why not."""
        # They need numpy, and a lab is there sooner without.
        from testbed.fabric.openflow.flow_cache import NotUnderstoodError, entries  # noqa: PLC0415
        from testbed.fabric.openflow.rule_text import FlowSyntaxError, parse_rule  # noqa: PLC0415

        def valid() -> bool:
            return self._changes[switch] == changes

        try:
            if not why and not self._plain(switch):
                why = "one of its ports was configured not to forward all frames"
            if not why:
                found = entries([parse_rule(0, line) for line in lines], self.path.switches[switch])
                self.path.fill(switch, found, valid)
        except (NotUnderstoodError, FlowSyntaxError) as error:
            why = str(error)
        except OSError as error:
            why = f"the kernel does not take its entries: {error.strerror}"
        with self._state:
            if valid():
                del self._due[switch]
                if why:
                    self._why_off[switch] = why
                self._state.notify_all()

    def _plain(self, switch: str) -> bool:
        with self._state:
            return switch in self._monitors and self._monitors[switch].plain


def _bare(text: bytes) -> set[int]:
    """Numbers of interfaces that messages say have no classifier of the fast path any more."""
    found, at = set(), 0
    while at + _MESSAGE.size + _TC.size <= len(text):
        length, kind, *_ = _MESSAGE.unpack_from(text, at)
        _, interface, _, parent, info = _TC.unpack_from(text, at + _MESSAGE.size)
        queueing = kind == _QUEUEING_GONE and parent == _INGRESS
        if queueing or (kind == _CLASSIFIER_GONE and info >> 16 == RANK):
            found.add(interface)
        at += max(-(-length // 4) * 4, _MESSAGE.size)
    return found
