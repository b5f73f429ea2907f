"""Every file and folder that the program makes where users name one: whole or not at all, and never through a link.

Root writes in a folder of another user with that user's rights.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from testbed.base.files.folder import Folder, as_owner, give_to_owner, make_inside, open_folder

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE = 0o666  # less the umask
# What is there is written to, and nothing made: `--output /dev/stdout`.
_DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


def write_whole(file: Path, content: bytes, mode: int | None = None, below: Path | None = None) -> None:
    """Write a file whole or not at all; a link of its name is replaced by it.

    `mode` are its permissions, whatever the umask; None leaves them to that, or as they were. `below`: see
    open_folder().

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    try:
        if file.parent in _DEVICES:
            _write_device(file, content)
            return
        with open_folder(file.parent, below) as folder:
            _replace(folder, file.name, content, mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error


def _replace(folder: Folder, name: str, content: bytes, mode: int | None) -> None:
    if mode is None:
        mode = _mode_of(folder, name)
    partial = f".{secrets.token_hex(8)}.partial"
    try:
        handle = create_inside(folder, partial)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if mode is not None:
                with as_owner(folder):
                    os.fchmod(handle, mode)
        with as_owner(folder):
            os.rename(partial, name, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
    except BaseException:
        with suppress(OSError), as_owner(folder):
            os.unlink(partial, dir_fd=folder.descriptor)
        raise


def _mode_of(folder: Folder, name: str) -> int | None:
    """Permissions of a file that is there; None where there is none."""
    try:
        found = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(found.st_mode):
        return found.st_mode & 0o777
    if not (stat.S_ISLNK(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return None


def _write_device(file: Path, content: bytes) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "wb") as device:
        device.write(content)


def create_inside(folder: Folder, name: str) -> int:
    """Make a file that is not there yet in an open folder; returns its descriptor, open for writing.

    Raises:
        OSError: it cannot be made.
    """
    with as_owner(folder):
        handle = os.open(name, _NEW, _READABLE, dir_fd=folder.descriptor)
    try:
        give_to_owner(folder, handle)
    except BaseException:
        os.close(handle)
        raise
    return handle


def create_file(file: Path, below: Path | None = None) -> int:
    """Make a file that is not there yet, to be written bit by bit; returns its descriptor.

    Raises:
        OSError: it is there, even as a link that leads nowhere, or cannot be made.
    """
    try:
        with open_folder(file.parent, below) as folder:
            return create_inside(folder, file.name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from error


def make_folder(folder: Path, below: Path | None = None) -> os.stat_result:
    """Make a folder that belongs to the owner of what it is in, also when root makes it; returns its status.

    Raises:
        OSError: it cannot be made.
    """
    with open_folder(folder, below, make=True) as made:
        return made.owner


def make_new_folder(folder: Path, below: Path | None = None) -> None:
    """Likewise, one that is not there yet, in one that is.

    Raises:
        OSError: it is there, or cannot be made.
    """
    try:
        with open_folder(folder.parent, below) as around:
            make_inside(around, folder.name, new=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error


def rename(old: Path, new: Path, below: Path | None = None) -> None:
    """Give a file or folder another name, or another place; a link is renamed itself.

    Raises:
        OSError: that cannot be done.
    """
    try:
        with open_folder(old.parent, below) as source, open_folder(new.parent, below) as target, as_owner(target):
            os.rename(old.name, new.name, src_dir_fd=source.descriptor, dst_dir_fd=target.descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(old)) from error


def remove_folder(folder: Path, below: Path | None = None) -> None:
    """Remove a folder and all in it; nothing happens where there is none. A link of its name is removed itself.

    Raises:
        OSError: something in it cannot be removed.
    """
    try:
        with open_folder(folder.parent, below) as around, as_owner(around):
            found = os.stat(folder.name, dir_fd=around.descriptor, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                shutil.rmtree(f"/proc/self/fd/{around.descriptor}/{folder.name}")
            else:
                os.unlink(folder.name, dir_fd=around.descriptor)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error
