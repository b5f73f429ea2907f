"""Talk to a lab's agent."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from testbed.emulate.launch import Namespaces
from testbed.errors import CapabilityError, LabError

_SHUTDOWN_LIMIT = 5.0

Progress = Callable[[str], None]


def quiet(text: str) -> None:
    """Say nothing."""
    del text


class Lab:
    """A lab that stands; use as a context manager to end it however the block ends.

    This module is light on purpose: `testbed down` needs nothing of the planner.

    Args:
        namespaces: of its process 1.

    Attributes:
        namespaces: of its process 1.
        built: what building it gave: datapath, holders, seconds, versions; empty in a lab built by another program.
    """

    def __init__(self, namespaces: Namespaces) -> None:
        self.namespaces = namespaces
        self.built: dict[str, Any] = {}
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(namespaces.socket))
        except PermissionError as error:
            self._socket.close()
            raise CapabilityError("asking a lab needs root; run the command with sudo") from error
        except OSError as error:
            self._socket.close()
            raise LabError(f"the lab (process {namespaces.init}) does not answer: {error.strerror}") from error
        self._stream = self._socket.makefile("rw", encoding="utf-8")

    def ask(self, operation: str, *, progress: Progress = quiet, **arguments: Any) -> Any:
        """Send a request and return its result.

        Raises:
            LabError: the agent refuses, or is gone.
        """
        try:
            self._stream.write(json.dumps({"op": operation, **arguments}) + "\n")
            self._stream.flush()
            for line in self._stream:
                message = json.loads(line)
                if "progress" in message:
                    progress(message["progress"])
                elif "error" in message:
                    raise LabError(message["error"])
                else:
                    return message["result"]
        except (BrokenPipeError, ConnectionResetError):
            pass
        raise LabError("the lab ended while it was in use")

    @contextmanager
    def beside(self) -> Iterator[Lab]:
        """Another connection, for questions while this one waits for a load; the lab outlives it.

        Only `status` and the operations of the agent's `BESIDE` are answered before the load has ended.
        """
        other = Lab(self.namespaces)
        try:
            yield other
        finally:
            other.close()

    def close(self) -> None:
        """Hang up; the lab goes on."""
        with self._socket, suppress(OSError):
            self._stream.close()  # fails where a question to an agent that is gone was never sent

    def end(self) -> None:
        """Hang up and end the lab: its switches by the agent, which is quick at it, then everything by the kernel."""
        try:
            # A connection of its own: this one may be in the middle of an answer.
            with socket.socket(socket.AF_UNIX) as ending:
                ending.settimeout(_SHUTDOWN_LIMIT)
                ending.connect(str(self.namespaces.socket))
                ending.sendall(b'{"op": "shutdown"}\n')
                ending.recv(4096)
        except OSError:
            pass  # the agent is gone or stuck; killing it ends the rest as surely
        self.close()
        self.namespaces.end()

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        """Write a file into the lab's own folder; returns its path inside the lab."""
        return Path(self.ask("write", name=name, text=text, mode=mode))

    def read(self, name: str) -> bytes:
        """Content of a file in the lab's own folder."""
        return (self.namespaces.socket.parent / name).read_bytes()

    def take(self, name: str) -> str:
        """Text of a file that a load has left in the lab's folder, which is then gone; empty where there is none."""
        return str(self.ask("take", name=name))

    def __enter__(self) -> Lab:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the lab."""
        self.end()
