"""What comes to a lab's agent by its socket: lines, each a request, from clients that may send anything.

Whatever comes is answered: by a result, or by a sentence that says what is wrong with it. A message is as long as those
that built the lab, or so; a longer one is passed over without being kept, and one that is not sent to its end is given
up. Only root can connect.
"""

from __future__ import annotations

import select
import socket
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from testbed.base.errors import CapabilityError, LabError, did_you_mean
from testbed.base.limits import PLAN_VALUES, parse_json
from testbed.engines.lab.control import operations  # noqa: F401 - each enters the table
from testbed.engines.lab.control.agent_memory import trim_heap
from testbed.engines.lab.control.json_lines import decode, encode
from testbed.engines.lab.control.operation import OPERATIONS, Operation, Progress

CLIENTS = 512  # that can be connected at once
PATIENCE = 30.0  # s from the first byte of a request to its last
_CHUNK = 1 << 18
_LONG = 100_000  # letters of an answer that leaves a lot of free memory, such as all rules
_SHOWN = 40
_SENTENCE = 1000


class Answerer(Protocol):
    """What carries requests out."""

    @property
    def max_request(self) -> int:
        """Bytes of a request at most."""

    def answer(self, operation: Operation[Any], progress: Progress) -> Any:
        """Carry out one operation."""


class _LateError(LabError):
    """A request has not come to its end, and its client is not waited for any more."""


def listen(place: Path, agent: Answerer) -> None:
    """Answer whoever connects to a socket file, each in a thread of its own; does not return."""
    free = threading.Semaphore(CLIENTS)

    def answer(connection: socket.socket) -> None:
        try:
            serve(agent, connection)
        finally:
            free.release()

    with socket.socket(socket.AF_UNIX) as listener:
        partial = place.with_suffix(".partial")
        listener.bind(str(partial))
        listener.listen(CLIENTS)
        partial.rename(place)
        while True:
            connection, _ = listener.accept()
            if free.acquire(blocking=False):
                threading.Thread(target=answer, args=(connection,), daemon=True).start()
                continue
            with connection, suppress(OSError):
                connection.setblocking(False)
                connection.send(_line(error=f"{CLIENTS} programs are connected to the lab already; end some of them"))


def serve(agent: Answerer, connection: socket.socket) -> None:
    """Answer one client until it hangs up, or stops in the middle of a request."""

    def send(**message: Any) -> int:
        text = _line(**message)
        connection.sendall(text)
        return len(text)

    def tell(text: str) -> None:
        send(progress=text)

    with connection, suppress(BrokenPipeError, ConnectionResetError):
        lines = _Lines(connection, lambda: agent.max_request)
        while True:
            try:
                line = next(lines, None)
                if line is None:
                    return
                if send(result=agent.answer(parse_request(line), tell)) > _LONG:
                    trim_heap()
            except (BrokenPipeError, ConnectionResetError):
                return
            except _LateError as error:
                send(error=str(error))
                return
            except (LabError, CapabilityError, OSError, subprocess.SubprocessError) as error:
                send(error=_words(error))
            except Exception as error:  # an answer in any case: to hang up would say that the lab ended
                traceback.print_exc()
                send(error=f"the lab's agent failed at that: {type(error).__name__}: {error}"[:_SENTENCE])


def parse_request(line: bytes) -> Operation[Any]:
    """The operation that one line asks for.

    Raises:
        LabError: it is no request.
    """
    try:
        said = parse_json(line, most=PLAN_VALUES)
    except (ValueError, RecursionError) as error:
        raise LabError(f"a request should be a line of JSON, and this is none: {error}") from None
    if not isinstance(said, dict) or said.keys() != {"op", "request"}:
        raise LabError('a request should be {"op": the name of an operation, "request": {its fields}}')
    name = said["op"]
    kind = OPERATIONS.get(name) if isinstance(name, str) else None
    if kind is None:
        near = did_you_mean(str(name), OPERATIONS)
        raise LabError(f"there is no operation {str(name)[:_SHOWN]!r}.{near} There is: {', '.join(OPERATIONS)}")
    try:
        return decode(kind, said["request"])
    except (ValueError, TypeError, RecursionError) as error:
        raise LabError(f"{name}: {error}") from None


class _Lines:
    """What a client sends, line by line.

    Of a line that is too long nothing is kept, and LabError is raised in its place; then it goes on.
    """

    def __init__(self, connection: socket.socket, longest: Callable[[], int]) -> None:
        self._connection, self._longest = connection, longest
        self._heard = bytearray()
        self._seen = 0  # bytes of it in which there is no end of a line

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        until = time.monotonic() + PATIENCE if self._heard else None
        passed_over = 0
        while (end := self._heard.find(b"\n", self._seen)) < 0:
            if len(self._heard) > self._longest():
                passed_over += len(self._heard)
                self._heard.clear()
            self._seen = len(self._heard)
            found = self._more(until)
            if not found:
                if self._heard or passed_over:
                    raise _LateError("a request ends with a line feed, and this one ended without")
                raise StopIteration
            until = until or time.monotonic() + PATIENCE
            self._heard += found
        line = bytes(self._heard[:end])
        del self._heard[: end + 1]
        self._seen = 0
        most = self._longest()
        if passed_over or len(line) > most:
            raise LabError(f"a request of {passed_over + len(line):,} bytes; {most:,} are the most in this lab")
        return line

    def _more(self, until: float | None) -> bytes:
        """What comes next; empty where the client has hung up.

        Raises:
            _LateError: nothing comes until then, by the monotonic clock.
        """
        left = None if until is None else max(0.0, until - time.monotonic())
        waiting = select.poll()
        waiting.register(self._connection, select.POLLIN)
        if not waiting.poll(None if left is None else 1000 * left):
            raise _LateError(f"a request was not sent to its end in {PATIENCE:g} s")
        return self._connection.recv(_CHUNK)


def _line(**message: Any) -> bytes:
    return encode(message).encode() + b"\n"


def _words(error: Exception) -> str:
    """What is said of an error: of the system's own, what it is about and why."""
    if isinstance(error, OSError) and error.strerror:
        return f"{str(error.filename or 'a file of the lab')[-_SENTENCE // 2 :]}: {error.strerror}"
    return str(error)
