"""The session of a program in a lab: its leader has entered the lab, starts the program there, and waits for it.

The leader is no program of a host, so that it may keep the caller's terminal at hand, to put it back when the relay
(`pty_relay`) was killed. The program gets its own terminal, or what is no terminal.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import CapabilityError
from testbed.base.resources import setup
from testbed.engines.lab.hosts import mounts
from testbed.engines.lab.hosts.inherited_files import Given
from testbed.engines.lab.hosts.seccomp import forbid
from testbed.engines.local_machine import user_namespace

# What the leader and the relay tell each other: one byte, and a number or a sentence.
ENDED, STOPPED, FAILED = b"e", b"s", b"f"  # to the relay
GO_ON, DELIVER, END = b"c", b"k", b"x"  # to the leader
LONGEST = 4096
GRACE = 2.0  # s that a program has to end by itself


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is to run in a lab."""

    init: int  # pid of the lab's process 1
    command: Sequence[str]  # with what puts it into a host
    environment: Mapping[str, str]
    confined: bool  # whether system calls are refused to it
    terminals: str  # path of the multiplexer that makes a terminal which has a name where the program runs


@dataclass(frozen=True, slots=True)
class Ends:
    """What the leader is given.

    Attributes:
        control: socket to the relay.
        terminal: descriptor of the program's terminal; None where it gets none.
        replaced: which of 0, 1 and 2 are to be that terminal.
        kept: further descriptors that the caller has given, none of which is a terminal.
        restore: puts the caller's terminal back.
    """

    control: socket.socket
    terminal: int | None
    replaced: frozenset[int]
    kept: tuple[int, ...]
    restore: Callable[[], None]


def run_leader(program: Program, ends: Ends) -> None:
    """Become the leader of a session, run the program in it, and return when both it and the relay know of its end."""
    leader = _Leader(ends)
    try:
        leader.start(program)
    except (OSError, CapabilityError) as error:
        said = str(error) if isinstance(error, CapabilityError) else _why(error)
        ends.control.send(FAILED + said.encode()[: LONGEST - 1])
        return
    leader.wait()


def _why(error: OSError) -> str:
    missing = error.filename if isinstance(error, FileNotFoundError) else None
    if missing and not str(missing).startswith("/proc/"):
        return f"{missing} is not installed; {setup()}"
    if isinstance(error, (FileNotFoundError, ProcessLookupError)):
        return "the lab has ended"
    return f"the lab cannot be entered: {error.strerror or error}"


class _Leader:
    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._pid = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._given = Given(())
        self._deadline: float | None = None  # when what has not ended is killed, and then given up
        self._killed = False
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def start(self, program: Program) -> None:
        """Start the program.

        Raises:
            OSError: the lab is gone, or what puts the program there is not installed.
            CapabilityError: system calls cannot be refused to it here, or it cannot be given what the caller has open.
        """
        terminal = self._ends.terminal
        os.setsid()
        if terminal is not None:
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        hang_up = signal.getsignal(signal.SIGHUP)
        signal.signal(signal.SIGCHLD, _handle_signal)
        signal.signal(signal.SIGHUP, _handle_signal)  # when the terminal goes
        # A leader that is not in the foreground of its terminal decides for all that who is.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        user_namespace.enter(program.init)
        if program.confined:
            own = [number for number in range(3) if number not in self._ends.replaced]
            self._given = Given((*own, *self._ends.kept))
            forbid()
        _enter(program.init)

        def begin() -> None:
            os.setpgid(0, 0)  # a group that is no orphan, so that Ctrl-Z stops it
            if terminal is not None:
                os.tcsetpgrp(terminal, os.getpid())
            if hang_up == signal.SIG_IGN:  # as by nohup
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

        given = [terminal if number in self._ends.replaced else number for number in range(3)]
        # It is kept: one that is dropped takes the status of what has ended by then, and nobody would hear of it.
        self._process = subprocess.Popen(
            program.command, env=dict(program.environment), stdin=given[0], stdout=given[1], stderr=given[2],
            pass_fds=self._ends.kept,
            preexec_fn=begin,  # noqa: PLW1509 - the leader is a process of one thread
        )  # fmt: skip
        self._pid = self._process.pid
        for number in (*range(3), *self._ends.kept):
            os.close(number)  # whoever reads what the program writes shall see its end

    def wait(self) -> None:
        """Carry out what the relay says, and tell it what becomes of the program."""
        control, alone = self._ends.control, False
        while True:
            limit = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            ready, _, _ = select.select([self._wake, *(() if alone else (control,))], [], [], limit)
            if self._wake in ready:
                os.read(self._wake, 4096)
            while (status := self._status()) is not None:
                if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                    self._given.read()
                told = (STOPPED if os.WIFSTOPPED(status) else ENDED) + str(status).encode()
                with suppress(OSError):
                    control.send(told)
                if told[:1] == ENDED:
                    self._let_others_be()
                    return
            if control in ready:
                said = control.recv(LONGEST)
                if not said:
                    alone = True
                    self._ends.restore()
                    self._end(signal.SIGTERM)
                else:
                    self._carry_out(said[:1], int(said[1:] or b"0"))
            if self._deadline is not None and time.monotonic() >= self._deadline:
                if self._killed:
                    return  # it waits for the kernel
                self._signal(signal.SIGKILL)
                self._killed, self._deadline = True, time.monotonic() + GRACE

    def _status(self) -> int | None:
        """What has become of the program since this was asked last; None where nothing has."""
        try:
            found, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return None
        return status if found else None

    def _carry_out(self, word: bytes, number: int) -> None:
        if word == GO_ON:
            self._signal(signal.SIGCONT)
        elif word == DELIVER:
            self._signal(number)
        elif word == END:
            self._end(number)

    def _end(self, number: int) -> None:
        """Tell the program to end, and give it time for it."""
        self._signal(number)
        if self._ends.terminal is not None:
            self._signal(signal.SIGHUP)
        self._signal(signal.SIGCONT)
        self._deadline = time.monotonic() + GRACE

    def _signal(self, number: int) -> None:
        """Send a signal to what is in the foreground, and where that is another to the program's own group, too."""
        front = self._pid
        if self._ends.terminal is not None:
            with suppress(OSError):
                front = os.tcgetpgrp(self._ends.terminal) or front
        own = () if number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP) else (self._pid,)
        for group in {front, *own} - {os.getpgrp()}:
            with suppress(OSError):
                os.killpg(group, number)

    def _let_others_be(self) -> None:
        """Take the foreground from what the program has left running, which would be hung up on with this process."""
        if self._ends.terminal is not None:
            with suppress(OSError):
                os.tcsetpgrp(self._ends.terminal, os.getpgrp())


def _handle_signal(number: int, frame: object) -> None:
    """Do nothing, but as a handler: the descriptor of wake-ups says that it came."""
    del number, frame


def _enter(init: int) -> None:
    """Move to the namespaces of a lab; of processes, what is started from now on is there.

    Raises:
        OSError: the lab is gone, or this is not allowed.
    """
    kinds = {
        "ipc": mounts.NEW_IPC, "uts": mounts.NEW_NAMES, "net": mounts.NEW_NETWORK, "pid": mounts.NEW_PROCESSES,
        "mnt": mounts.NEW_MOUNTS,
    }  # fmt: skip
    folder = Path(f"/proc/{init}/ns")
    found = {kind: os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC) for name, kind in kinds.items()}
    for kind, descriptor in found.items():
        mounts.enter(descriptor, kind)
        os.close(descriptor)
