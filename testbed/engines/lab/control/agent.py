"""Process 1 of a lab: builds it when told, then carries out operations until the namespaces end with it.

`operations` says what it can be asked, and how it is said.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from typing import Any

from testbed.base.errors import LabError
from testbed.engines.lab.control.agent_memory import presize_intern_table, use_single_arena
from testbed.engines.lab.control.agent_socket import listen
from testbed.engines.lab.control.operation import Operation, Progress
from testbed.engines.lab.control.running_lab import FOLDER, RunningLab
from testbed.engines.lab.hosts import cgroup, mounts
from testbed.engines.lab.hosts.commands import allow_long_files
from testbed.engines.lab.hosts.host_view import SHARED
from testbed.engines.lab.hosts.interfaces import set_interfaces
from testbed.engines.local_machine import user_namespace

SOCKET = FOLDER / "agent.sock"
GROUPS = FOLDER / "cpu"


class Agent:
    """Carries out operations of one lab: concurrent ones at once, others one after the other."""

    def __init__(self, began_in: str = "/") -> None:
        self.lab = RunningLab(began_in)
        self._lock = threading.Lock()

    @property
    def max_request(self) -> int:
        """Bytes of a request at most."""
        return self.lab.max_request

    def answer(self, operation: Operation[Any], progress: Progress) -> Any:
        """Carry out one operation."""
        if operation.concurrent:  # for instance while a load runs
            return self._carry_out(operation, progress)
        with self._lock:
            self.lab.doing = operation.name
            try:
                return self._carry_out(operation, progress)
            finally:
                self.lab.doing = "idle"

    def _carry_out(self, operation: Operation[Any], progress: Progress) -> Any:
        try:
            return operation.carry_out(self.lab, progress)
        except (LabError, OSError):
            self.lab.check_alive()  # what died, rather than what failed for it
            raise


def _hold(leash: int) -> None:
    """End the lab when the program that started it ends without a word: then nobody knows of it."""
    os.set_inheritable(leash, False)
    if not os.read(leash, 1):
        os._exit(1)
    os.close(leash)


def main() -> None:
    """Prepare the namespaces, then listen.

    The last words of the command line, after what `launch.labs` reads, are the folder that the lab was started from and
    the descriptor of a pipe, or `-`.
    """
    if sys.argv[-1].isdecimal():
        threading.Thread(target=_hold, args=(int(sys.argv[-1]),), daemon=True).start()
    use_single_arena()
    presize_intern_table()
    try:
        allow_long_files()
    except LabError as error:
        sys.exit(str(error))  # whoever waits for the socket tells what was printed last
    hierarchy = cgroup.find_hierarchy()
    mounts.mount("tmpfs", "lab", "/run", options="mode=755")
    SHARED.mkdir(parents=True)
    SHARED.chmod(0o1777)
    agent = Agent(sys.argv[-2])
    if hierarchy is not None:  # kept in sight before the lab's own /sys hides it
        GROUPS.mkdir()
        mounts.mount("", str(hierarchy.root), str(GROUPS), mounts.BIND)
        agent.lab.shares.hierarchy = cgroup.Hierarchy(GROUPS, hierarchy.version)
    mounts.mount("sysfs", "lab", "/sys")
    if user_namespace.is_inside():  # the machine's terminals can be made by nobody but root
        mounts.mount("devpts", "lab", "/dev/pts", options="newinstance,ptmxmode=0666,mode=620")
    set_interfaces(["lo"], up=True)
    socket.sethostname("localhost")  # a name that is found without any network
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    listen(SOCKET, agent)


if __name__ == "__main__":
    main()
