"""Where machine code is kept, and whether it can be believed: it is read as pickles, which can do anything."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Collection
from functools import cache
from pathlib import Path

# Set to 1 by whoever starts a program in a user namespace, where root's files look like any stranger's, once it has
# looked at the same folders from outside.
LOOKED_AT = "TESTBED_CODE_FOLDERS_ARE_SAFE"
_UNMAPPED = Path("/proc/sys/fs/overflowuid")
_LINKS = 40  # one after the other that a path may lead over, as for the kernel


def can_be_judged_inside(package: Path) -> bool:
    """Whether what a user namespace hides of owners costs no safety, in the folders where code of a package is kept.

    That is so where all on the way to them is this user's, root's or the package's owner's.
    """
    owners = {0, os.geteuid(), package.stat().st_uid}
    own = os.environ.get("NUMBA_CACHE_DIR")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return all(_is_trusted_path(place.absolute(), owners) for place in (package, Path(own or cache)))


@cache
def is_trusted(folder: str, owner: int) -> bool:
    """Whether only this user, root and `owner`, who has the code, can have written the machine code in a folder.

    So each folder on the way, each link, and each file there must be one of theirs and writable by nobody else. On the
    way there may be a folder that everybody may write into, but where nobody can replace what is another's, as in /tmp.
    """
    owners = {0, os.geteuid(), owner}
    if os.environ.get(LOOKED_AT) == "1":
        owners.add(int(_UNMAPPED.read_text()))
    place = Path(folder).absolute()
    if not _is_trusted_path(place, owners):
        return False
    try:
        kept = [Path(entry) for entry in os.scandir(place) if entry.name.endswith((".nbi", ".nbc"))]
    except FileNotFoundError:
        return True  # it will be made
    except OSError:
        return False
    for file in kept:
        try:
            status = file.lstat()
        except FileNotFoundError:
            continue  # another program has replaced it
        if not _is_trusted(status, owners) or not stat.S_ISREG(status.st_mode):
            return False
    return True


def _is_trusted_path(path: Path, owners: Collection[int]) -> bool:
    """Whether nobody else can have put anything in the place of a folder, or into it."""
    left, here, links = [*reversed(path.parts[1:])], Path("/"), 0
    status = here.stat()
    if not _is_trusted(status, owners):
        return False
    while left:
        name = left.pop()
        if name == "..":
            here = here.parent
            continue
        try:
            status = (here / name).lstat()
        except FileNotFoundError:
            break  # what is not there can only be made by whoever may write where it is to be
        except OSError:
            return False
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if status.st_uid not in owners or links > _LINKS:
                return False
            target = Path(os.readlink(here / name))  # noqa: PTH115 - as text
            if target.is_absolute():
                here = Path("/")
            left += [*reversed(target.parts[1:] if target.is_absolute() else target.parts)]
            continue
        here = here / name
        if not _is_trusted(status, owners, sticky=True):
            return False
    return _is_trusted(here.stat(), owners)


def _is_trusted(status: os.stat_result, owners: Collection[int], *, sticky: bool = False) -> bool:
    """Whether a file or folder is one of theirs and writable by nobody else; `sticky`: or so that none is replaced."""
    if status.st_uid not in owners:
        return False
    others = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_own_group(status))
    return not others or bool(sticky and stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX)


def _is_own_group(status: os.stat_result) -> bool:
    """Whether the group of a file has its owner as its only member, as many systems give each user one."""
    try:
        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return owner.pw_gid == status.st_gid and owner.pw_name == group.gr_name and {*group.gr_mem} <= {owner.pw_name}
