"""Folders opened part by part, so that no link that somebody else has put on the way leads elsewhere."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # on one way, as in the kernel
_ROOT = 0
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder."""

    descriptor: int  # of O_PATH: a place to begin from, not one to read
    owner: os.stat_result  # of it


@contextmanager
def open_folder(folder: Path, below: Path | None = None, *, make: bool = False) -> Iterator[Folder]:
    """Open a folder for what is done in it; what happens to its path from then on does not matter.

    A link on the way counts if it is root's or the caller's own, and nobody else can have put it there. Root also
    follows those of another user, to a folder of that user's. Below `below`, a folder on the way, no link counts: who
    made that may be somebody else than the owner of its copy. With `make` the folders that are not there are made, and
    belong to the owner of what they are in.

    Raises:
        OSError: it is not there, is no folder, or is behind a link that does not count; `filename` is its path.
    """
    try:
        place = _FolderWalk(make).end_of(folder, below)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from error
    try:
        yield Folder(place, os.fstat(place))
    finally:
        os.close(place)


class _FolderWalk:
    """A way from one folder to the next."""

    def __init__(self, make: bool) -> None:
        self._make = make
        self._at = -1
        self._links = 0
        self._lent: int | None = None  # the user, neither root nor the caller, whose link was followed

    def end_of(self, folder: Path, below: Path | None) -> int:
        """Descriptor of a folder."""
        trusted = folder if below is None else below
        self._at = os.open("/" if trusted.is_absolute() else ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._walk([part for part in trusted.parts if part != "/"], links=True)
            if below is not None:
                self._walk(list(folder.relative_to(below).parts), links=False)
            self._require_lender()
        except BaseException:
            os.close(self._at)
            raise
        return self._at

    def _walk(self, parts: list[str], *, links: bool) -> None:
        left = parts[::-1]
        while left:
            name = left.pop()
            if name == ".." and not links:
                raise PermissionError(errno.EACCES, "it leads out of its folder by ..")
            step = self._step(name)
            found = os.fstat(step)
            if not stat.S_ISLNK(found.st_mode):
                self._enter(step)
                if not stat.S_ISDIR(found.st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                continue
            try:
                self._require_trust(name, found, links=links)
                if found.st_dev == _proc():  # what such a link says is not where it leads
                    self._enter(os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._at))
                    continue
                target = os.readlink("", dir_fd=step)
            finally:
                os.close(step)
            if target.startswith("/"):
                self._enter(os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            left += [part for part in target.split("/") if part not in ("", ".")][::-1]

    def _step(self, name: str) -> int:
        try:
            return os.open(name, _PLACE, dir_fd=self._at)
        except FileNotFoundError:
            if not self._make or name == "..":
                raise
        self._require_lender()
        make_inside(Folder(self._at, os.fstat(self._at)), name, new=False)
        return os.open(name, _PLACE, dir_fd=self._at)

    def _enter(self, step: int) -> None:
        os.close(self._at)
        self._at = step

    def _require_lender(self) -> None:
        """Let what a user's link leads to be that user's."""
        if self._lent is not None and os.fstat(self._at).st_uid != self._lent:
            raise PermissionError(errno.EACCES, f"a link of user {self._lent} leads there, and it is not theirs")

    def _require_trust(self, name: str, link: os.stat_result, *, links: bool) -> None:
        """Let only a link pass that counts."""
        self._links += 1
        if self._links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not links:
            raise PermissionError(errno.EACCES, f"{name} is a link, and none is followed there")
        caller, around = os.geteuid(), os.fstat(self._at)
        if link.st_uid in (_ROOT, caller):
            if around.st_mode & stat.S_IWOTH and not around.st_mode & stat.S_ISVTX:
                raise PermissionError(errno.EACCES, f"{name} is a link in a folder that everybody can change")
        elif caller == _ROOT and self._lent in (None, link.st_uid):
            self._lent = link.st_uid
        else:
            sentence = f"{name} is a link of user {link.st_uid}; name the folder that is meant itself"
            raise PermissionError(errno.EACCES, sentence)


def make_inside(folder: Folder, name: str, *, new: bool) -> None:
    """Make a folder in another one, whose owner it gets; one that is there is an error only where it is to be `new`.

    Raises:
        OSError: it cannot be made.
    """
    try:
        with as_owner(folder):
            os.mkdir(name, dir_fd=folder.descriptor)
    except FileExistsError:
        if new:
            raise
        return
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.descriptor)
    try:
        give_to_owner(folder, handle)
    finally:
        os.close(handle)


@contextmanager
def as_owner(folder: Folder) -> Iterator[None]:
    """Let root have no more rights than the folder's owner, as to files and in this thread alone, while the block runs.

    What is made then belongs to the owner from the start. It is no error where root may not do that: descriptors keep
    all links out anyway.
    """
    owner = folder.owner
    if os.geteuid() != _ROOT or owner.st_uid == _ROOT:
        yield
        return
    try:
        _libc.setfsgid(ctypes.c_uint(owner.st_gid))
        _libc.setfsuid(ctypes.c_uint(owner.st_uid))  # the kernel then also takes root's powers over files
        yield
    finally:
        _libc.setfsuid(ctypes.c_uint(_ROOT))
        _libc.setfsgid(ctypes.c_uint(os.getegid()))


def give_to_owner(folder: Folder, handle: int) -> None:
    """Give an open file or folder to the owner of the folder it is in, where root has made it and keeps it so far."""
    if os.geteuid() == _ROOT and os.fstat(handle).st_uid != folder.owner.st_uid:
        with suppress(PermissionError):  # root without this power, or of another machine
            os.fchown(handle, folder.owner.st_uid, folder.owner.st_gid)


def _proc() -> int:
    """The file system of processes."""
    try:
        return os.stat("/proc").st_dev  # noqa: PTH116 - it is called for each link
    except OSError:
        return -1
