"""Run a program of a lab on a terminal of its own, and relay between it and the caller's.

A program that has the caller's terminal can type into it, and so into whatever shell the caller goes back to. So of the
descriptors 0, 1 and 2 those that are terminals become a new pseudo-terminal, whose session is the program's
(`pty_session`); pipes and files are passed as they are. What the program prints goes to the terminal unchanged.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from testbed.base.errors import LabError
from testbed.engines.lab.control.caller_terminal import CallerTerminal
from testbed.engines.lab.control.pty_session import (
    DELIVER,
    END,
    ENDED,
    FAILED,
    GO_ON,
    GRACE,
    LONGEST,
    STOPPED,
    Ends,
    Program,
    run_leader,
)

_PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2)
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_OWN = (signal.SIGWINCH, signal.SIGCONT)
_CHUNK = 1 << 16
_BUFFERED = 1 << 20  # more than a terminal holds that nobody reads
_AHEAD = 4096  # bytes of the keyboard that wait for the program
_UNLOCK, _OTHER_END = 0x40045431, 0x5441  # TIOCSPTLCK, TIOCGPTPEER of ioctls.h


def run_program(program: Program) -> int:
    """Run a program in a lab; returns how it ended, as waitpid() has it.

    Raises:
        LabError: the lab is gone, or the program cannot be started there.
    """
    for number in range(3):
        _hold_open(number)
    terminals = frozenset(number for number in range(3) if os.isatty(number))
    kept = tuple(number for number in _list_inherited() if not os.isatty(number))
    terminal = CallerTerminal(terminals) if terminals else None
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    master, slave = _new_terminal(program.terminals, terminal) if terminal else (None, None)
    leader = os.fork()
    if leader == 0:
        try:
            near.close()
            if master is not None:
                os.close(master)
            restore = terminal.put_back_for_relay if terminal else _restore_nothing
            run_leader(program, Ends(far, slave, terminals, kept, restore))
        finally:
            os._exit(0)
    far.close()
    if slave is not None:
        os.close(slave)
    relay = _Relay(near, terminal, master)
    try:
        return relay.run()
    finally:
        if terminal:
            terminal.put_back()
        relay.close()
        os.waitpid(leader, 0)


def _restore_nothing() -> None:
    """There is no terminal to put back."""


def _hold_open(number: int) -> None:
    """Let what opens next not take the place of a standard descriptor that is closed."""
    try:
        os.fstat(number)
    except OSError:
        assert os.open(os.devnull, os.O_RDWR) == number
        os.set_inheritable(number, True)


def _list_inherited() -> list[int]:
    """Descriptors beyond the standard ones that the caller has given, such as those of `<(command)` in a shell."""
    found = []
    for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
        with suppress(OSError):  # that of the folder itself
            if number > 2 and os.get_inheritable(number):
                found.append(number)
    return found


def _new_terminal(multiplexer: str, like: CallerTerminal) -> tuple[int, int]:
    """A pseudo-terminal with the settings and the size of the caller's.

    Raises:
        LabError: there is no such multiplexer, or it has no more terminals.
    """
    try:
        master = os.open(multiplexer, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        fcntl.ioctl(master, _UNLOCK, struct.pack("i", 0))
        slave = fcntl.ioctl(master, _OTHER_END, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise LabError(f"there is no terminal for a program in the lab: {error.strerror}") from error
    termios.tcsetattr(slave, termios.TCSANOW, like.saved)
    like.copy_size(master)
    os.set_blocking(master, False)
    return master, slave


class _Relay:
    """Between the caller's terminal and the program's; `control` leads to the session's leader."""

    def __init__(self, control: socket.socket, terminal: CallerTerminal | None, master: int | None) -> None:
        self._control, self._terminal, self._master = control, terminal, master
        self._to_program, self._to_terminal = bytearray(), bytearray()
        self._ended: int | None = None
        self._ending: int | None = None  # signal that told this process to end
        self._give_up: float | None = None
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*_PASSED_ON, *_ENDING, *_OWN):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _handle_signal)

    def run(self) -> int:
        """Relay until the program has ended; returns how."""
        if self._terminal:
            self._terminal.take()
        while self._ended is None:
            self._relay_once()
            if self._give_up is not None and time.monotonic() > self._give_up:
                break
        self._drain()
        return self._ending if self._ending is not None else self._ended or 0

    def close(self) -> None:
        """Leave the leader alone: what it has not ended yet it ends now."""
        signal.set_wakeup_fd(-1)
        self._control.close()
        if self._master is not None:
            os.close(self._master)

    def _relay_once(self) -> None:
        """Wait until something can be done, and do it."""
        screen, master = self._terminal, self._master
        reading: list[Any] = [self._control, self._wake]
        writing: list[int] = []
        if master is not None and len(self._to_terminal) < _CHUNK:
            reading.append(master)
        if screen and screen.is_taken and master is not None and len(self._to_program) < _AHEAD:
            reading.append(screen.fd)
        if screen and self._to_terminal:
            writing.append(screen.fd)
        if master is not None and self._to_program:
            writing.append(master)
        limit = None if self._give_up is None else max(0.0, self._give_up - time.monotonic())
        ready, free, _ = select.select(reading, writing, [], limit)
        if self._wake in ready:
            for number in os.read(self._wake, 4096):
                self._signal(number)
        if master in ready:
            self._read_program()
        if screen and screen.fd in ready and screen.is_taken:
            self._read_keyboard(screen)
        if screen and screen.fd in free and not _write(screen.fd, self._to_terminal) and self._ending is None:
            self._end(signal.SIGHUP)
        if master is not None and master in free:
            _write(master, self._to_program)
        if self._control in ready:
            self._read_leader()

    def _read_leader(self) -> None:
        """What the leader says.

        Raises:
            LabError: it could not start the program, or was killed.
        """
        said = self._control.recv(LONGEST)
        if said[:1] == FAILED:
            raise LabError(said[1:].decode(errors="replace"))
        if not said:
            raise LabError("the process that waits for the program was killed")
        if said[:1] == ENDED:
            self._ended = int(said[1:])
        elif said[:1] == STOPPED:
            self._stop()

    def _send_to_leader(self, word: bytes, number: int = 0) -> None:
        with suppress(OSError):  # it has just ended
            self._control.send(word + str(number).encode())

    def _signal(self, number: int) -> None:
        if number in _PASSED_ON:
            self._send_to_leader(DELIVER, number)
        elif number in _ENDING:
            self._end(number)
        elif self._terminal and self._master is not None:
            if number == signal.SIGCONT:
                self._terminal.take()
            self._terminal.copy_size(self._master)

    def _end(self, number: int) -> None:
        self._ending = number
        self._give_up = time.monotonic() + 2 * GRACE
        self._send_to_leader(END, number)

    def _stop(self) -> None:
        """Stop with the program, as a shell expects of its job, and go on with it."""
        self._drain()
        if self._terminal:
            self._terminal.put_back()
        if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.killpg(0, signal.SIGTSTP)  # also the others of a pipeline
            signal.signal(signal.SIGTSTP, _handle_signal)
        if self._terminal and self._master is not None:
            self._terminal.take()
            self._terminal.copy_size(self._master)
        self._send_to_leader(GO_ON)

    def _read_program(self) -> bool:
        """Take what the program has printed; whether there was something."""
        if self._master is None:
            return False
        try:
            found = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # nobody has the other end any more
            found = b""
        if not found:
            os.close(self._master)
            self._master = None
        self._to_terminal += found
        return bool(found)

    def _read_keyboard(self, screen: CallerTerminal) -> None:
        try:
            found = os.read(screen.fd, _AHEAD)
        except BlockingIOError:
            return
        except OSError:
            found = b""
        if found:
            self._to_program += found
        else:  # the terminal is gone
            screen.keyboard = False
            screen.put_back()
            self._end(signal.SIGHUP)

    def _drain(self) -> None:
        """Show what the program has printed until now, as long as the terminal takes it."""
        if self._terminal is None:
            return
        left = _BUFFERED  # what the program has left running may print for ever
        while left > 0 and (self._to_terminal or self._read_program()):
            left -= len(self._to_terminal)
            while self._to_terminal:
                if not select.select([], [self._terminal.fd], [], GRACE)[1]:
                    return
                _write(self._terminal.fd, self._to_terminal)


def _write(target: int, waiting: bytearray) -> bool:
    """Write of what waits what is taken at once; whether somebody still reads there."""
    try:
        del waiting[: os.write(target, waiting[:_CHUNK])]
    except BlockingIOError:
        pass
    except OSError:
        waiting.clear()
        return False
    return True


def _handle_signal(number: int, frame: object) -> None:
    """Do nothing, but as a handler: the descriptor of wake-ups says that it came."""
    del number, frame
