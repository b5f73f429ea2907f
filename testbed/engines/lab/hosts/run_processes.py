"""Run the processes of a load inside the hosts, with what is counted and what dies while they run."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from testbed.base.errors import LabError
from testbed.base.messages import (
    Access,
    Disturbance,
    Disturbed,
    LoadRequest,
    Observation,
    Output,
    Process,
    Snapshot,
)
from testbed.engines.lab.control.fault_injection import Timeline
from testbed.engines.lab.counters import procfs
from testbed.engines.lab.hosts.host_view import HOME, take_own_temporary
from testbed.engines.lab.hosts.inherited_files import give_nothing
from testbed.engines.lab.hosts.interface_names import RECORD
from testbed.engines.lab.hosts.lab_network import LabNetwork
from testbed.engines.lab.hosts.mounts import run_in_thread_namespace
from testbed.engines.lab.hosts.seccomp import own_places, program_in, start_with_seccomp

if TYPE_CHECKING:
    from testbed.engines.lab.counters.telemetry import Telemetry

_LISTEN = "0A"  # state of a listening socket in /proc/net/tcp
_SERVER_LIMIT = 20.0
_MIN_WINDOW = 0.5
# After the last client has ended.
_SERVER_GRACE = 5.0
_POLL = 0.02
_ALIVE_EVERY = 0.2


class _Running:
    """One process with its output in files, so that a lot of output never blocks it."""

    def __init__(
        self, spec: Process, holders: Mapping[str, int], groups: Mapping[str, str], access: Access, folder: str
    ) -> None:
        self.id = spec.id
        self.server_port = spec.server_port
        self.out: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - read after the process has ended
        self.err: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as above
        command, environment = list(spec.argv), {**({} if spec.only_env else os.environ), **spec.env}
        of_hosts = spec.host is not None or spec.to_hosts
        where = HOME if spec.to_hosts or (of_hosts and access != "write") else folder
        if spec.host is not None:
            command = program_in(holders[spec.host], command, groups.get(spec.host), access, where)
        if of_hosts:
            environment |= own_places(access)

        self._started, self._ended = time.monotonic(), 0.0

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command, stdin=give_nothing(access if of_hosts else "write"), stdout=self.out, stderr=self.err,
                env=environment, start_new_session=True,
                cwd=where,
            )  # fmt: skip

        def apart_from_all() -> subprocess.Popen[bytes]:
            take_own_temporary()  # mpiexec puts files there, and leaves them when it is killed
            return start_with_seccomp(access, start)

        try:
            self.popen = (
                run_in_thread_namespace(apart_from_all)
                if spec.to_hosts
                else start_with_seccomp(access, start)
                if of_hosts
                else start()
            )
        except OSError as error:
            raise LabError(f"{command[0]} cannot be started: {error.strerror}") from error

    def is_running(self) -> bool:
        """Whether it runs; notes when it has ended."""
        if self.popen.poll() is None:
            return True
        self._ended = self._ended or time.monotonic()
        return False

    def listens(self) -> bool:
        """Whether the server's port is open in its namespace."""
        for table in ("tcp", "tcp6"):
            try:
                lines = procfs.read_kernel_file(f"/proc/{self.popen.pid}/net/{table}").splitlines()[1:]
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

    def output(self) -> Output:
        """Exit code and output."""
        self.out.seek(0)
        self.err.seek(0)
        out, err = (file.read().decode(errors="replace") for file in (self.out, self.err))
        self.is_running()
        return Output(self.popen.returncode, out, err, self._ended - self._started)


