"""Files that users can touch, read with care."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from testbed.base.files.folder import open_folder
from testbed.base.limits import WHOLE_FILE, scaled_limit, too_much

_GROWTH = 1 << 20  # bytes that may be more than its status says, as in /proc
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def read_bytes(file: Path, below: Path | None = None, *, most: int = WHOLE_FILE) -> bytes:
    """Content of a file that a user has named or can have changed; one that is no file does not make us wait.

    From `below` on, a folder on the way to it, no link is followed: what is in a result folder comes from whoever made
    that, and a link of theirs would show them what the reader alone may read. `most`: bytes that it may have, one of
    the limits of `testbed.base.limits`.

    Raises:
        OSError: it cannot be read, is a pipe, a folder or a device, is too large, or is behind such a link; `strerror`
            says so.
    """
    if below is None:
        handle = os.open(file, _READ)
    else:
        with open_folder(file.parent, below) as folder:
            try:
                handle = os.open(file.name, _READ | os.O_NOFOLLOW, dir_fd=folder.descriptor)
            except OSError as error:
                reason = "it is a link, and none is followed there" if error.errno == errno.ELOOP else error.strerror
                raise OSError(error.errno, reason, str(file)) from error
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder", str(file))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(file))
        most = scaled_limit(most)
        if status.st_size > most:
            raise OSError(errno.EFBIG, too_much(f"it has {status.st_size:,} bytes", most, "bytes"), str(file))
        content = opened.read(status.st_size + _GROWTH + 1)
        if len(content) > status.st_size + _GROWTH:
            raise OSError(errno.EFBIG, "it grows while it is read", str(file))
        return content


def read_text(file: Path, below: Path | None = None, *, most: int = WHOLE_FILE) -> str:
    """Likewise, its text.

    Raises:
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_bytes(file, below, most=most).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
