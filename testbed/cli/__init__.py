"""The command line. Commands import what they need when they run, so that the program starts at once."""

from __future__ import annotations

import errno
import signal
import sys
from types import FrameType

from testbed.errors import EXIT_INTERRUPTED, StorageError, TestbedError


class _Interrupted(BaseException):
    """Ctrl-C, or a request to end; not an Exception, so that nothing on the way swallows it."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    # A second Ctrl-C must not stop the clearing up that the first one started.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    raise _Interrupted


def main() -> None:
    """Run the command line and end with its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        from testbed.cli import (  # noqa: F401 - they add their commands
            analyse_commands,
            compare_commands,
            doctor_commands,
            export_commands,
            lab_commands,
            plan_commands,
            power_commands,
            simulate_commands,
            storm_command,
            vm_commands,
        )
        from testbed.cli.app import app
        from testbed.cli.output import print_error

        as_json = any(
            word == "--format=json" or pair == ("--format", "json")
            for word, pair in zip(sys.argv[1:], zip(sys.argv[1:], [*sys.argv[2:], ""], strict=False), strict=False)
        )
        try:
            app()
        except TestbedError as error:
            print_error(error, as_json=as_json)
            sys.exit(error.exit_code)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            full = StorageError(
                f"{error.filename or 'a file'} cannot be written: {error.strerror}; make room and repeat"
            )
            print_error(full, as_json=as_json)
            sys.exit(full.exit_code)
    except _Interrupted:
        sys.stderr.write("interrupted; nothing is left running\n")
        sys.exit(EXIT_INTERRUPTED)
