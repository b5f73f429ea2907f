"""Start a lab's namespaces and end them: everything a lab has lives and dies with its process 1."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from testbed.emulate.cgroup import remove_stale
from testbed.errors import CapabilityError, LabError

_START_LIMIT = 60.0  # translated by QEMU on a busy machine, it takes some 10
_END_LIMIT = 120.0  # its processes may wait for the kernel's one lock on networks, which other labs want, too
_SOCKET_INSIDE = "run/lab/agent.sock"
_CLEARED = 10.0  # seconds that an interrupted program waits for its labs to be gone

_started: list[subprocess.Popen[bytes]] = []  # by this program; each waits for a process 1


class Namespaces:
    """A running lab's process 1, seen from outside.

    Attributes:
        init: its pid in the namespace of the caller.
    """

    def __init__(self, init: int, starter: subprocess.Popen[bytes] | None = None) -> None:
        self.init = init
        self._starter = starter  # our child, which waits for process 1

    @property
    def socket(self) -> Path:
        """Path to the agent's socket, through the lab's own mount namespace."""
        return Path(f"/proc/{self.init}/root") / _SOCKET_INSIDE

    @property
    def proc(self) -> Path:
        """Where its processes have the numbers that they have inside."""
        return Path(f"/proc/{self.init}/root/proc")

    def alive(self) -> bool:
        """Whether process 1 runs, or anything else of the lab still does."""
        try:
            state = Path(f"/proc/{self.init}/stat").read_text().rsplit(")", 1)[1].split()[0]
            threads = len(list(Path(f"/proc/{self.init}/task").iterdir()))
        except OSError:
            return False
        # Its last thread ends the others' namespaces and files; the first one may be a zombie before.
        return state not in "ZX" or threads > 1

    def end(self) -> None:
        """Kill process 1, and with it all that is in the lab; returns when it and its groups are gone."""
        with suppress(ProcessLookupError):
            os.kill(self.init, signal.SIGKILL)
        until = time.monotonic() + _END_LIMIT
        while self.alive():
            if time.monotonic() > until:
                raise LabError(f"process {self.init} of the lab did not end in {_END_LIMIT:g} s")
            time.sleep(0.002)
        if self._starter is not None:
            self._starter.wait()
        remove_stale()


def start_namespaces(*, keep: bool) -> Namespaces:
    """Start a lab's process 1.

    With `keep` it outlives this process; otherwise the kernel ends it with this process, even on SIGKILL.

    Raises:
        CapabilityError: not root, or namespaces cannot be made.
        LabError: the agent does not come up.
    """
    if os.geteuid() != 0:
        raise CapabilityError(
            "a lab needs root, because it makes network namespaces and switches; run the command with sudo"
        )
    remove_stale()
    command = [] if keep else ["setpriv", "--pdeathsig", "KILL"]
    command += [
        "unshare", "--pid", "--net", "--mount", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc",
        sys.executable, "-m", "testbed.emulate.agent",
    ]  # fmt: skip
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=_environment()
            )
        except FileNotFoundError as error:
            raise CapabilityError(f"{command[0]} is not installed (package util-linux); without it no lab") from error
        _started.append(process)
        try:
            return _wait_for_agent(process, log)
        except BaseException:
            process.kill()
            process.wait()
            raise


def end_started() -> None:
    """End all labs that this program has started, those that were to outlive it, too: it is interrupted."""
    running = [process for process in _started if process.poll() is None]
    labs = [Namespaces(init) for process in running if (init := _child_of(process.pid)) is not None]
    for process in running:
        process.kill()  # and with it process 1
    until = time.monotonic() + _CLEARED
    while any(lab.alive() for lab in labs) and time.monotonic() < until:
        time.sleep(0.002)
    if running:
        remove_stale()


def _wait_for_agent(process: subprocess.Popen[bytes], log: IO[bytes]) -> Namespaces:
    until = time.monotonic() + _START_LIMIT
    while True:
        init = _child_of(process.pid)
        if init is not None and Namespaces(init).socket.exists():
            return Namespaces(init, process)
        if process.poll() is not None or time.monotonic() > until:
            raise LabError(f"the lab's agent did not come up: {_tail(log)}")
        time.sleep(0.005)


def _environment() -> dict[str, str]:
    """The caller's environment with the package importable and system folders on the path."""
    package_root = str(Path(__file__).resolve().parents[2])
    path = os.environ.get("PATH", "")
    # Mininet compares versions by distutils. While Python has its own, setuptools shall not load itself in its place,
    # which takes longer than all else that the agent imports.
    own = {"SETUPTOOLS_USE_DISTUTILS": "stdlib"} if sys.version_info < (3, 12) else {}
    return {
        **os.environ, **own, "PYTHONPATH": package_root,
        "PATH": f"{path}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin",
    }  # fmt: skip


def _child_of(parent: int) -> int | None:
    """Pid of the only child of a process, or None while it has none."""
    try:
        words = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        return int(words[0]) if words else None
    except OSError:
        pass
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                return int(entry.name)
    return None


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"
