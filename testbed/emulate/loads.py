"""Run the processes of a load inside the hosts: servers first, then everything else, within a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from testbed.emulate.commands import in_host
from testbed.emulate.counters import snapshot
from testbed.errors import LabError

_LISTEN = "0A"  # state of a listening socket in /proc/net/tcp
_SERVER_LIMIT = 20.0
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
    groups: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Run a load.

    Args:
        request: `processes`, each with `id`, `host` (none = beside the switches), `argv`, and optionally `env`,
            `only_env` and `server_port`; `limit` in s; optionally `window` (start, end) in s after the last start, at
            which counters are taken, otherwise they are taken around the whole load.
        holders: host → pid.
        check: raises when the switches are gone.
        groups: host → file by which processes join its group; none where hosts have no share of the processors.

    Returns:
        `outputs` id → exit code and output, `snapshots` before and after, `timed_out` ids, `seconds`.

    Raises:
        LabError: a process cannot be started, or the switches died.
    """
    running: list[_Process] = []
    started = time.monotonic()
    try:
        for spec in request["processes"]:
            if spec.get("server_port") is not None:
                running.append(_Process(spec, holders, groups))
        _wait_for_servers(running)
        clients = [_Process(spec, holders, groups) for spec in request["processes"] if spec.get("server_port") is None]
        running += clients
        before = snapshot()
        window = request.get("window")
        after = None
        zero = time.monotonic()
        next_check = zero
        while any(process.popen.poll() is None for process in running):
            now = time.monotonic()
            if now > next_check:
                check()
                next_check = now + _ALIVE_EVERY
            if window and now - zero >= window[0] and before["time"] < zero + window[0]:
                before = snapshot()
            if window and after is None and now - zero >= window[1]:
                after = snapshot()
            if now - started > request["limit"]:
                break
            time.sleep(_POLL)
        check()
        snapshots = [before, after or snapshot()]
        timed_out = [process.id for process in running if process.popen.poll() is None]
    finally:
        for process in running:
            process.end()
    return {
        "outputs": {process.id: process.result() for process in running},
        "snapshots": snapshots,
        "timed_out": timed_out,
        "seconds": time.monotonic() - started,
    }


def _wait_for_servers(servers: list[_Process]) -> None:
    until = time.monotonic() + _SERVER_LIMIT
    for server in servers:
        while not server.listens():
            if server.popen.poll() is not None or time.monotonic() > until:
                raise LabError(f"server {server.id} does not listen: {server.result()['stderr'].strip()[:200]}")
            time.sleep(_POLL / 4)
