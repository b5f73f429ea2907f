"""The command line. Commands import what they need when they run, so that the program starts at once."""

from __future__ import annotations

import sys


def _end_labs() -> None:
    """End every lab that this program has started."""
    launch = sys.modules.get("testbed.emulate.launch")  # not loaded: there is none
    if launch is not None:
        launch.end_started()


def main() -> None:
    """Run the command line and end with its exit code."""
    if sys.argv[1:] == ["--version"]:  # most of the time of this would go into imports
        from testbed import __version__

        sys.stdout.write(f"testbed {__version__}\n")
        return
    from testbed.cli.interrupts import Interrupted, Interrupts, leave

    interrupts = Interrupts(_end_labs)
    try:
        _run()
    except Interrupted:
        _end_labs()
        leave()
    finally:
        interrupts.ignore()


def _run() -> None:
    import errno

    from testbed.cli import (  # noqa: F401 - they add their commands
        analyse_commands,
        audit_command,
        capture_command,
        check_command,
        compare_commands,
        doctor_commands,
        exec_command,
        exercise_commands,
        export_commands,
        lab_commands,
        link_command,
        list_command,
        paper_command,
        plan_commands,
        power_commands,
        segments_command,
        simulate_commands,
        storm_command,
        verify_command,
        vm_commands,
    )
    from testbed.cli.app import app, wants_json
    from testbed.cli.output import print_error
    from testbed.errors import StorageError, TestbedError

    as_json = wants_json(sys.argv[1:])
    try:
        app()
    except TestbedError as error:
        print_error(error, as_json=as_json)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        full = StorageError(f"{error.filename or 'a file'} cannot be written: {error.strerror}; make room and repeat")
        print_error(full, as_json=as_json)
        sys.exit(full.exit_code)
