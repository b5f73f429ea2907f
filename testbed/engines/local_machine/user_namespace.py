"""Labs of ordinary users: each has a user namespace of its own, in which whoever has started it is root.

Nothing here concerns who is root with the rights of root. Others get these rights in a namespace of users that their
lab's process 1 is started in, over the lab's networks, mounts and processes and over nothing else. It belongs to the
user, so that each later command of this user may move there, and no other user's.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from testbed.base.errors import CapabilityError
from testbed.base.resources import setup
from testbed.engines.lab.hosts import mounts

PAGE = "docs/rootless.md"
_SYS_ADMIN = 1 << 21
_LIMIT = 20.0
_NOBODY = "65534"
_EVERYBODY = ["0", "0", str(0xFFFFFFFF)]  # the only line of the map of users where no namespace of users is
_TRIAL = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "true")
# What can forbid it: a setting, the value that does, why, and what undoes it.
_SETTINGS = {
    "kernel/unprivileged_userns_clone": (
        "0", "ordinary users may not make user namespaces", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    ),
    "user/max_user_namespaces": ("0", "no user namespaces are allowed", "sudo sysctl -w user.max_user_namespaces=9999"),
    "kernel/apparmor_restrict_unprivileged_userns": (
        "1", "AppArmor allows ordinary users no rights in user namespaces",
        f"load the profile of {PAGE}, or sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
}  # fmt: skip
_FILTERED = (
    "a filter of system calls, as containers have, forbids user namespaces; start the container with "
    "--security-opt seccomp=unconfined"
)
_MASKED = (
    "this container hides parts of /proc, so a lab can have no /proc of its own; start the container with "
    "--security-opt systempaths=unconfined (Podman: --security-opt unmask=ALL)"
)


def is_root() -> bool:
    """Whether this program is root and has root's rights where it is, so that its labs need no user namespace."""
    if os.geteuid() != 0:
        return False
    status = Path("/proc/self/status").read_text()
    rights = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(rights, 16) & _SYS_ADMIN)


def is_inside() -> bool:
    """Whether this program is in a user namespace that knows only some of the machine's users."""
    try:
        return Path("/proc/self/uid_map").read_text().split() != _EVERYBODY
    except OSError:
        return False


def unshare_options() -> tuple[str, ...]:
    """What `unshare` is told beside the other namespaces of a lab; nothing where this program is root."""
    if is_root():
        return ()
    return ("--user", "--map-root-user", *(("--map-auto",) if _has_ranges() else ()))


def nsenter_options(init: int) -> tuple[str, ...]:
    """What `nsenter` is told to enter the user namespace of a process, too; nothing where that is this program's own.

    Raises:
        OSError: the process is gone, or another user's.
    """
    return () if _is_own(init) else ("--user", "--preserve-credentials")


def enter(init: int) -> bool:
    """Move this process to the user namespace of a process, and to a copy of its mounts that belongs to that one.

    This process must have one thread.

    Returns:
        whether there was anywhere to move to.

    Raises:
        OSError: the process is gone, or another user's.
    """
    if _is_own(init):
        return False
    namespace = os.open(f"/proc/{init}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    try:
        mounts.enter(namespace, mounts.NEW_USERS)
    finally:
        os.close(namespace)
    mounts.unshare(mounts.NEW_MOUNTS)
    return True


def require() -> None:
    """Raise CapabilityError, with the reason and the remedy, where this program may not build a lab."""
    reason = why_not()
    if reason:
        raise CapabilityError(f"a lab needs root, or a user namespace: {reason}; or run the command with sudo")


@cache
def why_not() -> str:
    """Why this program cannot make the namespaces of a lab without root, and what to do; empty where it can or is."""
    return "" if is_root() else _try_command(())


@cache
def why_not_others() -> str:
    """As why_not(), where this program is root: of a user that is nobody."""
    return _try_command(("setpriv", "--reuid", _NOBODY, "--regid", _NOBODY, "--clear-groups", "--inh-caps", "-all"))


def _try_command(before: tuple[str, ...]) -> str:
    command = [*before, "unshare", "--user", "--map-root-user", *_TRIAL]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    except FileNotFoundError:
        return f"{command[0]} is not installed (package util-linux); {setup()}"
    except subprocess.TimeoutExpired:
        return f"unshare did not end in {_LIMIT:g} s"
    return "" if done.returncode == 0 else explain_refusal(done.stderr, _read_settings(), filtered=_is_filtered())


def explain_refusal(said: str, settings: Mapping[str, str], *, filtered: bool) -> str:
    """Why a user namespace was refused, and what to do.

    Args:
        said: by `unshare`.
        settings: of the kernel, by their names in /proc/sys; those that there are.
        filtered: whether a filter of system calls holds for this program.
    """
    if "/proc" in said and "uid_map" not in said and "gid_map" not in said:
        return _MASKED
    for name, (forbids, reason, remedy) in _SETTINGS.items():
        if settings.get(name) == forbids:
            return f"{reason} ({name.replace('/', '.')} = {forbids}); {remedy}"
    if filtered:
        return _FILTERED
    lines = said.strip().splitlines()
    return f"it cannot be made ({lines[-1] if lines else 'unshare printed nothing'})"


def _read_settings() -> dict[str, str]:
    found = {}
    for name in _SETTINGS:
        try:
            found[name] = Path("/proc/sys", name).read_text().strip()
        except OSError:
            continue  # this kernel has no such setting
    return found


def _is_filtered() -> bool:
    status = Path("/proc/self/status").read_text()
    return any(line.split() == ["Seccomp:", "2"] for line in status.splitlines())


def _is_own(init: int) -> bool:
    return os.path.samestat(os.stat(f"/proc/{init}/ns/user"), os.stat("/proc/self/ns/user"))  # noqa: PTH116 - texts


@cache
def _has_ranges() -> bool:
    """Whether this user has users of its own to give away, so that a program in a host can become another one."""
    user = os.geteuid()
    try:
        names = {str(user), pwd.getpwuid(user).pw_name}
    except KeyError:
        names = {str(user)}
    for file in ("/etc/subuid", "/etc/subgid"):
        try:
            lines = Path(file).read_text().splitlines()
        except OSError:
            return False
        if not any(line.split(":", 1)[0] in names for line in lines):
            return False
    if not all(shutil.which(program) for program in ("newuidmap", "newgidmap")):
        return False
    command = ["unshare", "--user", "--map-root-user", "--map-auto", "true"]
    try:
        return subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False  # a file system that takes no rights of files, or util-linux older than 2.38
