"""Run a command, and turn its failure into a sentence; run it, or make something, inside a host."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import select
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from testbed.base.errors import LabError, indent_lines
from testbed.base.resources import setup

# Switches and their controller come before hosts, as in hardware: programs that spin must not starve them. The
# controller, which elsewhere has a machine of its own, must not be starved by busy switches either.
FIRST = ("nice", "-n", "-15")
_SHOWN = 600
# A switch of Open vSwitch gives whoever connects one second to say hello. On a busy machine a client may not get a
# processor in it, and has asked nothing yet.
_UNHEARD = re.compile(r"failed to (open|connect to) socket \((Broken pipe|Connection reset by peer)\)")
_TRIES = 10
_AT_ONCE = 16


def run(command: Sequence[str], text: str | None = None, timeout: float = 120.0) -> str:
    """Run a command and return what it printed; again, some times, where a busy machine kept it from asking a switch.

    `text` is its standard input, `timeout` in s.

    Raises:
        LabError: it is missing, failed, or took too long.
    """
    name = " ".join(command[:3])
    try:
        for _ in range(_TRIES):
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout, check=False)
            if done.returncode == 0 or not _UNHEARD.search(done.stderr):
                break
    except FileNotFoundError as error:
        raise LabError(f"{command[0]} is not installed; {setup()}") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{name} … did not end in {timeout:g} s") from error
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip()[:_SHOWN] or "it printed no reason"
        how = how_it_ended(done.returncode) if done.returncode < 0 else f"failed with exit code {done.returncode}"
        raise LabError(indent_lines(f"{name} … {how}: {reason}"))
    return done.stdout


def run_each(jobs: Mapping[str, tuple[Sequence[str], str | None]]) -> dict[str, str]:
    """Run many commands, some at a time, and return what each printed."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        futures = {name: pool.submit(run, command, text) for name, (command, text) in jobs.items()}
        return {name: future.result() for name, future in futures.items()}


def first_line(process: subprocess.Popen[bytes], what: str, seconds: float) -> bytes:
    """Wait for a process to print its first line.

    Args:
        process: its standard output is a pipe.
        what: it is, for messages.
        seconds: it may take.

    Returns:
        the line; empty where it has ended without one.

    Raises:
        LabError: it has said nothing in time.
    """
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], seconds)[0]:
        raise LabError(f"{what} has not answered in {seconds:g} s")
    return process.stdout.readline()


def allow_files(count: int, what: str) -> None:
    """Let this program, and what it starts, have so many files open.

    Raises:
        LabError: they may not.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == resource.RLIM_INFINITY or now >= count:
        return
    try:
        above = most if most == resource.RLIM_INFINITY else max(most, count)
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, above))
    except (OSError, ValueError) as error:
        raise LabError(
            f"{what} takes {count} open files in one program, and {most} are allowed here; nothing was built; allow "
            f"more: ulimit -Hn {count}"
        ) from error


def allow_long_files() -> None:
    """Let this program, and what it starts, write files of any length: those of a lab are in memory and go with it.

    Raises:
        LabError: they may not.
    """
    now, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    if now == resource.RLIM_INFINITY:
        return
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError) as error:
        raise LabError(
            f"a lab writes files of any length, and {most:,} bytes are the most here; nothing was built; allow more: "
            "ulimit -Hf unlimited"
        ) from error


def how_it_ended(code: int | None) -> str:
    """What became of a process by its exit code, as Popen has it; empty where it runs."""
    if code is None:
        return ""
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"


def in_host(holder: int, command: Iterable[str], procs: str | None = None) -> list[str]:
    """Return the command that runs another one in a host's namespaces, in their topmost folder.

    `holder` is a process of the host. By the file `procs` the command joins the host's group, and so gets no more than
    its share of the processors; None for what the lab itself does to a host.
    """
    entering = ["nsenter", "--target", str(holder), "--net", "--mount", "--", *command]
    return build_join_command(procs, entering) if procs else entering


def build_join_command(procs: str, command: Iterable[str]) -> list[str]:
    """Return the command that joins a group of processes and becomes another one; it fails where it cannot join."""
    return ["sh", "-ec", 'echo $$ >"$0"; exec "$@"', procs, *command]


_T = TypeVar("_T")
_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


def in_network_of(pid: int, make: Callable[[], _T], proc: Path = Path("/proc")) -> _T:
    """Call a function in the network namespace of a process, in a thread of its own, and return its result.

    Args:
        pid: of the process.
        make: the function.
        proc: where processes of that number are shown; that of a lab shows the lab's.

    Raises:
        OSError: the process is gone.
    """

    def enter_network() -> _T:
        with (proc / str(pid) / "ns/net").open("rb") as namespace:
            if _libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        return make()

    # A thread that has moved cannot be used for anything else; the pool ends it.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter_network).result()
