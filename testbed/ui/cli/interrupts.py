"""Ctrl-C and requests to end: an exception where Python code can take one, by force where it cannot.

Python runs a signal's handler in the main thread, between two of its own instructions. Two places are bad for an
exception. Inside numba, which runs Python code to compile and to hand results over and does not look whether it failed,
it ends in a segmentation fault or in a function half made. And while compiled code runs there is no instruction, for
minutes. So the handler raises only where no caller is such code. A thread beside, which the signal itself wakes, asks
the handler again until it has raised. Where that takes too long, or the exception's way out does, or the user asks
twice, the thread ends the labs and the program.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from testbed.base.errors import EXIT_INTERRUPTED

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Asks the handler once more; unlike an exception set from outside it also ends a wait for a file.
_AGAIN = signal.SIGUSR1
_PAUSE = 0.01  # seconds until it is asked once more
_UNHEARD = 1.0  # seconds until a handler that has found no place counts as one that will find none
_CLEARING_UP = 30.0  # seconds that the exception has for its way out; a lab on a busy machine takes some
_SECOND = 0.5  # seconds after which a second signal is a second wish, not the same one sent to parent and child
# What must not be left half-way: see above; a validator that pydantic builds, which makes an error of its own of it; a
# module half loaded; a child process that is not registered yet.
_NOT_IN = ("numba", "llvmlite", "pydantic", "importlib", "_frozen_importlib", "_frozen_importlib_external")
_NOT_WITHIN = ("__del__", "_execute_child")


class Interrupted(BaseException):
    """Ctrl-C, or a request to end; not an Exception, so that nothing on the way swallows it."""


def may_raise(frame: FrameType | None) -> bool:
    """Whether an exception in this frame reaches its callers unharmed."""
    if frame is None:
        return False
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in _NOT_IN or frame.f_code.co_name in _NOT_WITHIN:
            return False
        frame = frame.f_back
    return True


class Interrupts:
    """What SIGINT, SIGTERM and SIGHUP do in this program from now on; to be made in the main thread.

    `clear` ends what would outlive this program; another thread calls it, in place of the exception.
    """

    def __init__(self, clear: Callable[[], None]) -> None:
        self._clear = clear
        self._asked = self._raised = False
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        threading.Thread(target=self._watch, args=(reading, threading.get_ident()), daemon=True).start()
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        sys.unraisablehook = self._unraisable
        signal.signal(_AGAIN, self._handle)
        for number in SIGNALS:
            # Under nohup a hang-up stays ignored.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = self._asked or number != _AGAIN
        if self._asked and not self._raised and may_raise(frame):
            self._raised = True
            raise Interrupted

    def _unraisable(self, what: sys.UnraisableHookArgs) -> None:
        """Some callers, such as the garbage collector, cannot pass an exception on: then it is raised elsewhere."""
        if issubclass(what.exc_type, Interrupted):
            self._raised = False
        else:
            sys.__unraisablehook__(what)

    def _watch(self, reading: int, main: int) -> None:
        first: float | None = None
        while True:
            if select.select([reading], [], [], None if first is None else _PAUSE)[0]:
                asked = any(number in SIGNALS for number in os.read(reading, 256))
                if asked and first is None:
                    first = time.monotonic()
                elif asked and first is not None and time.monotonic() - first > _SECOND:
                    self.force()
            if first is None:
                continue
            if time.monotonic() - first > (_CLEARING_UP if self._raised else _UNHEARD):
                self.force()
            if not self._raised:
                signal.pthread_kill(main, _AGAIN)

    def force(self) -> None:
        """Clear up and end the program, whatever its main thread is doing."""
        try:
            self._clear()
            if os.isatty(2):
                os.write(2, b"\r\x1b[2K\x1b[?25h")  # a living line hides the cursor
        finally:
            leave()

    @staticmethod
    def ignore() -> None:
        """Let no signal disturb the last steps of a program that has done its work."""
        for number in (*SIGNALS, _AGAIN):
            signal.signal(number, signal.SIG_IGN)


def leave() -> None:
    """Say that the program was interrupted and end it at once, with all its threads and whatever they wait for."""
    try:
        os.write(2, b"interrupted; nothing is left running\n")
    finally:
        os._exit(EXIT_INTERRUPTED)
