"""Hears from a running switch that its rules change, whoever changes them: OpenFlow's flow monitor."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from testbed.base.errors import LabError

# OpenFlow 1.5 (ONF TS-025): 7.1 header, 7.3.5.18 flow monitor, 7.4.3 port status.
_VERSION = 6
_HEADER = struct.Struct("!BBHI")
_HELLO, _ERROR, _ECHO, _ECHO_REPLY, _SET_CONFIG, _PORT_STATUS, _ASK, _ANSWER = 0, 1, 2, 3, 9, 12, 18, 19
_BARRIER, _BARRIER_REPLY = 20, 21
# Without a length for frames, of which none are sent here, a switch tells this kind of connection nothing of its ports.
_TELL_OF_PORTS = struct.pack("!HH", 0, 64)
_FLOW_MONITOR = 16
_ADDED, _REMOVED, _MODIFIED = 1 << 1, 1 << 2, 1 << 3
_ANY, _ALL_TABLES, _BEGIN = 0xFFFFFFFF, 0xFF, 0
_NO_MATCH = struct.pack("!HH4x", 1, 4)
_PORT_NUMBER_AT, _PORT_CONFIG_AT = 16, 48
_LIMIT = 10.0


class FlowMonitor:
    """A connection to one switch; `fileno` is for select().

    Args:
        bridge: name of the switch.
        path: its management socket.

    Attributes:
        answered: the highest number of a question that it has answered.

    Raises:
        LabError: the switch cannot tell of changes; says why.
    """

    def __init__(self, bridge: str, path: Path) -> None:
        self.bridge = bridge
        self._set_up: set[int] = set()  # ports that were configured to do otherwise than forward
        self._heard = b""
        self._asked = self.answered = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_LIMIT)
        try:
            self._socket.connect(str(path))
            self._begin()
        except OSError as error:
            self._socket.close()
            raise LabError(f"{bridge} does not tell of changes of its rules: {error}") from error
        self._socket.setblocking(False)

    def _begin(self) -> None:
        self._send(_HELLO, 1, b"")
        self._send(_SET_CONFIG, 1, _TELL_OF_PORTS)
        flags = _ADDED | _REMOVED | _MODIFIED
        asked = struct.pack("!IIIHBB", 1, _ANY, _ANY, flags, _ALL_TABLES, _BEGIN) + _NO_MATCH
        self._send(_ASK, 2, struct.pack("!HH4x", _FLOW_MONITOR, 0) + asked)
        while True:
            kind, number, body = self._next()
            if kind == _ERROR:
                raise OSError(f"it refuses a flow monitor, with the OpenFlow error {body[:8].hex()}")
            if kind == _ANSWER and number == 2:
                return

    def _next(self) -> tuple[int, int, bytes]:
        """Kind, number and body of the next message; waits for it."""
        while (message := self._next_message()) is None:
            more = self._socket.recv(1 << 16)
            if not more:
                raise OSError("it hung up")
            self._heard += more
        return message

    def _next_message(self) -> tuple[int, int, bytes] | None:
        if len(self._heard) < _HEADER.size:
            return None
        _, kind, length, number = _HEADER.unpack_from(self._heard)
        if len(self._heard) < length:
            return None
        body, self._heard = self._heard[_HEADER.size : length], self._heard[length:]
        return kind, number, body

    def _send(self, kind: int, number: int, body: bytes) -> None:
        self._socket.sendall(_HEADER.pack(_VERSION, kind, _HEADER.size + len(body), number) + body)

    def fileno(self) -> int:
        """Number of its socket."""
        return self._socket.fileno()

    @property
    def plain(self) -> bool:
        """Whether every port forwards as its links and rules have it, without further orders."""
        return not self._set_up

    def ask(self) -> int:
        """Ask for an answer, before which it tells of all changes until now; returns the number of the question.

        Raises:
            OSError: the switch has ended.
        """
        self._asked += 1
        self._send(_BARRIER, self._asked, b"")
        return self._asked

    def read_changes(self) -> bool:
        """Take what has come; returns whether rules or ports have changed.

        Raises:
            LabError: the switch has ended.
        """
        changed = False
        while True:
            try:
                more = self._socket.recv(1 << 16)
            except BlockingIOError:
                return changed
            except OSError as error:
                raise LabError(f"{self.bridge} hung up: {error}") from error
            if not more:
                raise LabError(f"{self.bridge} has ended")
            self._heard += more
            while (message := self._next_message()) is not None:
                changed |= self._handle_message(*message)

    def _handle_message(self, kind: int, number: int, body: bytes) -> bool:
        if kind == _ECHO:
            self._send(_ECHO_REPLY, number, body)
            return False
        if kind == _BARRIER_REPLY:
            self.answered = max(self.answered, number)
            return False
        if kind == _PORT_STATUS:
            (port,) = struct.unpack_from("!I", body, _PORT_NUMBER_AT - _HEADER.size)
            (config,) = struct.unpack_from("!I", body, _PORT_CONFIG_AT - _HEADER.size)
            was = self._set_up.copy()
            (self._set_up.add if config else self._set_up.discard)(port)
            return was != self._set_up
        return kind == _ANSWER  # to no question: rules have changed

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
