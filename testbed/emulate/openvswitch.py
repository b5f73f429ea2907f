"""A private Open vSwitch: its own database server, daemon and run folder, inside the lab's namespaces."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.emulate.commands import run, run_each
from testbed.errors import LabError

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_START_LIMIT = 20.0
_LOG_TAIL = 3
_SYS_PIDFD_GETFD = 438  # the same number on every architecture
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
# Memory the kernel counts for a full frame, generously; and what a receiving port may hold while the daemon is busy.
_FRAME_MEMORY = 4096
_RECEIVE_BUFFER = 4 << 20
_LARGEST_BUFFER = 1 << 30
_PROBE_DATAPATH = "system@testbed-probe"


class OpenVSwitch:
    """The lab's Open vSwitch.

    Args:
        folder: its run folder; sockets, database and logs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.datapath = ""
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> list[int]:
        """Of every ovs-vswitchd."""
        return [self._daemons["ovs-vswitchd"].pid]

    def start(self) -> None:
        """Start both daemons as children, so that their death is noticed.

        Raises:
            LabError: Open vSwitch is not installed or does not come up.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        os.environ.update({name: str(self.folder) for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")})
        database, socket = self.folder / "conf.db", self.folder / "db.sock"
        run(["ovsdb-tool", "create", str(database), str(SCHEMA)])
        self._spawn("ovsdb-server", [str(database), f"--remote=punix:{socket}"])
        self._wait_for(socket, "ovsdb-server")
        self.transact(["init"])
        # Switches come before hosts, as in hardware: programs that spin must not starve them.
        self._spawn("ovs-vswitchd", [f"unix:{socket}"], before=("nice", "-n", "-15"))

    def _spawn(self, name: str, arguments: Sequence[str], before: Sequence[str] = ()) -> None:
        command = [
            *before,
            name,
            *arguments,
            "-vconsole:off",
            f"--log-file={self.folder / name}.log",
            "--no-chdir",
            f"--pidfile={self.folder / name}.pid",
        ]
        try:
            self._daemons[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except FileNotFoundError as error:
            raise LabError(f"{name} is not installed; run `make setup`") from error

    def _wait_for(self, path: Path, daemon: str) -> None:
        until = time.monotonic() + _START_LIMIT
        while not path.exists():
            self.check_alive()
            if time.monotonic() > until:
                raise LabError(f"{daemon} did not come up in {_START_LIMIT:g} s")
            time.sleep(0.002)

    def stop(self) -> None:
        """Kill both daemons; quickly also for hundreds of ports.

        The userspace datapath holds a packet socket a port, and the kernel waits an RCU grace period for each that
        a dying process closes, one after the other: seconds for a large lab. So take the sockets over and close
        them side by side.
        """
        for process in self._daemons.values():
            if process.poll() is None:
                process.send_signal(signal.SIGSTOP)
                sockets = _take_sockets(process.pid)
                process.kill()
                process.wait()
                with ThreadPoolExecutor(max(1, len(sockets))) as pool:
                    list(pool.map(os.close, sockets))

    def check_alive(self) -> None:
        """Raise LabError, with the end of its log, if a daemon has ended."""
        for name, process in self._daemons.items():
            code = process.poll()
            if code is not None:
                how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
                log = self.folder / f"{name}.log"
                tail = log.read_text(errors="replace").splitlines()[-_LOG_TAIL:] if log.exists() else []
                raise LabError(f"{name} {how}; the lab's switches are gone. " + " | ".join(tail))

    def transact(self, arguments: Sequence[str], *, wait: bool = False) -> str:
        """Run one ovs-vsctl transaction; `wait` until the daemon has carried it out."""
        return run(["ovs-vsctl", f"--timeout={_START_LIMIT * 3:.0f}", *([] if wait else ["--no-wait"]), *arguments])

    def choose_datapath(self, wanted: str) -> str:
        """Try the kernel datapath, and settle for the userspace one only where that is allowed.

        Args:
            wanted: `auto`, `kernel` or `userspace`.

        Returns:
            `kernel` or `userspace`.

        Raises:
            LabError: `kernel` was asked for and does not work here.
        """
        self._wait_for(self.folder / "ovs-vswitchd.pid", "ovs-vswitchd")
        if wanted == "userspace":
            self.datapath = wanted
            return wanted
        try:
            run(["ovs-dpctl", "add-dp", _PROBE_DATAPATH], timeout=_START_LIMIT)
            run(["ovs-dpctl", "del-dp", _PROBE_DATAPATH], timeout=_START_LIMIT)
            self.datapath = "kernel"
        except LabError as error:
            if wanted == "kernel":
                raise LabError(
                    "the kernel datapath of Open vSwitch does not work here (module openvswitch missing?): "
                    "load the module, or use lab.datapath: userspace, which is slower"
                ) from error
            self.datapath = "userspace"
        return self.datapath

    def add_bridges(self, bridges: Sequence[str]) -> None:
        """Make bridges without ports: fail mode secure, no spanning tree, OpenFlow 1.3, and 1.5 for groups."""
        kind = "netdev" if self.datapath == "userspace" else "system"
        arguments: list[str] = []
        for bridge in bridges:
            arguments += [
                "--",
                "add-br",
                bridge,
                "--",
                "set",
                "bridge",
                bridge,
                f"datapath_type={kind}",
                "fail_mode=secure",
                "stp_enable=false",
                "rstp_enable=false",
                "protocols=OpenFlow13,OpenFlow15",
                "other_config:disable-in-band=true",
            ]
        self.transact(arguments[1:], wait=True)

    def add_ports(self, ports: Sequence[tuple[str, str, int]]) -> None:
        """Add (bridge, interface, port number) in one transaction, and read the numbers back.

        Raises:
            LabError: a port did not get the number that the rules use.
        """
        arguments: list[str] = []
        for bridge, interface, number in ports:
            arguments += [
                "--",
                "add-port",
                bridge,
                interface,
                "--",
                "set",
                "interface",
                interface,
                f"ofport_request={number}",
            ]
        if not arguments:
            return
        self.transact(arguments[1:], wait=True)
        got = {row[0]: row[1] for row in self._rows("interface", "name,ofport")}
        wrong = [f"{name} has {got.get(name)} instead of {port}" for _, name, port in ports if got.get(name) != port]
        if wrong:
            raise LabError(f"Open vSwitch gave {len(wrong)} ports another number: {', '.join(wrong[:3])}")

    def spanning_tree_problems(self) -> list[str]:
        """Bridges where STP or RSTP is on, as read back; there must be none."""
        rows = self._rows("bridge", "name,stp_enable,rstp_enable,fail_mode")
        return [
            f"{name}: STP {stp}, RSTP {rstp}, fail mode {mode}"
            for name, stp, rstp, mode in rows
            if stp or rstp or mode != "secure"
        ]

    def _rows(self, table: str, columns: str) -> list[list[object]]:
        text = run(["ovs-vsctl", "--no-wait", "--format=json", f"--columns={columns}", "list", table])
        rows: list[list[object]] = json.loads(text)["data"]
        return rows

    def install(self, rules: Mapping[str, Sequence[str]]) -> None:
        """Install each bridge's rules as one bundle: all of them or none."""
        run_each(
            {
                bridge: (
                    ["ovs-ofctl", "-O", "OpenFlow13", "--bundle", "replace-flows", bridge, "-"],
                    "\n".join(lines) + "\n",
                )
                for bridge, lines in rules.items()
            }
        )

    def install_groups(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Install each bridge's groups, which must be there before the rules that name them."""
        run_each(
            {
                bridge: (["ovs-ofctl", "-O", "OpenFlow15", "add-groups", bridge, "-"], "\n".join(lines) + "\n")
                for bridge, lines in groups.items()
                if lines
            }
        )

    def dump_groups(self, bridges: Sequence[str]) -> dict[str, list[str]]:
        """Groups the running switches have, a line each."""
        texts = run_each({name: (["ovs-ofctl", "-O", "OpenFlow15", "dump-groups", name], None) for name in bridges})
        return {name: [line for line in text.splitlines() if "group_id=" in line] for name, text in texts.items()}

    def trace(self, frames: Sequence[tuple[str, str]]) -> list[str]:
        """What `ofproto/trace` says of each (bridge, flow)."""
        jobs = {str(n): (["ovs-appctl", "ofproto/trace", *frame], None) for n, frame in enumerate(frames)}
        texts = run_each(jobs)
        return [texts[name] for name in jobs]

    def enlarge_buffers(self, bridge: str, port: int, frames: int) -> None:
        """Let the userspace datapath queue as many frames as its ports' queues hold.

        It sends through one packet socket for all ports, whose default buffer holds some 90 frames; beyond that it
        drops frames that no counter shows. The limit of the machine stays as it is: the sockets are reached through
        the daemon's process. The sending socket exists from the first frame on, so one is sent to a host.

        Args:
            bridge: a bridge with a host.
            port: the host's port.
            frames: sum of all queues.
        """
        if self.datapath != "userspace":
            return
        hello = "ffffffffffff" + "020000000000" + "88b5" + "00" * 46
        run(
            [
                "ovs-ofctl",
                "-O",
                "OpenFlow13",
                "packet-out",
                bridge,
                f"in_port=controller packet={hello} actions=output:{port}",
            ]
        )
        for number in _take_sockets(self._daemons["ovs-vswitchd"].pid):
            with socket.socket(fileno=number) as one:
                if one.family == socket.AF_PACKET:
                    one.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, min(frames * _FRAME_MEMORY, _LARGEST_BUFFER))
                    one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)

    def dump(self, bridges: Sequence[str], *, counters: bool = False) -> dict[str, list[str]]:
        """Rules the running switches have, a line each; with packet counters if asked."""
        show = [] if counters else ["--no-stats"]
        texts = run_each(
            {
                bridge: (["ovs-ofctl", "-O", "OpenFlow13", "--no-names", *show, "dump-flows", bridge], None)
                for bridge in bridges
            }
        )
        return {name: [line for line in text.splitlines() if "actions=" in line] for name, text in texts.items()}

    def version(self) -> str:
        """First line of `ovs-vswitchd --version`."""
        return run(["ovs-vswitchd", "--version"]).splitlines()[0]


def _take_sockets(pid: int) -> list[int]:
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
