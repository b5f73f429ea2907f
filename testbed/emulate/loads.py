"""Run the processes of a load inside the hosts: servers first, then everything else, within a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from testbed.emulate.commands import in_host
from testbed.emulate.counters import snapshot
from testbed.errors import LabError

_LISTEN = "0A"  # state of a listening socket in /proc/net/tcp
_SERVER_LIMIT = 20.0
_SHORTEST_WINDOW = 0.5
# After the last client has ended.
_SERVER_GRACE = 5.0
_POLL = 0.02
_ALIVE_EVERY = 0.2


class _Process:
    """One process with its output in files, so that a lot of output never blocks it."""

    def __init__(self, spec: Mapping[str, Any], holders: Mapping[str, int], groups: Mapping[str, str]) -> None:
        self.id: str = spec["id"]
        self.server_port: int | None = spec.get("server_port")
        self.out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - read after the process has ended
        self.err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as above
        command = list(spec["argv"])
        if spec.get("host"):
            command = in_host(holders[spec["host"]], command, groups.get(spec["host"]))
        try:
            self.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                env={**({} if spec.get("only_env") else os.environ), **spec.get("env", {})}, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise LabError(f"{command[0]} cannot be started: {error.strerror}") from error

    def listens(self) -> bool:
        """Whether the server's port is open in its namespace."""
        for table in ("tcp", "tcp6"):
            try:
                lines = Path(f"/proc/{self.popen.pid}/net/{table}").read_text().splitlines()[1:]
            except OSError:
                return False
            for line in lines:
                words = line.split()
                if words[3] == _LISTEN and int(words[1].rsplit(":", 1)[1], 16) == self.server_port:
                    return True
        return False

    def end(self) -> None:
        """End the process and everything it started in its session."""
        if self.popen.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()

    def result(self) -> dict[str, Any]:
        """Exit code (None = ended by us) and output."""
        self.out.seek(0)
        self.err.seek(0)
        return {
            "code": self.popen.returncode,
            "stdout": self.out.read().decode(errors="replace"),
            "stderr": self.err.read().decode(errors="replace"),
        }


def run_load(
    request: Mapping[str, Any],
    holders: Mapping[str, int],
    check: Callable[[], None],
    daemons: Sequence[int] = (),
    started: Callable[[], None] = lambda: None,
    groups: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Run a load.

    Args:
        request: `processes`, each with `id`, `host` (none = beside the switches), `argv`, and optionally `env`,
            `only_env` and `server_port`; `limit` in s; optionally `window` (start, end) in s after each client's
            start, in the part of which that all have in common counters are taken, otherwise around the whole load.
        holders: host → pid.
        check: raises when the switches are gone.
        daemons: pids of the switches' daemons.
        started: called when the last process has started.
        groups: host → file by which processes join its group; none where hosts have no share of the processors.

    Returns:
        `outputs` id → exit code and output, `snapshots` before and after, `timed_out` ids, `start` (when the last
        process had started, s, monotonic), `window` in s after that or None, `seconds`. A server that never listens
        is one that failed.

    Raises:
        LabError: a process cannot be started, or the switches died.
    """
    running: list[_Process] = []
    begun = time.monotonic()
    try:
        for spec in request["processes"]:
            if spec.get("server_port") is not None:
                running.append(_Process(spec, holders, groups))
        servers = list(running)
        _wait_for_servers(servers)
        # Before the first client: nothing that it sends may be missing, however busy the machine is then.
        before = snapshot(daemons)
        first = time.monotonic()
        clients = [_Process(spec, holders, groups) for spec in request["processes"] if spec.get("server_port") is None]
        running += clients
        after = None
        zero = time.monotonic()
        started()
        window = _common(request.get("window"), zero - first)
        next_check, done = zero, None
        while any(process.popen.poll() is None for process in running):
            now = time.monotonic()
            if now > next_check:
                check()
                next_check = now + _ALIVE_EVERY
            if window and now - zero >= window[0] and before["time"] < zero + window[0]:
                before = snapshot(daemons)
            if window and after is None and now - zero >= window[1]:
                after = snapshot(daemons)
            if done is None and clients and all(client.popen.poll() is not None for client in clients):
                done = now
            # A server whose client failed would wait for another one.
            if now - begun > request["limit"] or (done is not None and now - done > _SERVER_GRACE):
                break
            time.sleep(_POLL)
        check()
        snapshots = [before, after or snapshot(daemons)]
        if groups:
            # The kernel counts programs that have used up their share as waiting for a processor.
            snapshots = [{**one, "pressure": None} for one in snapshots]
        timed_out = [process.id for process in running if process.popen.poll() is None]
    finally:
        for process in running:
            process.end()
    return {
        "outputs": {process.id: process.result() for process in running},
        "snapshots": snapshots,
        "timed_out": timed_out,
        "start": zero,
        "window": window,
        "seconds": time.monotonic() - begun,
    }


def _common(window: Sequence[float] | None, spread: float) -> tuple[float, float] | None:
    """The part of a window that clients have in common whose starts took `spread` s, seen from the last start."""
    return (window[0], max(window[1] - spread, window[0] + _SHORTEST_WINDOW)) if window else None


def _wait_for_servers(servers: list[_Process]) -> None:
    """Return when every server listens, has ended or is too late."""
    until = time.monotonic() + _SERVER_LIMIT
    for server in servers:
        while not server.listens() and server.popen.poll() is None and time.monotonic() < until:
            time.sleep(_POLL / 4)
