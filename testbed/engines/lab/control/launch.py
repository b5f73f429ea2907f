"""Start a lab's namespaces and end them: everything a lab has lives and dies with its process 1."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testbed.base import machine_code
from testbed.base.errors import CapabilityError, LabError
from testbed.base.python_isolation import FOLDER, clean_environment, make_module_command
from testbed.base.resources import BUILDS, PACKAGES, find_build_folder
from testbed.engines.lab.hosts.cgroup import remove_stale
from testbed.engines.local_machine import user_namespace

_START_LIMIT = 60.0  # translated by QEMU on a busy machine, it takes some 10
_END_LIMIT = 120.0  # its processes may wait for the kernel's one lock on networks, which other labs want, too
_SOCKET_INSIDE = "run/lab/agent.sock"
_CLEARED = 10.0  # seconds that an interrupted program waits for its labs to be gone
_AGENT = "testbed.engines.lab.control.agent"

SYSTEM_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"  # some are not on the path of ordinary users
NOT_YOURS = "the lab is another user's; run the command as that user, with sudo where it is root"

_started: list[subprocess.Popen[bytes]] = []  # by this program; each waits for a process 1


class Namespaces:
    """A running lab's process 1, seen from outside.

    Attributes:
        init: its pid in the namespace of the caller.
    """

    def __init__(self, init: int, starter: subprocess.Popen[bytes] | None = None, leash: int | None = None) -> None:
        self.init = init
        self._starter = starter  # our child, which waits for process 1
        self._leash = leash  # a pipe to process 1, which ends when it is closed without a word

    @property
    def socket(self) -> Path:
        """Path to the agent's socket, through the lab's own mount namespace."""
        return Path(f"/proc/{self.init}/root") / _SOCKET_INSIDE

    @property
    def proc(self) -> Path:
        """Where its processes have the numbers that they have inside."""
        return Path(f"/proc/{self.init}/root/proc")

    def is_alive(self) -> bool:
        """Whether process 1 runs, or anything else of the lab still does."""
        try:
            state = Path(f"/proc/{self.init}/stat").read_text().rsplit(")", 1)[1].split()[0]
            threads = len(list(Path(f"/proc/{self.init}/task").iterdir()))
        except OSError:
            return False
        # Its last thread ends the others' namespaces and files; the first one may be a zombie before.
        return state not in "ZX" or threads > 1

    def is_listening(self) -> bool:
        """Whether it has begun to listen, as far as this user may know."""
        try:
            return self.socket.exists()
        except PermissionError:
            return True

    def is_stopped(self) -> bool:
        """Whether process 1 is stopped by a signal or a debugger."""
        try:
            return Path(f"/proc/{self.init}/stat").read_text().rsplit(")", 1)[1].split()[0] in "Tt"
        except OSError:
            return False

    def detach(self) -> None:
        """Let the lab outlive this program, where it was started to be kept: from now on somebody else can find it."""
        if self._leash is not None:
            os.write(self._leash, b"k")
            os.close(self._leash)
            self._leash = None

    def end(self) -> None:
        """Kill process 1, and with it all that is in the lab; returns when it and its groups are gone.

        Raises:
            CapabilityError: it is another user's.
            LabError: it does not end.
        """
        try:
            os.kill(self.init, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise CapabilityError(NOT_YOURS) from error
        until = time.monotonic() + _END_LIMIT
        while self.is_alive():
            if time.monotonic() > until:
                raise LabError(f"process {self.init} of the lab did not end in {_END_LIMIT:g} s")
            time.sleep(0.002)
        if self._starter is not None:
            self._starter.wait()
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None
        remove_stale()


def read_start_time(pid: int) -> int:
    """Start time of a process in clock ticks, so that a recycled number is not taken for it; -1 where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return -1
    return -1 if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab as the kernel knows it: by the command line of its process 1, from that one's first moment on."""

    init: int  # pid of process 1
    scenario: str  # name of its scenario
    owner: int  # pid of the program that started it
    owner_born: int  # that program's start time

    @property
    def namespaces(self) -> Namespaces:
        """The lab's namespaces."""
        return Namespaces(self.init)

    @property
    def sentence(self) -> str:
        """What it is, where nobody has it."""
        return f"{self.scenario or 'a lab'}: left behind by process {self.owner}, which is gone; process {self.init}"

    @property
    def has_owner(self) -> bool:
        """Whether the program that started it still runs."""
        return read_start_time(self.owner) == self.owner_born


