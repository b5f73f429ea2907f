"""Where a user's labs have their records: nobody else may write there, since commands do what records say."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from testbed.base.errors import CapabilityError

_OF_ROOT = Path("/run/testbed")
_OF_ALL = Path("/tmp")  # where everybody may make a folder, and nobody may remove another's


def find_folder() -> Path:
    """The folder of this user's records, which may not be there yet: for each user another one."""
    user = os.geteuid()
    if user == 0:
        return _OF_ROOT
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    # It may be another user's: `su` keeps the environment.
    if runtime.is_absolute() and _is_private(runtime):
        return runtime / "testbed"
    return _OF_ALL / f"testbed-{user}"


def make(folder: Path) -> None:
    """Make the folder where it is missing.

    Raises:
        OSError: it cannot be made.
        CapabilityError: others may write there.
    """
    mode = 0o755 if os.geteuid() == 0 else 0o700
    folder.mkdir(mode=mode, exist_ok=True)
    check(folder)
    folder.chmod(mode)


def check(folder: Path) -> None:
    """Refuse a folder that others may have written to; one that is not there is refused nobody.

    Raises:
        CapabilityError: they may.
    """
    if os.path.lexists(folder) and not _is_private(folder):
        raise CapabilityError(
            f"{folder} is not a folder that only you can write to, so what it says of labs is not believed; remove it, "
            "or set XDG_RUNTIME_DIR to a folder of your own"
        )


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & others
