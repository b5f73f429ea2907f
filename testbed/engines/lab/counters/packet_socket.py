"""The socket by which a program outside of a lab hears the frames of an interface in it.

    python -m testbed.engines.lab.counters.packet_socket INTERFACE DESCRIPTOR

opens one where it is started, and passes it on by the socket whose descriptor it is given.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from testbed.base.errors import CapabilityError
from testbed.base.python_isolation import FOLDER, clean_environment, make_module_command
from testbed.base.resources import setup
from testbed.engines.lab.counters.socket_buffers import set_buffer
from testbed.engines.lab.hosts.commands import in_network_of
from testbed.engines.local_machine import user_namespace

# linux/socket.h, linux/if_packet.h
_SO_TIMESTAMPNS = 35
_SOL_PACKET, _PACKET_AUXDATA = 263, 8
_EVERY_PROTOCOL = 0x0003
_BUFFER = 64 << 20
_LONGEST = 4096


def open_in_lab(init: int, pid: int, interface: str, proc: Path) -> socket.socket:
    """A socket that hears all frames of an interface of a process' network.

    Args:
        init: pid of the lab's process 1.
        pid: of the process.
        interface: its name there.
        proc: where processes of that number are shown.

    Raises:
        OSError: it cannot be listened to.
        CapabilityError: nsenter is not installed.
    """
    entering = user_namespace.nsenter_options(init)
    if not entering:
        return in_network_of(pid, lambda: _open(interface), proc)
    # A program of several threads cannot move to the user namespace; a helper can.
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    command = [
        "nsenter", "--target", str(init), *entering, f"--net={proc / str(pid) / 'ns/net'}", "--",
        *make_module_command(__name__, interface, str(far.fileno())),
    ]  # fmt: skip
    with near:
        try:
            with far:
                helper = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    pass_fds=(far.fileno(),), env=clean_environment(), cwd=FOLDER,
                )  # fmt: skip
        except FileNotFoundError as error:
            raise CapabilityError(f"nsenter is not installed (package util-linux); {setup()}") from error
        said, received, _, _ = socket.recv_fds(near, _LONGEST, 1)
        complained = helper.communicate()[1].decode(errors="replace").strip().splitlines()
    if received:
        return socket.socket(fileno=received[0])
    if said:
        raise OSError(int(said), os.strerror(int(said)))
    raise OSError(0, complained[-1] if complained else "the helper in the lab said nothing")


def _open(interface: str) -> socket.socket:
    ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    try:
        set_buffer(ear, socket.SO_RCVBUF, _BUFFER)
        ear.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        ear.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        ear.setblocking(False)
        ear.bind((interface, _EVERY_PROTOCOL))
    except OSError:
        ear.close()
        raise
    return ear


def main() -> None:
    """Open the socket and pass it on, or say the number of the error."""
    with socket.socket(fileno=int(sys.argv[2])) as asked:
        try:
            with _open(sys.argv[1]) as ear:
                socket.send_fds(asked, [b"0"], [ear.fileno()])
        except OSError as error:
            asked.sendall(str(error.errno).encode())


if __name__ == "__main__":
    main()
