"""Dask's workers as processes of this machine: started here, and gone with this program, however it ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from testbed.base.errors import CapabilityError
from testbed.base.python_isolation import clean_environment, make_module_command

_START_LIMIT = 120.0  # s; on a busy machine Dask takes several to load
_LOOK = 0.1  # sampling interval, s at the processes
_PAUSE = 1.0  # s before one that has ended is started anew
_TRIES = 3  # of those that never were there
_MOST_MEMORY = 0.95  # of a worker's share of the machine, beyond which it is killed
# Also killed when this program is, even by SIGKILL.
_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
_FOLDERS = "testbed-workers-"  # their names begin so
_PAGE = os.sysconf("SC_PAGE_SIZE")

_running: list[LocalWorkers] = []


class LocalWorkers:
    """Worker processes of a scheduler, one thread each. One that dies is started anew.

    They are in a session of their own, so that they do not hear Ctrl-C, and have a folder of their own for what is
    temporary. The kernel kills them with the thread that has started them, also where they are stopped.

    Attributes:
        folder: that folder, which is there until `remove`.

    Args:
        count: how many.
        certificate: texts of files in PEM's form: `ca-file`, `cert`, `key`.
        memory: bytes that each may have; 0 = any.
    """

    def __init__(self, count: int, certificate: Mapping[str, str], memory: int) -> None:
        _remove_stale()
        self.folder, self._held = _make_folder()
        _running.append(self)
        self._memory = memory
        self._options = []
        for name, text in certificate.items():
            file = self.folder / f"{name}.pem"
            file.write_text(text)
            self._options += [f"--tls-{name}", str(file)]
        self._command: list[str] = []
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * count
        self._ending = threading.Event()
        self._were_up, self._failed, self._problem = False, 0, ""
        self._keeper: threading.Thread | None = None

    def start(self, address: str) -> None:
        """Start them, and go on doing so where one ends; `address` is that of the scheduler."""
        self._command = [
            *_WITH_US,
            *make_module_command(
                "distributed.cli.dask_worker", address, *self._options, "--nthreads", "1", "--no-nanny",
                "--no-dashboard", "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0",
                "--memory-limit", str(self._memory), "--local-directory", str(self.folder),
                "--death-timeout", f"{_START_LIMIT:g}",
            ),
        ]  # fmt: skip
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def await_all(self, connected: Callable[[], int]) -> None:
        """Return when all are there; `connected` tells how many the scheduler knows.

        Raises:
            CapabilityError: they cannot be started, and why.
        """
        until = time.monotonic() + _START_LIMIT
        while connected() < len(self._processes):
            if self._problem or time.monotonic() > until:
                why = self._problem or f"they have not answered in {_START_LIMIT:g} s"
                raise CapabilityError(f"worker processes cannot be started: {why}")
            time.sleep(_LOOK / 2)
        self._were_up = True

    def end(self) -> None:
        """Kill them; returns when they are gone."""
        self._ending.set()
        if self._keeper is not None:
            self._keeper.join()
        for process in self._processes:
            if process is not None:
                process.kill()
                process.wait()

    def remove(self) -> None:
        """End them and remove their folder."""
        self.end()
        if self in _running:
            _running.remove(self)
            shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._held)

    def _keep(self) -> None:
        """Start them, and look after them until the end; when this thread ends the kernel ends them."""
        while not self._ending.is_set():
            for number, process in enumerate(self._processes):
                if process is not None and process.poll() is None:
                    if self._memory and _memory_of(process.pid) > _MOST_MEMORY * self._memory:
                        process.kill()  # before the machine has none left
                    continue
                if process is not None and self._gives_up(number):
                    return
                self._start(number)
            self._ending.wait(_LOOK)

    def _gives_up(self, number: int) -> bool:
        """Wait before one that has ended is started anew; whether it shall not be."""
        if not self._were_up:
            self._failed += 1
            if self._failed == _TRIES:
                lines = (self.folder / f"{number}.log").read_text(errors="replace").strip().splitlines()
                self._problem = lines[-1] if lines else "they printed nothing"
                return True
        return self._ending.wait(_PAUSE)

    def _start(self, number: int) -> None:
        # Pages of the worker would be there for all users of the machine.
        own = {"TMPDIR": str(self.folder), "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]"}
        environment = {**clean_environment(), **own}
        try:
            with (self.folder / f"{number}.log").open("wb") as log:
                self._processes[number] = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=environment,
                    start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            self._problem = f"{error.filename}: {error.strerror}"
            self._ending.set()


def end_workers() -> None:
    """End all that this program has started: it is interrupted."""
    for workers in list(_running):
        workers.remove()


def _make_folder() -> tuple[Path, int]:
    """A new folder for this user alone, and a descriptor that holds a lock on it until this program ends."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_FOLDERS))
        held = _hold(folder)
        if held is not None:
            return folder, held


def _hold(folder: Path) -> int | None:
    """A descriptor that holds the lock on a folder; None where somebody else has it, or the folder is gone."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _remove_stale() -> None:
    """Remove folders of programs that were killed: nobody holds them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.geteuid() and (held := _hold(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)


def _memory_of(pid: int) -> int:
    """Bytes of the machine's memory that a process has; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
