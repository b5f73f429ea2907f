"""Whose plug-ins may run and whose MPI jobs be built: of what scenarios name, none before the caller has said so.

Scenarios come from others. What is trusted is the content of a file, or of all files of a job's folder. Its bytes are
read once; their digest is what is asked about and remembered, and the same bytes are what runs, or what is built from.
So what has changed is asked about anew, wherever it lies.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pwd
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import argument
from testbed.base.files import read_bytes

MAX_BYTES = 4 << 20  # of a plug-in
MOST_FILES, MOST_BYTES = 1000, 64 << 20  # of a job's folder
_LINE = re.compile(r"([0-9a-f]{64})( .*)?")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class PluginFile:
    """A plug-in as it was read."""

    path: str  # absolute
    content: bytes  # what is asked about, and what runs
    owner: str  # who can change the file

    role = "a program that would run"

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def size(self) -> str:
        """How much is to be read, in words."""
        return f"{len(self.content):,} bytes"


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of an MPI job."""

    content: bytes  # what is built from
    can_run: bool  # whether it is executable
    changed: int  # when its content has changed last, by which make decides; ns


@dataclass(frozen=True, slots=True)
class JobFolder:
    """The folder of an MPI job as it was read."""

    path: str  # absolute
    files: Mapping[str, JobFile]  # path below it → file
    owner: str  # who can change it

    role = "an MPI job whose Makefile would run"

    @property
    def digest(self) -> str:
        """SHA-256 of the names and contents of all files."""
        found = hashlib.sha256(b"folder of an MPI job\n")
        for name, file in sorted(self.files.items()):
            said = name.encode("utf-8", "surrogateescape")
            found.update(f"{len(said)} {len(file.content)} {file.can_run:d}\n".encode() + said + file.content)
        return found.hexdigest()

    @property
    def size(self) -> str:
        """How much is to be read, in words."""
        count = len(self.files)
        total = sum(len(file.content) for file in self.files.values())
        return f"{count} file{'s' if count != 1 else ''}, {total:,} bytes"


Program = PluginFile | JobFolder


def read_job_folder(path: Path) -> JobFolder:
    """Read all files of an MPI job, once.

    Raises:
        OSError: one cannot be read or is no file, or there is too much for a job; `filename` and `strerror` say so.
    """
    files: dict[str, JobFile] = {}
    owners = {path.stat().st_uid}
    left = MOST_BYTES
    for place, folders, names in os.walk(path, onerror=_raise):
        for name in sorted((*folders, *names)):
            file = Path(place, name)
            status = file.lstat()
            owners.add(status.st_uid)
            if stat.S_ISLNK(status.st_mode):
                raise OSError(errno.ELOOP, "it is a link; put what it leads to in its place", str(file))
            if name in folders:
                continue
            if len(files) == MOST_FILES or status.st_size > left:
                limit = f"{MOST_FILES:,} files and {MOST_BYTES >> 20} MiB"
                raise OSError(errno.EFBIG, f"there is more in it than a job may have ({limit})", str(path))
            content = read_bytes(file, path)
            left -= len(content)
            can_run = bool(status.st_mode & stat.S_IXUSR)
            files[str(file.relative_to(path))] = JobFile(content, can_run, status.st_mtime_ns)
    return JobFolder(str(path), files, " and ".join(map(user_name, sorted(owners))))


def _raise(error: OSError) -> None:
    raise error


def read_plugin(path: Path) -> PluginFile:
    """Read a plug-in, once.

    Raises:
        OSError: it cannot be read, is no file, or too large for a program; `strerror` says so.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MAX_BYTES:,} bytes", str(path))
    return PluginFile(str(path), content, user_name(status.st_uid))


def user_name(number: int) -> str:
    """The name of a user, or the number where it has none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def store() -> Path:
    """What the caller has trusted: `trusted` in `$XDG_STATE_HOME/testbed`, else in `~/.local/state/testbed`.

    Of the user with whose rights plug-ins would run: under sudo that is root, whatever `HOME` says.
    """
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if state.is_absolute():
        return state / "testbed" / "trusted"
    home = Path(os.environ.get("HOME", ""))
    if not (home.is_absolute() and home.exists() and home.stat().st_uid == os.geteuid()):
        home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    return home / ".local" / "state" / "testbed" / "trusted"


def read_store() -> tuple[frozenset[str], str]:
    """Digests in the store; and why it is not used, empty where it is, or where there is none."""
    file = store()
    try:
        wrong = _explain_distrust(file.parent, os.lstat(file.parent), stat.S_IWGRP | stat.S_IWOTH)
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as opened:
            wrong = wrong or _explain_distrust(file, os.fstat(handle), _OTHERS)
            text = "" if wrong else opened.read(MAX_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return frozenset(), ""
    except OSError as error:
        return frozenset(), f"{file} cannot be read: {error.strerror}"
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return frozenset(match[1] for match in found if match), wrong


def remember(file: Program) -> str:
    """Note that a content is trusted from now on; returns why that could not be, empty where it could."""
    target = store()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        wrong = _explain_distrust(target.parent, os.lstat(target.parent), stat.S_IWGRP | stat.S_IWOTH)
        if wrong:
            return wrong
        handle = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            wrong = _explain_distrust(target, os.fstat(handle), _OTHERS)
            if not wrong:
                os.write(handle, f"{file.digest} {json.dumps(file.path)}\n".encode())  # one call: no line in another
        finally:
            os.close(handle)
    except OSError as error:
        return f"{target} cannot be written: {error.strerror}"
    return wrong


def _explain_distrust(path: Path, status: os.stat_result, forbidden: int) -> str:
    """Why what others may have written is not believed; empty where only the caller can have."""
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a link"
    if status.st_uid != os.geteuid():
        return f"{path} belongs to {user_name(status.st_uid)}, not to {user_name(os.geteuid())}"
    if status.st_mode & forbidden:
        return f"{path} is open to others (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


Decide = Callable[[Program], bool]


def is_remembered(file: Program) -> bool:
    """Whether this content has been trusted by the caller before."""
    return file.digest in read_store()[0]


_DECIDES: list[Decide] = [is_remembered]


def may_run(file: Program) -> bool:
    """Whether what a scenario names may run, or be built, as far as is known without its caller's word for this one."""
    return _DECIDES[-1](file)


def why_not(what: str, file: Program) -> str:
    """The sentence for what may not run: what it would do, and how it is trusted."""
    unused = read_store()[1]
    return (
        f"{what}, and you have not said that you trust it; read {file.path}, then say {argument('trust', value=True)}"
        + (f". What was trusted before is not used: {unused}" if unused else "")
    )


@contextmanager
def decide_trust_with(decide: Decide) -> Iterator[None]:
    """Let a front end decide while the block runs, which may ask."""
    _DECIDES.append(decide)
    try:
        yield
    finally:
        _DECIDES.pop()


@contextmanager
def allow_programs(trust: bool) -> Iterator[None]:
    """While the block runs let all run that scenarios name, if the caller has said that he trusts them."""
    with decide_trust_with(lambda file: True) if trust else nullcontext():
        yield
