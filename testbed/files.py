"""Files and folders that a crash never leaves half written, and that belong to the owner of the folder they are in."""

from __future__ import annotations

import functools
import hashlib
import os
from contextlib import suppress
from pathlib import Path


def write_whole(file: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file whole or not at all.

    `mode` are its permissions, whatever the umask; None leaves them to that.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    partial = file.with_name(f".{file.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        if mode is not None:
            partial.chmod(mode)
        owner = file.parent.stat()
        with suppress(PermissionError):  # in another's folder, such as /tmp
            os.chown(partial, owner.st_uid, owner.st_gid)
        partial.replace(file)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def make_folder(folder: Path) -> os.stat_result:
    """Make a folder that belongs to the owner of what it is in, also when root makes it; returns its status.

    Raises:
        OSError: it cannot be made.
    """
    if not folder.exists():
        above = make_folder(folder.absolute().parent)
        folder.mkdir(exist_ok=True)
        os.chown(folder, above.st_uid, above.st_gid)
    return folder.stat()


@functools.cache
def code_digest() -> str:
    """Digest of the program, without what only shows results: equal digests give equal results."""
    aside, package = {"cli", "report", "compare", "export"}, Path(__file__).resolve().parent
    found = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        if file.relative_to(package).parts[0] not in aside:
            found.update(file.read_bytes())
    return found.hexdigest()
