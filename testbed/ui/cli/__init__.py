"""The command line. Commands import what they need when they run, so that the program starts at once."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from testbed.base.python_isolation import isolate

if TYPE_CHECKING:
    from testbed.base.errors import TestbedError

# What a file's place or permissions refuse.
_REFUSALS = {
    errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EROFS, errno.EIO,
    errno.EFBIG, errno.ETXTBSY,
}  # fmt: skip

# Bytes of address space that take it to its first line; libraries for matrices take some for each processor.
_MEMORY, _MEMORY_A_PROCESSOR = 192 << 20, 48 << 20


def _end_started() -> None:
    """End every lab and every worker that this program has started."""
    launch = sys.modules.get("testbed.engines.lab.control.launch")  # not loaded: there is none
    if launch is not None:
        launch.end_started()
    local_workers = sys.modules.get("testbed.engines.local_machine.local_workers")  # likewise
    if local_workers is not None:
        local_workers.end_workers()


def main() -> None:
    """Run the command line and end with its exit code."""
    _end_quietly()
    isolate()
    if sys.argv[1:] == ["--version"]:  # most of the time of this would go into imports
        from testbed.base.version import __version__

        sys.stdout.write(f"testbed {__version__}\n")
        return
    _require_memory()
    from testbed.ui.cli.interrupts import Interrupted, Interrupts, leave

    interrupts = Interrupts(_end_started)
    try:
        _run()
    except Interrupted:
        _end_started()
        leave()
    finally:
        interrupts.ignore()


def _end_quietly() -> None:
    """Let Ctrl-C end the program without Python's traceback until `Interrupts` hears it; nothing is begun by then."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _require_memory() -> None:
    """End with a sentence where too little memory is allowed: libraries wait for it for ever while they are loaded."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    least = _MEMORY + _MEMORY_A_PROCESSOR * (os.cpu_count() or 1)
    if allowed != resource.RLIM_INFINITY and allowed < least:
        text = f"{allowed >> 20} MiB of memory are allowed here, and {least >> 20} are the least; ulimit -v unlimited"
        sys.stderr.write(f"{text}\n")
        sys.exit(2)


# Module → the commands that it adds.
MODULES: dict[str, tuple[str, ...]] = {
    "analyse_commands": ("analyse", "explain"),
    "audit_command": ("audit",),
    "capture_command": ("capture",),
    "check_command": ("check", "import"),
    "compare_commands": ("compare", "sweep"),
    "controller_command": ("controller",),
    "doctor_commands": ("doctor",),
    "exec_command": ("exec",),
    "exercise_commands": ("exercise",),
    "export_commands": ("export",),
    "flows_command": ("flows",),
    "init_command": ("init",),
    "lab_commands": ("run", "up", "status", "shell", "down"),
    "link_command": ("link",),
    "list_command": ("list",),
    "live_command": ("live",),
    "load_command": ("load",),
    "paper_command": ("paper",),
    "plan_commands": ("plan", "schema", "report"),
    "power_command": ("power",),
    "regulate_command": ("regulate",),
    "segments_command": ("segments",),
    "simulate_commands": ("simulate",),
    "storm_command": ("storm",),
    "switch_command": ("switch",),
    "verify_command": ("verify",),
    "vm_commands": ("vm",),
    "watch_command": ("watch",),
}


def load_commands(words: Sequence[str] = ()) -> None:
    """Import the module of the command that a command line names, or else every one; they add their commands."""
    named = next((word for word in words if not word.startswith("-")), None)
    wanted = [module for module, commands in MODULES.items() if named in commands] or list(MODULES)
    for module in wanted:
        import_module(f"testbed.ui.cli.{module}")


def _run() -> None:
    from testbed.base.errors import EXIT_FAIL, TestbedError
    from testbed.ui.cli.app import app, wants_json
    from testbed.ui.cli.output import print_error, printable_everywhere

    load_commands(sys.argv[1:])
    printable_everywhere()
    os.umask(os.umask(0) | 0o002)  # nothing that it makes can be written by everybody
    as_json = wants_json(sys.argv[1:])
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # nobody reads on
        _drop_output()
        sys.exit(EXIT_FAIL)
    except TestbedError as error:
        told = error
    except (OSError, MemoryError) as error:
        told = _sentence(error)
    else:
        return
    with suppress(OSError):  # the standard output may be what failed
        print_error(told, as_json=as_json)
    _drop_output()
    sys.exit(told.exit_code)


def _drop_output() -> None:
    """Let what cannot be written go nowhere, or Python fails at it once more when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_deleted_folder() -> bool:
    """Whether the folder that this was called from has been removed."""
    try:
        os.getcwd()  # noqa: PTH109 - it is not the path that is wanted
    except OSError:
        return True
    return False


def _sentence(error: OSError | MemoryError) -> TestbedError:
    """What the user can do about a file or a machine that refuses.

    Raises:
        OSError: that is nothing a user can do anything about.
    """
    from testbed.base.errors import CapabilityError, InputError, StorageError

    if isinstance(error, MemoryError):
        return CapabilityError("the memory is not enough for this; a smaller fabric, or a machine with more of it")
    what = error.filename if isinstance(error.filename, str) else None
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"{what or 'the output'} cannot be written: {reason}; make room and repeat")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CapabilityError(f"{reason}; allow more: ulimit -n 65536")
    if error.errno in (errno.ENOMEM, errno.EAGAIN):
        return CapabilityError(f"the machine gives no more memory or processes: {reason}")
    if error.errno == errno.ENOENT and _report_deleted_folder():
        return InputError.one("", "the current folder is not there any more; change to another one")
    if what is not None and error.errno in _REFUSALS:
        shown = what if len(what) <= 160 else f"{what[:100]}…"
        return InputError.one(shown, f"cannot be used: {reason}")
    raise error
