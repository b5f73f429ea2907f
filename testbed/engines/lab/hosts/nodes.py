"""Mininet nodes and links that are made in batches and start a shell only when somebody types a command."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Host, Node, Switch

from testbed.base.messages import Access
from testbed.engines.lab.hosts.commands import build_join_command
from testbed.engines.lab.hosts.inherited_files import give_nothing
from testbed.engines.lab.hosts.seccomp import guard


class _LazyShell:
    """Mixin: Mininet starts a bash for every node at once; here it starts with the first command."""

    wants_shell = False
    pid: int | None
    shell: Any

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        if self.wants_shell:
            options = mnopts
            if options is None and self.pid:
                # Without `d`, which is setsid() alone: bash then opens its terminal by name to make it the controlling
                # one, which Ctrl-C needs, and hosts do not have that name in their own /dev.
                options = f"-ca{self.pid}"
            super().startShell(options)  # type: ignore[misc]

    def sendCmd(self, *args: Any, **kwargs: Any) -> Any:  # noqa: N802 - Mininet's name
        self.need_shell()
        return super().sendCmd(*args, **kwargs)  # type: ignore[misc]

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        self.need_shell()
        return super().cmd(*args, **kwargs)  # type: ignore[misc]

    def need_shell(self) -> None:
        if self.shell is None and not self.wants_shell:
            self.wants_shell = True
            self.startShell()


class LabHost(_LazyShell, Host):  # type: ignore[misc]
    """A host: namespaces kept alive by one sleeping process.

    `holder` is the pid of that process; `procs` the file by which the host's programs join its share of the
    processors; `access` what they may do.
    """

    def __init__(
        self, name: str, holder: int, procs: str | None = None, access: Access = "read", **params: Any
    ) -> None:
        self.procs, self.access = procs, access
        self.holder = holder
        super().__init__(name, **params)
        self.pid = holder

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        """Start the shell, or what Mininet's popen() is asked for, as a program of the host.

        It gets nothing of this process, whose terminal is the caller's, but what Mininet names: for the shell that is
        a terminal of its own.
        """
        params = {"stdin": give_nothing(self.access), **params, "close_fds": True}
        command = guard_command(cmd, self.access)
        if params["stdin"] == self.slave:
            command = ["setsid", "--ctty", *command]
        return super()._popen(build_join_command(self.procs, command) if self.procs else command, **params)


def guard_command(command: Sequence[str], access: Access) -> list[str]:
    """Mininet's way into a host (`mnexec -da PID`, `mnexec -cdaPID`), with what a program in it may do after it."""
    entering = 1
    while entering < len(command) and (command[entering][:1] == "-" or command[entering].isdecimal()):
        entering += 1
    return [*command[:entering], *guard(access), *command[entering:]]


class LabIntf(Intf):  # type: ignore[misc]
    """An interface that was already made and configured in a batch."""

    def config(self, **params: Any) -> dict[str, object]:
        """Do nothing: the batch configured it."""
        self.ip, self.prefixLen = params.get("ip"), params.get("prefix")
        return {}


class LabSwitch(_LazyShell, Switch):  # type: ignore[misc]
    """A bridge of the lab's own Open vSwitch."""

    def __init__(self, name: str, **params: Any) -> None:
        # As Mininet's Switch does it, but without the shell that asks whether `lo` is up.
        Node.__init__(self, name, **{**params, "inNamespace": False})
        self.dpid = self.defaultDpid(None)
        self.opts = ""
        self.listenPort = None
        self.controlIntf = LabIntf("lo", self, port=0)

    def start(self, controllers: Any) -> None:
        """Do nothing: the fabric starts all switches in one transaction."""

    def dpctl(self, *args: str) -> str:
        """Run ovs-ofctl for Mininet's `dpctl` command."""
        command = ["ovs-ofctl", "-O", "OpenFlow13", args[0], self.name, *args[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


class LabLink(Link):  # type: ignore[misc]
    """A veth pair that was already made in a batch."""

    @classmethod
    def makeIntfPair(cls, *args: Any, **kwargs: Any) -> None:  # noqa: N802 - Mininet's name
        """Do nothing: the batch made it."""
