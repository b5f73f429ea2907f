"""Labs that were left running by `testbed up`: one small file each under /run/testbed."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.emulate.launch import Namespaces
from testbed.errors import CapabilityError, InputError, did_you_mean
from testbed.files import write_whole

FOLDER = Path("/run/testbed")


@dataclass(frozen=True, slots=True)
class Entry:
    """A running lab."""

    name: str  # of the lab
    init: int  # pid of its process 1
    born: int  # start time of that process in clock ticks, so that a recycled pid is not taken for it
    scenario: str  # its scenario's name
    digest: str  # of its plan
    started: float  # seconds since the epoch

    @property
    def namespaces(self) -> Namespaces:
        """The lab's namespaces."""
        return Namespaces(self.init)


def _born(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    except OSError:
        return -1


def reserve(name: str) -> None:
    """Make sure a name is free.

    Raises:
        InputError: a lab of that name is running.
    """
    for entry in entries():
        if entry.name == name:
            raise InputError.one(
                name,
                "a lab of that name is already running; end it with `testbed down`, or give this one another --name",
            )


def register(name: str, namespaces: Namespaces, scenario: str, digest: str) -> None:
    """Record a lab that outlives this program."""
    try:
        FOLDER.mkdir(mode=0o755, exist_ok=True)
        entry = Entry(name, namespaces.init, _born(namespaces.init), scenario, digest, time.time())
        write_whole(FOLDER / f"{name}.json", json.dumps(asdict(entry)).encode())
    except OSError as error:
        raise CapabilityError(f"{FOLDER} cannot be written ({error.strerror}); run the command with sudo") from error


def forget(entry: Entry) -> None:
    """Remove the record of a lab, and the folder with the last one."""
    (FOLDER / f"{entry.name}.json").unlink(missing_ok=True)
    with suppress(OSError):  # another lab is running
        FOLDER.rmdir()


def entries() -> list[Entry]:
    """All running labs; records of labs that have died are removed where that is allowed."""
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        try:
            entry = Entry(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            continue
        if entry.namespaces.alive() and _born(entry.init) == entry.born:
            found.append(entry)
        elif os.access(FOLDER, os.W_OK):
            forget(entry)
    return found


def find(name: str | None) -> Entry:
    """Return the lab of a name, or the only one.

    Raises:
        InputError: there is none, or several and no name.
    """
    running = entries()
    names = [entry.name for entry in running]
    if name is None and len(running) == 1:
        return running[0]
    if not running:
        raise InputError.one(name or "", "no lab is running; build one with `testbed up NAME`")
    if name is None:
        raise InputError.one("", f"several labs are running, so give a name: {', '.join(names)}")
    for entry in running:
        if entry.name == name:
            return entry
    raise InputError.one(name, f"no running lab of that name.{did_you_mean(name, names)} Running: {', '.join(names)}")
