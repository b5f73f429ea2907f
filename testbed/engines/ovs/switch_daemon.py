"""One ovs-vswitchd and the ovsdb-server it takes its settings from, and how switches are divided among several."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.base.errors import LabError
from testbed.base.resources import setup
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.counters import procfs
from testbed.engines.lab.hosts.commands import FIRST, how_it_ended, run

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
START_LIMIT = 60.0  # generous, for busy machines that QEMU translates: what has ended is seen at once
_LOG_TAIL = 3
# Each poll of a port takes and returns 32 packet buffers: keep the memory instead of giving it back in between. Larger
# caches of freed blocks, and heaps by thread, fill for hours, which looks like a leak.
_MALLOC = {
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=7:glibc.malloc.arena_max=1:glibc.malloc.trim_threshold=268435456:"
    "glibc.malloc.mmap_threshold=268435456:glibc.malloc.top_pad=16777216"
}


def _answers(path: Path) -> bool:
    """Whether somebody listens at a socket; one that is bound and not yet listened at refuses."""
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        return True


class SwitchDaemon:
    """A pair of daemons that has some of the lab's bridges.

    Several share one run folder, in which a bridge's sockets are named after the bridge. The first daemon has the
    names that Open vSwitch's tools look for; those of the second end in `-2`, and so on.

    `number` counts from 0; `quick` starts it for the datapath of type `dummy`, and so that it keeps its memory. `alone`
    says that it has one bridge of many: if it stops, a switch has failed, and not the lab. `flows` is how many it keeps
    in its datapath, None = as many as it is installed for.
    """

    def __init__(
        self, folder: Path, number: int, *, quick: bool, alone: bool = False, flows: int | None = None
    ) -> None:
        self._folder = folder
        self._flows = flows
        self._quick = quick
        self._alone = alone
        self._suffix = f"-{number + 1}" if number else ""
        self._database = folder / f"db{self._suffix}.sock"
        self._control = folder / f"ovs-vswitchd{self._suffix}.ctl"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._killed: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        """False after kill() until restart()."""
        return self._killed is None

    @property
    def pid(self) -> int:
        """Of the ovs-vswitchd."""
        return self._processes[f"ovs-vswitchd{self._suffix}"].pid

    @property
    def target(self) -> str:
        """What `ovs-appctl -t` calls it."""
        return str(self._control) if self._suffix else "ovs-vswitchd"

    def start(self) -> None:
        """Start both as children, so that their death is noticed.

        Raises:
            LabError: Open vSwitch is not installed or does not come up.
        """
        file = self._folder / f"conf{self._suffix}.db"
        run(["ovsdb-tool", "create", str(file), str(SCHEMA)])
        self._spawn("ovsdb-server", [str(file), f"--remote=punix:{self._database}"])
        self._wait_until(lambda: _answers(self._database), "ovsdb-server")
        limit = (
            [] if self._flows is None else ["--", "set", "open_vswitch", ".", f"other_config:flow-limit={self._flows}"]
        )
        self.transact(["init", *limit])
        self._start_switches()

    def _start_switches(self) -> None:
        arguments = [f"unix:{self._database}"]
        if self._suffix:  # the name of the first has its pid in it, which the tools look up
            arguments.append(f"--unixctl={self._control}")
        if self._quick:
            arguments.append("--enable-dummy")
        self._spawn("ovs-vswitchd", arguments, before=FIRST)
        self._wait_for(self._folder / f"ovs-vswitchd{self._suffix}.pid", "ovs-vswitchd")

    def kill(self) -> None:
        """End the ovs-vswitchd at once, as a crash would; its settings stay."""
        process = self._processes[f"ovs-vswitchd{self._suffix}"]
        self._killed = process
        process.kill()
        process.wait()

    def restart(self, bridge: str) -> None:
        """Start it again after kill(): its bridges come back without rules.

        `bridge`, one of them, answers when this returns.

        Raises:
            LabError: it runs, or does not come up.
        """
        if self._killed is None:
            raise LabError(f"the switch {bridge} runs")
        management = self._folder / f"{bridge}.mgmt"
        for stale in (self._folder / f"ovs-vswitchd{self._suffix}.pid", self._control, management):
            stale.unlink(missing_ok=True)
        self._start_switches()
        self.transact(["init"], wait=True)  # until its bridges are there
        self._wait_until(lambda: _answers(management), f"the bridge {bridge}")
        self._killed = None

    def _spawn(self, program: str, arguments: Sequence[str], before: Sequence[str] = ()) -> None:
        name = program + self._suffix
        command = [
            *before,
            program,
            *arguments,
            "-vconsole:off",
            f"--log-file={self._folder / name}.log",
            "--no-chdir",
            f"--pidfile={self._folder / name}.pid",
        ]
        try:
            self._processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env={**os.environ, **(_MALLOC if self._quick and program == "ovs-vswitchd" else {})},
            )  # fmt: skip
        except FileNotFoundError as error:
            raise LabError(f"{program} is not installed; {setup()}") from error

    def _wait_for(self, path: Path, program: str) -> None:
        self._wait_until(path.exists, program)

    def _wait_until(self, holds: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + START_LIMIT
        while not holds():
            self.check_alive()
            if time.monotonic() > until:
                raise LabError(f"{what} did not come up in {START_LIMIT:g} s")
            time.sleep(0.002)

    def stop(self) -> None:
        """Kill both; quickly also for hundreds of ports.

        The userspace datapath holds a packet socket a port, and the kernel waits an RCU grace period for each that
        a dying process closes, one after the other: seconds for a large lab. So take the sockets over and close
        them side by side.
        """
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                sockets = take_sockets(process.pid)
                process.kill()
                process.wait()
                with ThreadPoolExecutor(max(1, len(sockets))) as pool:
                    list(pool.map(os.close, sockets))

    def check_alive(self) -> None:
        """Raise LabError, with the end of its log, if one has ended."""
        for name, process in self._processes.items():
            code = process.poll()
            if code is not None and process is not self._killed:
                log = self._folder / f"{name}.log"
                tail = log.read_text(errors="replace").splitlines()[-_LOG_TAIL:] if log.exists() else []
                raise LabError(f"{name} {how_it_ended(code)}; the lab's switches are gone. " + " | ".join(tail))
            if code is None and not self._alone and _is_stopped(process.pid):
                raise LabError(f"{name} is stopped, as by SIGSTOP, so the lab's switches do not answer")

    def transact(self, arguments: Sequence[str], *, wait: bool = False) -> str:
        """Run one ovs-vsctl transaction; `wait` until the daemon has carried it out."""
        limit = f"--timeout={START_LIMIT:.0f}"
        return run(["ovs-vsctl", f"--db=unix:{self._database}", limit, *([] if wait else ["--no-wait"]), *arguments])

    def rows(self, table: str, columns: str) -> list[list[object]]:
        """Rows of a table of the database, each in the order of the columns (comma-separated)."""
        text = self.transact(["--format=json", f"--columns={columns}", "list", table])
        rows: list[list[object]] = json.loads(text)["data"]
        return rows

    def with_packet_sockets(self, change: Callable[[socket.socket], None]) -> None:
        """Apply a change to each packet socket that the ovs-vswitchd has now."""
        for number in take_sockets(self.pid):
            with socket.socket(fileno=number) as one:
                if one.family == socket.AF_PACKET:
                    change(one)


def open_files(ports: Sequence[int]) -> int:
    """How many files a daemon has open that carries switches with so many ports, and some to spare.

    Of the userspace datapath: three tori and a mesh had one a port, two a switch and 42 (62 of 4 switches, 938 of 128).
    """
    return sum(ports) + 2 * len(ports) + _SPARE_FILES


_SPARE_FILES = 42 + 200
# Measured with `python -m benchmarks data-plane`; see docs/decisions/0011-open-vswitch-as-a-switch.md.
_PORTS_WORTH_A_DAEMON = 16


def switch_ports(order: BuildOrder) -> dict[str, int]:
    """Number of ports of each switch that is to be built."""
    ports = dict.fromkeys(order.switches, 0)
    for host in order.hosts:
        ports[host.switch] += 1
    for link in order.links:
        for switch, _ in link.ends:
            ports[switch] += 1
    return ports


def daemon_count(wanted: int | str, datapath: str, processors: int, ports: Mapping[str, int]) -> int:
    """How many daemons a lab gets.

    The userspace datapath works in one thread of its daemon, so that a daemon a processor uses all of them. The
    kernel's datapath does not work in the daemon.

    `wanted`: a number, or `auto`; `ports`: switch → number of its ports.
    """
    if wanted != "auto":
        return int(wanted)
    if datapath == "kernel":
        return 1
    return max(1, min(processors, len(ports), sum(ports.values()) // _PORTS_WORTH_A_DAEMON))


def divide(ports: Mapping[str, int], count: int) -> list[list[str]]:
    """Divide switches in their order into shares with about as many ports each.

    Neighbours in order are mostly neighbours in the fabric, and a frame that stays with its daemon is cheaper.

    No share is empty. `ports`: switch → number of its ports.
    """
    names = list(ports)
    shares: list[list[str]] = []
    left = sum(ports.values())
    start = 0
    for number in range(count):
        others = count - number - 1
        fair, share, end = left / (others + 1), 0, start
        # Take the next switch while that comes nearer to a fair share, but leave one for each of the others.
        while end < len(names) - others and (others == 0 or end == start or share + ports[names[end]] / 2 <= fair):
            share += ports[names[end]]
            end += 1
        shares.append(names[start:end])
        left -= share
        start = end
    return shares


def _is_stopped(pid: int) -> bool:
    """Whether a process has been stopped by a signal."""
    try:
        return procfs.read_kernel_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False  # it has ended meanwhile


_SYS_PIDFD_GETFD = 438  # the same number on every architecture


def take_sockets(pid: int) -> list[int]:
    """Duplicates of all sockets of another process; empty where the kernel cannot (before Linux 5.6)."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return []
    taken = []
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                is_socket = str(entry.readlink()).startswith("socket:")
            except OSError:
                continue
            copy = libc.syscall(_SYS_PIDFD_GETFD, handle, int(entry.name), 0) if is_socket else -1
            if copy >= 0:
                taken.append(copy)
    finally:
        os.close(handle)
    return taken