def labs() -> Iterator[Lab]:
    """All labs of this user that run on this machine, also those that are in no record."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            if _AGENT not in words or entry.stat().st_uid != os.geteuid():
                continue
            (entry / "ns/user").stat()  # refused where users look the same that are not
            numbers = next(line for line in (entry / "status").read_text().splitlines() if line.startswith("NSpid:"))
            # Process 1 of a namespace below this one; before it is the agent it is still called unshare.
            if len(numbers.split()) != 3 or numbers.split()[-1] != "1":
                continue
            scenario, owner, began = words[words.index(_AGENT) + 1 :][:3]
            yield Lab(int(entry.name), scenario, int(owner), int(began))
        except (OSError, ValueError, StopIteration):
            continue  # it has ended meanwhile, or is something else


def start_namespaces(*, keep: bool, name: str = "", meanwhile: Callable[[], object] = lambda: None) -> Namespaces:
    """Start a lab's process 1.

    It ends with this process, even on SIGKILL: by the kernel, or with `keep` by itself, until `let_go`. `name`, of the
    scenario, is in its command line. `meanwhile` is called while it comes up; what it raises ends process 1.

    Raises:
        CapabilityError: namespaces cannot be made.
        LabError: the agent does not come up.
    """
    user_namespace.require()
    remove_stale()
    command = [] if keep else ["setpriv", "--pdeathsig", "KILL"]
    far, near = os.pipe() if keep else (None, None)
    words = (name, str(os.getpid()), str(read_start_time(os.getpid())), str(Path.cwd()), str(far if keep else "-"))
    command += [
        "unshare", *user_namespace.unshare_options(), "--pid", "--net", "--mount", "--uts", "--ipc", "--fork",
        "--kill-child", "--mount-proc",
        *make_module_command(_AGENT, *words),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=_environment(),
                pass_fds=() if far is None else (far,), cwd=FOLDER,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise CapabilityError(f"{command[0]} is not installed (package util-linux); without it no lab") from error
        finally:
            if far is not None:
                os.close(far)
        _started.append(process)
        try:
            meanwhile()
            return Namespaces(_wait_for_agent(process, log), process, near)
        except BaseException:
            process.kill()
            process.wait()
            if near is not None:
                os.close(near)
            raise


def end_started() -> None:
    """End all labs that this program has started, those that were to outlive it, too: it is interrupted."""
    running = [process for process in _started if process.poll() is None]
    labs = [Namespaces(init) for process in running if (init := _child_of(process.pid)) is not None]
    for process in running:
        process.kill()  # and with it process 1
    until = time.monotonic() + _CLEARED
    while any(lab.is_alive() for lab in labs) and time.monotonic() < until:
        time.sleep(0.002)
    if running:
        remove_stale()


def _wait_for_agent(process: subprocess.Popen[bytes], log: IO[bytes]) -> int:
    until = time.monotonic() + _START_LIMIT
    while True:
        init = _child_of(process.pid)
        if init is not None and Namespaces(init).socket.exists():
            return init
        if process.poll() is not None or time.monotonic() > until:
            raise LabError(f"the lab's agent did not come up: {_tail(log)}")
        time.sleep(0.005)


def _environment() -> dict[str, str]:
    """The caller's environment, without what changes Python, and with system folders on the path."""
    path = os.environ.get("PATH", "")
    # Mininet compares versions by distutils. While Python has its own, setuptools shall not load itself in its place,
    # which takes longer than all else that the agent imports.
    own = {"SETUPTOOLS_USE_DISTUTILS": "stdlib"} if sys.version_info < (3, 12) else {}
    if not user_namespace.is_root():
        own[BUILDS] = str(find_build_folder("mpi_jobs").parent)
        if machine_code.can_be_judged_inside(PACKAGES / "testbed"):
            own[machine_code.LOOKED_AT] = "1"
    return {
        **clean_environment(), **own,
        "PATH": f"{path}:{SYSTEM_FOLDERS}",
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
