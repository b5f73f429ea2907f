"""What a program in a host gets as open files of the machine, so that it can only read what it was given to read.

Whoever has a file open can change its permissions, and open it anew by `/proc/self/fd`, for writing, too: where it
lies counts then, not how it was opened. So such a file is opened where nothing can be written.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import stat
import subprocess

from testbed.base.errors import CapabilityError
from testbed.base.messages import Access
from testbed.engines.lab.hosts import mounts
from testbed.engines.lab.hosts.mounts import NO_DEVICES, NO_SETUID, READ_ONLY
from testbed.engines.local_machine import user_namespace

_WAYS = os.O_APPEND | os.O_NONBLOCK | os.O_DIRECT | os.O_PATH


@functools.cache
def _null() -> int:
    place = os.open(os.devnull, os.O_PATH | os.O_CLOEXEC)
    try:
        return _opened_anew(place, os.O_RDWR, READ_ONLY)
    finally:
        os.close(place)


def give_nothing(access: Access) -> int:
    """What a host's program is given that shall read nothing, as subprocess takes it.

    Whoever is not root owns no device, so that there is nothing about it to change.
    """
    return subprocess.DEVNULL if access == "write" or not user_namespace.is_root() else _null()


class Given:
    """Descriptors of this process that a program in a host is to get: those that are only to be read are replaced.

    Raises:
        CapabilityError: one can be neither replaced nor given as it is.
    """

    def __init__(self, numbers: tuple[int, ...]) -> None:
        self._places: list[tuple[int, int]] = []  # the caller's own, and what the program reads instead
        for number in numbers:
            found = os.fstat(number)
            try:
                self._replace(number, found)
            except OSError as error:
                sentence = f"descriptor {number} cannot be given to a program in the lab: {error.strerror}"
                raise CapabilityError(f"{sentence}; give what is in it by a pipe") from error

    def _replace(self, number: int, found: os.stat_result) -> None:
        flags = fcntl.fcntl(number, fcntl.F_GETFL)
        reads = flags & os.O_ACCMODE == os.O_RDONLY
        if stat.S_ISBLK(found.st_mode):
            raise CapabilityError(f"descriptor {number} is a disk, which a program in the lab could write to")
        if stat.S_ISCHR(found.st_mode):
            keep, attributes = flags & (os.O_ACCMODE | _WAYS), READ_ONLY
        elif stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and reads and found.st_nlink):
            keep, attributes = flags & _WAYS, READ_ONLY | NO_SETUID | NO_DEVICES
        else:
            return  # to be written to, without a name, or no file
        made = _opened_anew(number, keep, attributes)
        try:
            if stat.S_ISREG(found.st_mode) and not flags & os.O_PATH:
                os.lseek(made, os.lseek(number, 0, os.SEEK_CUR), os.SEEK_SET)
                own = (os.dup(number), os.dup(made))
                self._places.append(own)
            os.dup2(made, number)
        finally:
            os.close(made)

    def read(self) -> None:
        """Let the caller go on reading where the program has come to."""
        for own, given in self._places:
            os.lseek(own, os.lseek(given, 0, os.SEEK_CUR), os.SEEK_SET)


def _opened_anew(descriptor: int, flags: int, attributes: int) -> int:
    tree = _copy_of(descriptor)
    try:
        mounts.set_attributes(tree, add=attributes)
        return os.open(f"/proc/self/fd/{tree}", flags | os.O_CLOEXEC | os.O_NOCTTY)
    finally:
        os.close(tree)


def _copy_of(descriptor: int) -> int:
    """A mount with the file alone.

    A process that has moved to another user namespace can copy only from the mounts that it has there: what it has open
    of others it finds by its path.

    Raises:
        OSError: it cannot be copied, or is not at its path any more.
    """
    try:
        return mounts.copy_of(f"/proc/self/fd/{descriptor}", below=False)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    place = os.open(os.readlink(f"/proc/self/fd/{descriptor}"), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)  # noqa: PTH115
    try:
        if not os.path.samestat(os.fstat(place), os.fstat(descriptor)):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return mounts.copy_of(f"/proc/self/fd/{place}", below=False)
    finally:
        os.close(place)
