"""What programs in hosts may ask of the kernel, unless `lab.host_access` is `write`.

They are root, with the capabilities that networks need and no others, cannot get more, and some system calls fail
whoever calls. A filter of system calls is inherited, so that it is put on the thread that starts a program; the
capabilities go last, since entering a host takes more.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from testbed.base.errors import CapabilityError
from testbed.base.messages import Access
from testbed.engines.lab.hosts.commands import in_host
from testbed.engines.lab.hosts.host_view import HOME
from testbed.engines.lab.hosts.mounts import NEW_USERS, run_in_thread_namespace
from testbed.engines.local_machine import user_namespace

# Whoever becomes another user keeps to its own /tmp: nothing else can be written.
CAPABILITIES = (
    "chown", "dac_override", "fowner", "kill", "net_admin", "net_bind_service", "net_broadcast", "net_raw", "setgid",
    "setuid",
)  # fmt: skip
# Looking into processes, also those of other hosts; and what has no name in a namespace, or serves attacks more than
# programs.
FORBIDDEN = (
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "open_by_handle_at", "add_key", "request_key", "keyctl",
)  # fmt: skip
# Sockets that no network namespace holds: of virtual machines, Bluetooth, near fields, modems.
_PAST_NETWORKS = {"vsock": 40, "bluetooth": 31, "nfc": 39, "qipcrtr": 42}
# What a terminal can be asked for that is more than its own: to take letters as if they were typed, which whoever reads
# there next would obey; to paste a selection of the console, likewise; to be the console; to become a network interface
# or whatever else the kernel then loads.
_OF_TERMINALS = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCCONS": 0x541D, "TIOCSETD": 0x5423}
# With it a program would run with the rights of the file's owner: a file of the machine that a program in a host was
# given to write to. Of each call, the argument that has the permissions.
_CHANGING_RIGHTS = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
_OWNERS_RIGHTS = (stat.S_ISUID, stat.S_ISGID)
_SEEN = 0xFFFFFFFF  # of an argument that the kernel takes as 32 bits, whatever the others are
# seccomp.h
_LIBRARY = "libseccomp.so.2"
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_OTHER_MACHINE, _NO_NEW_PRIVILEGES, _SPECULATION = 2, 3, 7  # attributes of a filter
_MASKED = 7  # a comparison: of the bits in the first number with the second

_T = TypeVar("_T")


class _Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`."""

    _fields_ = [
        ("argument", ctypes.c_uint), ("how", ctypes.c_int), ("one", ctypes.c_uint64), ("other", ctypes.c_uint64),
    ]  # fmt: skip


def guard(access: Access) -> tuple[str, ...]:
    """The command that becomes another one with only the capabilities of a host's program; empty with `write`."""
    if access == "write":
        return ()
    kept = ",".join(["-all", *(f"+{name}" for name in CAPABILITIES)])
    return ("setpriv", "--no-new-privs", "--inh-caps", "-all", "--bounding-set", kept, "--")


def program_in(
    holder: int, command: Iterable[str], procs: str | None, access: Access, folder: str | None = None
) -> list[str]:
    """Return the command that runs a program of a user in a host; see in_host().

    It is to be started by start_with_seccomp(), and runs in `folder`, which is one of the host.
    """
    into = () if folder is None else ("sh", "-ec", 'cd "$0"; exec "$@"', folder)
    return in_host(holder, [*guard(access), *into, *command], procs)


def own_places(access: Access) -> dict[str, str]:
    """Environment that names a folder which a host's program may write to."""
    return {} if access == "write" else {"HOME": HOME, "TMPDIR": HOME}


def start_with_seccomp(access: Access, start: Callable[[], _T]) -> _T:
    """Call what starts a program, so that neither this nor its children can call what is forbidden.

    Raises:
        CapabilityError: the kernel takes no filter.
    """
    if access == "write":
        return start()

    def start_confined() -> _T:
        forbid()
        return start()

    return run_in_thread_namespace(start_confined)


def forbid() -> None:
    """Take the forbidden system calls from this thread, and from what it starts.

    Raises:
        CapabilityError: the kernel takes no filter.
    """
    try:
        library, made = _filter()
        code = -library.seccomp_load(made)
    except OSError as error:
        raise CapabilityError(f"hosts' programs cannot be held back: {error.strerror or error}; {REMEDY}") from error
    if code:
        raise CapabilityError(f"hosts' programs cannot be held back: {os.strerror(code)}; {REMEDY}")


def why_not() -> str:
    """Why there can be no filter here; empty where there can."""
    try:
        run_in_thread_namespace(forbid)
    except CapabilityError as error:
        return str(error)
    return ""


REMEDY = (
    f"install libseccomp2 ({_LIBRARY}), or set lab.host_access: write, with which hosts' programs may do what root may"
)


@functools.cache
def _filter() -> tuple[Any, Any]:
    """The library, and the filter that it has made."""
    library = ctypes.CDLL(_LIBRARY, use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    made = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(_ALLOW)))
    if made.value is None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    def refuse(name: str, code: int, *conditions: tuple[int, int, int, int]) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == -1:
            return  # the library is older than the system call
        array = (_Comparison * max(1, len(conditions)))(*(_Comparison(*condition) for condition in conditions))
        failed = library.seccomp_rule_add_array(
            made, ctypes.c_uint32(_ERROR | code), ctypes.c_int(number), ctypes.c_uint(len(conditions)), array
        )
        if failed:
            raise OSError(-failed, f"{name}: {os.strerror(-failed)}")

    # A thread of root needs not give up its privileges for a filter; programs run as fast as without one.
    less = int(not user_namespace.is_root())
    for attribute, value in ((_OTHER_MACHINE, _ERROR | errno.ENOSYS), (_NO_NEW_PRIVILEGES, less), (_SPECULATION, 1)):
        library.seccomp_attr_set(made, ctypes.c_int(attribute), ctypes.c_uint32(value))
    for name in FORBIDDEN:
        refuse(name, errno.EPERM)
    for name in ("unshare", "clone"):
        refuse(name, errno.EPERM, (0, _MASKED, NEW_USERS, NEW_USERS))
    refuse("clone3", errno.ENOSYS)  # its arguments cannot be seen; everybody then takes clone
    for family in _PAST_NETWORKS.values():
        refuse("socket", errno.EAFNOSUPPORT, (0, _MASKED, _SEEN, family))
    for request in _OF_TERMINALS.values():
        refuse("ioctl", errno.EPERM, (1, _MASKED, _SEEN, request))
    for name, argument in _CHANGING_RIGHTS.items():
        for right in _OWNERS_RIGHTS:
            refuse(name, errno.EPERM, (argument, _MASKED, right, right))
    return library, made
