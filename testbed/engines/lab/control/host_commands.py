"""Commands in a host of a running lab, for programs that use the library."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from testbed.base.errors import WorkloadError
from testbed.base.messages import Access
from testbed.engines.lab.control.mininet_shell import build_lab_command
from testbed.engines.lab.hosts.inherited_files import give_nothing
from testbed.engines.lab.hosts.seccomp import start_with_seccomp

_NOT_FOUND = 127
_GRACE = 2.0  # s that a program has to end by itself


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended."""

    command: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    seconds: float  # laboratory time that it took


@dataclass(frozen=True, slots=True, eq=False)
class Started:
    """A command that runs; as a context manager it is ended with the block."""

    command: tuple[str, ...]
    process: subprocess.Popen[str]

    def stop(self) -> Completed:
        """End it, and what it has started; returns what it printed."""
        _end(self.process)
        stdout, stderr = self.process.communicate()
        return Completed(self.command, self.process.returncode, stdout, stderr, 0.0)

    def __enter__(self) -> Started:
        """Return self."""
        return self

    def __exit__(self, *error: object) -> None:
        """End it."""
        self.stop()


def run_inside(
    init: int, holder: int, group: str | None, command: Sequence[str], timeout: float, access: Access
) -> Completed:
    """Run a command in a host and wait for it.

    Args:
        init: pid of the lab's process 1.
        holder: of the host, as the lab counts processes.
        group: file by which it joins the host's share of the processors; None where there is none.
        command: program and arguments.
        timeout: laboratory s.
        access: what programs in hosts may do.

    Raises:
        WorkloadError: it took too long, or there is no such program.
    """
    began = time.monotonic()
    started = start_inside(init, holder, group, command, access)
    try:
        stdout, stderr = started.process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        printed = started.stop()
        said = (printed.stderr or printed.stdout).strip()[-300:]
        sentence = f"{' '.join(command[:3])} … did not end in {timeout:g} s" + (f"; it printed: {said}" if said else "")
        raise WorkloadError(sentence) from error
    except BaseException:
        started.stop()
        raise
    code = started.process.returncode
    if code == _NOT_FOUND and command[0] in stderr:
        raise WorkloadError(f"{command[0]} is not installed: {stderr.strip()[-300:]}")
    return Completed(tuple(command), code, stdout, stderr, time.monotonic() - began)


def start_inside(init: int, holder: int, group: str | None, command: Sequence[str], access: Access) -> Started:
    """Start a command in a host; see run_inside()."""
    entering, environment = build_lab_command(init, holder, group, command, access)

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            entering, env=environment, stdin=give_nothing(access), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
        )  # fmt: skip

    return Started(tuple(command), start_with_seccomp(access, start))


def _end(process: subprocess.Popen[str]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            return
