"""What hosts see of the machine: the processes that keep their namespaces have mounts of their own.

`lab.host_access` says how much. With `read` a host sees the machine's files and can change none; `none` also hides
those that programs do not need; with `write` it may do what root may. Whatever can be written in a host is its own, in
memory, and gone with the lab: OWN says where. Only SHARED is one for all hosts of a lab.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from testbed.base.errors import LabError
from testbed.base.messages import Access
from testbed.base.resources import PACKAGES, SHARE, find_build_folder
from testbed.engines.lab.hosts import mounts
from testbed.engines.lab.hosts.mounts import (
    BIND,
    NEW_FS,
    NEW_MOUNTS,
    NEW_NETWORK,
    NO_DEVICES,
    NO_PROGRAMS,
    NO_SETUID,
    READ_ONLY,
)
from testbed.engines.local_machine import user_namespace

SHARED = Path("/run/lab/shared")
HOME = "/tmp"  # a host's own; of its programs, and where they start
_MEMORY = "/dev/shm"
OWN = (HOME, "/run", _MEMORY)
# Of the machine's root folder, what programs need; `none` hides the rest.
_NEEDED = frozenset(
    ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "proc", "sys", "run", "tmp")
)
_SECRET = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssh", "/etc/ssl/private")
# Sockets of daemons that give root to whoever connects, where they are not in /run.
_DOORS = ("/var/lib/lxd", "/var/lib/incus", "/var/snap")
# Of /proc, what each network has for itself can be written in a host, and nothing else: other files there may be the
# whole machine's, whatever network one looks from.
_NETWORKS = "/proc/sys/net"
_OF_ITS_NETWORK = ("bridge", "core", "ipv4", "ipv6", "mptcp", "netfilter", "unix")
# Every network shows it, and it is one switch of the kernel, which goes on and never off. It comes with a module: the
# folder is left alone where it is not there yet.
_OF_ALL_NETWORKS = {"netfilter": "nf_hooks_lwtunnel"}
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "net/tun")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
_GUARDED = NO_SETUID | NO_DEVICES
TOO_OLD = (
    "hosts cannot be shut in here ({}); set lab.host_access: write, with which their programs may do what root may"
)


def start_holders(names: Sequence[str], access: Access) -> dict[str, subprocess.Popen[bytes]]:
    """Start the processes that keep hosts' namespaces, by host; these are there when this returns.

    Raises:
        LabError: namespaces cannot be made, or not as `access` wants them.
    """
    found: dict[str, subprocess.Popen[bytes]] = {}

    def start() -> None:
        mounts.unshare(NEW_FS | NEW_MOUNTS)
        os.umask(0o022)  # of this thread alone, now
        hidden = _describe_sandbox(access) if access != "write" else ()
        template = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        try:
            for name in names:
                mounts.unshare(NEW_MOUNTS | NEW_NETWORK)
                _make_own(access, hidden)
                found[name] = subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL)
                mounts.enter(template, NEW_MOUNTS)
        finally:
            os.close(template)

    try:
        mounts.run_in_thread_namespace(start)
    except OSError as error:
        for process in found.values():
            process.kill()
            process.wait()
        raise LabError(TOO_OLD.format(error.strerror) if access != "write" else str(error.strerror)) from error
    return found


def why_not() -> str:
    """Why hosts cannot be shut in on this machine; empty where they can. Nothing is changed by asking."""

    def attempt() -> None:
        mounts.unshare(NEW_FS | NEW_MOUNTS)
        mounts.make_private()
        _describe_sandbox("read")

    try:
        mounts.run_in_thread_namespace(attempt)
    except PermissionError as error:  # by a container
        return f"{error.strerror} ({error.filename})" if error.filename else str(error.strerror)
    except OSError as error:
        return str(error.strerror)
    return ""


def program_folders() -> list[Path]:
    """Folders of the testbed itself, and of Python, that programs in hosts need."""
    found = {
        PACKAGES,
        SHARE,
        find_build_folder("mpi_jobs"),
        Path(sys.prefix).resolve(),
        Path(sys.base_prefix).resolve(),
    }
    return sorted(folder for folder in found if folder.is_dir() and not any(above in found for above in folder.parents))


def is_hidden(folder: Path, access: Access) -> bool:
    """Whether a host does not see a folder of the machine, by its absolute path, and could be shown it."""
    if access == "write" or len(folder.parts) < 2:
        return False
    top = folder.parts[1]
    return (top == HOME[1:] and len(folder.parts) > 2) or (access == "none" and top not in _NEEDED)


def show(holders: Iterable[int], folder: Path) -> None:
    """Let hosts read a folder that is hidden from them, at its own path.

    `holders` are processes in their namespaces.

    Raises:
        LabError: there is no such folder, or a host has something else there.
    """
    for holder in holders:
        try:
            mounts.run_in_thread_namespace(lambda holder=holder: _show(holder, folder))  # type: ignore[misc]
        except OSError as error:
            raise LabError(f"{folder} cannot be shown to hosts: {os.strerror(error.errno or 0)}") from error


def take_own_temporary() -> None:
    """Give this thread, and what it starts, a /tmp of its own, in which only the testbed's own folders are to be seen.

    Raises:
        OSError: it cannot be mounted.
    """
    kept = [folder for folder in program_folders() if is_hidden(folder, "read")]
    mounts.unshare(NEW_FS | NEW_MOUNTS)
    os.umask(0o022)
    trees = [mounts.copy_of(str(folder)) for folder in kept]
    try:
        mounts.mount("tmpfs", "lab", HOME, _GUARDED, "mode=1777")
        for folder, tree in zip(kept, trees, strict=True):
            folder.mkdir(parents=True)
            mounts.attach(tree, str(folder))
    finally:
        for tree in trees:
            os.close(tree)


def _show(holder: int, folder: Path) -> None:
    tree = mounts.copy_of(str(folder))
    try:
        mounts.set_attributes(tree, add=READ_ONLY | _GUARDED, below=True)
        mounts.unshare(NEW_FS)
        os.umask(0o022)
        namespace = os.open(f"/proc/{holder}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        try:
            mounts.enter(namespace, NEW_MOUNTS)
        finally:
            os.close(namespace)
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != folder:  # by a link that a program has put there
            raise LabError(f"{folder} cannot be shown to a host, where it leads to {folder.resolve()}")
        mounts.attach(tree, str(folder))
    finally:
        os.close(tree)


def _describe_sandbox(access: Access) -> tuple[str, ...]:
    """Take all that a host may not do from the mounts of this thread; returns the folders to be hidden by its own."""
    mounts.set_attributes("/", add=READ_ONLY | _GUARDED, below=True)
    _make_devices()
    for path in (*_DOORS, *(_SECRET if access == "none" else ())):
        _hide(path)
    if access != "none":
        return ()
    tops = [f"/{entry.name}" for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False)]
    return tuple(top for top in sorted(tops) if top[1:] not in _NEEDED)


def _make_devices() -> None:
    """Let /dev have only what is no part of the machine."""
    numbers, trees = {}, {}
    for name in _DEVICES:
        try:
            numbers[name] = Path("/dev", name).stat()
            trees[name] = mounts.copy_of(f"/dev/{name}")
        except OSError:
            continue  # the machine has none
    mounts.mount("tmpfs", "lab", "/dev", NO_SETUID, "mode=755")
    for name in ("net", "pts", "shm"):
        Path("/dev", name).mkdir()
    for name, tree in trees.items():
        device = Path("/dev", name)
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, numbers[name].st_rdev)
            device.chmod(0o666)
        except PermissionError:
            if not user_namespace.is_inside():
                raise
            device.touch()  # in a user namespace none can be made
            mounts.set_attributes(tree, add=READ_ONLY | NO_SETUID, clear=NO_DEVICES)
            mounts.attach(tree, str(device))
        finally:
            os.close(tree)
    for name, target in _LINKS.items():
        Path("/dev", name).symlink_to(target)
    mounts.set_attributes("/dev", add=READ_ONLY)


def _hide(path: str) -> None:
    if not os.path.exists(path):  # noqa: PTH110 - a text below
        return
    if os.path.isdir(path):  # noqa: PTH112 - likewise
        mounts.mount("tmpfs", "lab", path, READ_ONLY | _GUARDED)
    else:
        mounts.mount("", "/dev/null", path, BIND)


def _make_own(access: Access, hidden: Sequence[str]) -> None:
    """Give the host whose namespaces this thread has entered what is its own; `hidden`: folders that shall be empty."""
    if access == "write":
        mounts.mount("sysfs", "lab", "/sys")
        return
    mounts.mount("sysfs", "lab", "/sys", READ_ONLY | _GUARDED | NO_PROGRAMS)
    mounts.mount("devpts", "lab", "/dev/pts", NO_SETUID | NO_PROGRAMS, "newinstance,ptmxmode=0666,mode=620")
    _open_network()
    shared = mounts.copy_of(str(SHARED))
    try:
        mounts.set_attributes(shared, clear=READ_ONLY)
        for place in (*OWN, *hidden):
            mounts.mount("tmpfs", "lab", place, _GUARDED, f"mode={'1777' if place in (HOME, _MEMORY) else '755'}")
        SHARED.mkdir(parents=True)
        mounts.attach(shared, str(SHARED))
    finally:
        os.close(shared)


def _open_network() -> None:
    """Let the settings of this thread's network be written, as far as they are its own."""
    for name in _OF_ITS_NETWORK:
        folder, kernels = f"{_NETWORKS}/{name}", _OF_ALL_NETWORKS.get(name)
        needed = f"{folder}/{kernels}" if kernels else folder
        if not os.path.exists(needed):  # noqa: PTH110 - a text below
            continue
        mounts.mount("", folder, folder, BIND)
        mounts.set_attributes(folder, clear=READ_ONLY)
        if kernels:
            mounts.mount("", needed, needed, BIND)
            mounts.set_attributes(needed, add=READ_ONLY)
