"""Building an image or a box: its means looked at first, one at a time, by a script in namespaces of its own."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from testbed.base.errors import CapabilityError, LabError
from testbed.base.files import make_folder
from testbed.base.resources import find_part
from testbed.engines.vm.stream import lines, run_program

BUILDING = ".building"  # ends the name of a folder that is not whole
_LIMIT = 3600.0
_SHOWN_LINES = 20
_LACKING = 3  # exit code of a script that this machine lacks something for
_TRIES, _PAUSE = 50, 0.1  # s


def environment() -> Mapping[str, str]:
    """Return this program's environment with the folders of root's commands on the path."""
    return {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin"}


def require_root(what: str, target: str) -> None:
    """Raise CapabilityError unless this program may build, and on the processors that the packages are for.

    The `target` of make builds it.
    """
    if os.geteuid() != 0:
        raise CapabilityError(
            f"{what} is built as root, because it is a root file system; run `make {target}`, or the command with sudo"
        )
    if platform.machine() != "x86_64":
        raise CapabilityError(
            f"{what} is one of x86_64, and this machine is {platform.machine()}, which cannot install its packages; "
            "build it on an x86_64 machine"
        )


def missing_commands(names: Sequence[str]) -> list[str]:
    """Return those commands that are not installed."""
    return [name for name in names if shutil.which(name, path=environment()["PATH"]) is None]


def require_space(folder: Path, needed: int, what: str) -> None:
    """Raise CapabilityError unless a folder, which may be still to be made, has room. `needed`: bytes."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise CapabilityError(
            f"{what} takes up to {needed / 1e9:.1f} GB while it is made, and {folder} has {free / 1e9:.1f} GB left; "
            "make room and repeat"
        )


def run_script(name: str, arguments: Sequence[str], what: str, errors: Path, progress: Callable[[str], None]) -> None:
    """Run a script of the project whose mounts and processes end with it, however it ends.

    The file `errors` gets what it says of errors, and is removed where it succeeds.

    Raises:
        CapabilityError: this machine lacks something, as the script says.
        LabError: it failed.
    """
    command = [
        "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", str(find_part("scripts") / name),
        *arguments,
    ]  # fmt: skip
    with errors.open("wb") as sink, run_program(command, sink, env=environment()) as process:
        try:
            for line in lines(process, until=time.monotonic() + _LIMIT):
                progress(line)
        except TimeoutError as error:
            raise LabError(f"{what} was not built in {_LIMIT:g} s") from error
        code = process.wait()
    said = errors.read_text(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
    if code == _LACKING:
        raise CapabilityError(said)
    if code != 0:
        raise LabError([f"{what} cannot be built:", *said])
    errors.unlink()


@contextmanager
def hold_build_lock(cache: Path, what: str, progress: Callable[[str], None]) -> Iterator[None]:
    """Let one program build at a time; another waits and says so."""
    make_folder(cache)
    lock = os.open(cache, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another program that builds {what}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def clean_up(folder: Path) -> None:
    """Remove a folder and all in it; what cannot be removed stays.

    A script that was just killed may still write there for a moment, so it is tried until the folder is gone.
    """
    for _ in range(_TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE)
