"""The terminal of whoever calls: while a program of a lab has its keyboard, keys are not processed here."""

from __future__ import annotations

import fcntl
import os
import signal
import termios
from contextlib import suppress
from typing import Any

_IN, _OUT, _LOCAL, _LETTERS = 0, 1, 3, 6  # of what tcgetattr() returns
_WINDOW = bytes(8)  # struct winsize


class CallerTerminal:
    """The caller's terminal.

    Args:
        numbers: which of 0, 1 and 2 are a terminal.

    Attributes:
        saved: its settings, as they are put back.
        keyboard: whether what is typed is the program's: its standard input was this terminal.
    """

    def __init__(self, numbers: frozenset[int]) -> None:
        number = next(one for one in (1, 2, 0) if one in numbers)
        self.keyboard = 0 in numbers
        try:  # so that no read or write waits for ever, and the caller's own descriptor stays as it is
            self.fd = os.open(f"/proc/self/fd/{number}", os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            self.fd = os.dup(number)
        self.saved: list[Any] = termios.tcgetattr(self.fd)
        self._taken = False
        self._bare = self._without_processing(keep_output=1 not in numbers)

    def _without_processing(self, *, keep_output: bool) -> list[Any]:
        """Settings by which each key reaches the program, whose own terminal does all processing.

        `keep_output`: others of a pipeline print here, too.
        """
        bare: list[Any] = [list(one) if isinstance(one, list) else one for one in self.saved]
        bare[_IN] &= ~(
            termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP | termios.INLCR | termios.IGNCR
            | termios.ICRNL | termios.IXON
        )  # fmt: skip
        bare[_LOCAL] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
        if not keep_output:
            bare[_OUT] &= ~termios.OPOST
        bare[_LETTERS][termios.VMIN], bare[_LETTERS][termios.VTIME] = 1, 0
        return bare

    @property
    def is_taken(self) -> bool:
        """Whether it is the program's keyboard now."""
        return self._taken

    def take(self) -> None:
        """Make it the program's keyboard, where it was, and where this is in the foreground."""
        if not self.keyboard or not self._in_front():
            self._taken = False
            return
        with suppress(OSError, termios.error):
            if not self._taken:
                self.saved = termios.tcgetattr(self.fd)
            termios.tcsetattr(self.fd, termios.TCSANOW, self._bare)
            self._taken = True

    def _in_front(self) -> bool:
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return True  # it is not the one that decides who is in front

    def put_back(self) -> None:
        """Leave it as it was found."""
        if not self._taken:
            return
        self._taken = False
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        with suppress(OSError, termios.error):
            termios.tcsetattr(self.fd, termios.TCSANOW, self.saved)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def put_back_for_relay(self) -> None:
        """As put_back(), by the leader, where the relay was killed and nobody has set it otherwise since."""
        with suppress(OSError, termios.error):
            now = termios.tcgetattr(self.fd)
            if all(now[which] == self._bare[which] for which in (_IN, _OUT, _LOCAL)):
                termios.tcsetattr(self.fd, termios.TCSANOW, self.saved)

    def copy_size(self, target: int) -> None:
        """Give another terminal the size of this one."""
        with suppress(OSError):
            fcntl.ioctl(target, termios.TIOCSWINSZ, fcntl.ioctl(self.fd, termios.TIOCGWINSZ, _WINDOW))