class _Gate:
    """Where the parts of a fabric on several machines wait for each other; open where the fabric is whole.

    A part says by a file `name.reached` how far it is, and goes on when whoever started all parts has made `name.open`.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def reach(self, name: str) -> bool:
        """Say that this part has come so far; whether all others have, too."""
        if self.folder is None:
            return True
        (self.folder / f"{name}.reached").touch()
        return (self.folder / f"{name}.open").exists()

    def wait(self, name: str, until: float, *, needed: bool = True) -> None:
        """Return when all parts have come so far, where they are to wait for each other there.

        Raises:
            LabError: the others are too late, s by the monotonic clock.
        """
        while needed and not self.reach(name):
            if time.monotonic() > until:
                raise LabError("the other machines of the fabric have not come so far in time")
            time.sleep(_POLL / 4)


class LoadRunner:
    """Runs loads in a lab.

    Args:
        groups: returns the file by which processes join the share of their host, by host; none where it has no share.
        disturb: lets something die or come back.
        folder: of the lab, which gets what was recorded.
        began_in: the folder that the lab was started from.
    """

    def __init__(
        self,
        groups: Callable[[], Mapping[str, str]],
        disturb: Callable[[Disturbance], Disturbed],
        folder: Path,
        began_in: str,
    ) -> None:
        self._groups = groups
        self._disturb = disturb
        self._folder = folder
        self._began_in = began_in
        self._telemetry: Telemetry | None = None
        self._making = threading.Lock()

    def run(self, load: LoadRequest, fabric: LabNetwork, wanted: Callable[[], None]) -> Observation:
        """Run a load in a fabric on its switches.

        `wanted` is called now and then, and raises what ends the load.

        Raises:
            LabError: a process cannot be started, or the switches died.
        """
        timeline = Timeline(load.timeline, self._disturb)
        try:
            found = self._run_recorded(load, fabric, timeline, wanted)
        finally:
            disturbed = timeline.end()
        return replace(found, disturbed=disturbed)

    def _run_recorded(
        self,
        load: LoadRequest,
        fabric: LabNetwork,
        timeline: Timeline,
        wanted: Callable[[], None],
    ) -> Observation:
        if not load.telemetry:
            return self._processes(load, fabric, timeline.start, wanted)
        telemetry = self._need_telemetry(fabric)
        with telemetry.record_counters(
            load.telemetry, self._folder / RECORD, load.departures, list(fabric.port_rates().values())
        ) as started:

            def start_all() -> None:
                started()
                timeline.start()

            found = self._processes(load, fabric, start_all, wanted)
        return replace(found, record=RECORD, no_matrix=telemetry.no_matrix)

    def _need_telemetry(self, fabric: LabNetwork) -> Telemetry:
        """Return what counts beside loads; made with the first load that wants it."""
        with self._making:
            if self._telemetry is None:
                self._telemetry = fabric.telemetry()
        return self._telemetry

    def _begin(self, spec: Process, fabric: LabNetwork) -> _Running:
        return _Running(spec, fabric.holders, self._groups(), fabric.order.host_access, self._began_in)

    def _processes(
        self,
        load: LoadRequest,
        fabric: LabNetwork,
        started: Callable[[], None],
        wanted: Callable[[], None],
    ) -> Observation:
        """Run the processes; `started` is called when the last one has started.

        A server that never listens is one that failed.
        """
        groups = self._groups()
        count: Callable[[], Snapshot] = lambda: fabric.snapshot(fabric.switch_pids)  # noqa: E731 - used thrice
        running: list[_Running] = []
        gate = _Gate(self._folder / load.gate if load.gate else None)
        begun = time.monotonic()
        try:
            for spec in load.processes:
                if spec.server_port is not None:
                    running.append(self._begin(spec, fabric))
            _wait_for_servers(list(running))
            # Before the first client: nothing that it sends may be missing, however busy the machine is then.
            before = count()
            gate.wait("start", begun + load.limit)
            first = time.monotonic()
            clients = [self._begin(spec, fabric) for spec in load.processes if spec.server_port is None]
            running += clients
            # Where there is no client anywhere, servers end by themselves.
            awaited = clients if clients or load.clients_elsewhere else list(running)
            # What happens to both ends of a link that is cut is to happen at once.
            gate.wait("started", begun + load.limit, needed=bool(load.timeline))
            zero = time.monotonic()
            started()
            window = _common(load.window, zero - first)
            next_check, after, done = zero, None, None
            deadlock: tuple[int, ...] = ()
            while sum(process.is_running() for process in running) or not gate.reach("end"):  # all of them are asked
                now = time.monotonic()
                if now > next_check:
                    wanted()
                    _check_alive(fabric)
                    next_check = now + _ALIVE_EVERY
                    deadlock = fabric.deadlock()
                    if deadlock:
                        break
                if window and now - zero >= window[0] and before.time < zero + window[0]:
                    before = count()
                if window and after is None and now - zero >= window[1]:
                    after = count()
                if done is None and not any(one.is_running() for one in awaited) and gate.reach("clients"):
                    done = now
                # A server whose client failed would wait for another one.
                if now - begun > load.limit or (done is not None and now - done > _SERVER_GRACE):
                    break
                time.sleep(_POLL)
            _check_alive(fabric)
            after = after or count()
            if groups:
                # The kernel counts programs that have used up their share as waiting for a processor.
                before, after = replace(before, pressure=None), replace(after, pressure=None)
            timed_out = tuple(process.id for process in running if process.popen.poll() is None)
        finally:
            for process in running:
                process.end()
        outputs = {process.id: process.output() for process in running}
        seconds = time.monotonic() - begun
        return Observation(outputs, before, after, timed_out, zero, window, seconds, deadlock=deadlock)


def _check_alive(fabric: LabNetwork) -> None:
    """Raise LabError if switches or hosts have died."""
    fabric.check_switches()
    fabric.check_hosts()


def _common(window: Sequence[float] | None, spread: float) -> tuple[float, float] | None:
    """The part of a window that clients have in common whose starts took `spread` s, seen from the last start."""
    return (window[0], max(window[1] - spread, window[0] + _MIN_WINDOW)) if window else None


def _wait_for_servers(servers: list[_Running]) -> None:
    """Return when every server listens, has ended or is too late."""
    until = time.monotonic() + _SERVER_LIMIT
    for server in servers:
        while not server.listens() and server.popen.poll() is None and time.monotonic() < until:
            time.sleep(_POLL / 4)
