"""Files that users can touch, read with care; and files that no crash leaves half written, of their folder's owner."""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 1 << 30  # of a file that is read whole


def read_bytes(file: Path) -> bytes:
    """Content of a file that a user has named or can have changed; one that is no file does not make us wait.

    Raises:
        OSError: it cannot be read, is a pipe, a folder or a device, or is too large; `strerror` says so.
    """
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(file))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(file))
        if status.st_size > MAX_BYTES:
            raise OSError(errno.EFBIG, f"it has {status.st_size:,} bytes; {MAX_BYTES:,} is the most", str(file))
        return opened.read()


def read_text(file: Path) -> str:
    """Likewise, its text.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(file).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


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
    """Digest of the program, without what gives no results or only shows them: equal digests give equal results."""
    aside = {"audit", "cli", "compare", "exercise", "export", "live", "report"}
    package = Path(__file__).resolve().parent
    found = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        if file.relative_to(package).parts[0] not in aside:
            found.update(file.read_bytes())
    return found.hexdigest()
