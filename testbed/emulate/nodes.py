"""Mininet nodes and links that are made in batches and start a shell only when somebody types a command."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Host, Node, Switch

from testbed.emulate.commands import joining

_NAMESPACE_TIMEOUT = 10.0


class _LazyShell:
    """Mixin: Mininet starts a bash for every node at once; here it starts with the first command."""

    wants_shell = False
    pid: int | None
    shell: Any

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        if self.wants_shell:
            options = mnopts
            if options is None and self.pid:
                options = f"-cda{self.pid}"
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
    """A host: a network namespace kept alive by one sleeping process.

    `holder` is the pid of the sleeping process to adopt, none = start one; `procs` the file by which the host's
    programs join its share of the processors.
    """

    def __init__(self, name: str, holder: int | None = None, procs: str | None = None, **params: Any) -> None:
        self.procs = procs
        self.process: subprocess.Popen[bytes] | None = None
        if holder is None:
            self.process = subprocess.Popen(["mnexec", "-n", "sleep", "infinity"])
            holder = self.process.pid
        self.holder = holder
        super().__init__(name, **params)
        self.pid = holder

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        """Start the shell, or what Mininet's popen() is asked for, within the host's share of the processors."""
        return super()._popen(joining(self.procs, cmd) if self.procs else cmd, **params)

    def wait_for_namespace(self) -> None:
        """Return once the holder has its own network namespace.

        Raises:
            OSError: the holder ended, or has none in ten seconds.
        """
        own = Path("/proc/self/ns/net").readlink()
        until = time.monotonic() + _NAMESPACE_TIMEOUT
        while Path(f"/proc/{self.holder}/ns/net").readlink() == own:
            if time.monotonic() > until:
                raise OSError(f"{self.name}: no network namespace in {_NAMESPACE_TIMEOUT:g} s")
            time.sleep(0.0005)


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
