"""The lab's Open vSwitch: its bridges, divided among one or more daemons of its own inside the lab's namespaces."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from testbed.base.errors import LabError
from testbed.engines.lab.counters.socket_buffers import set_buffer
from testbed.engines.lab.hosts.commands import run, run_each
from testbed.engines.ovs.switch_daemon import START_LIMIT, SwitchDaemon
from testbed.fabric.openflow.tables import FORWARDING

_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
# Memory the kernel counts for a full frame, generously; and what a receiving port may hold while the daemon is busy.
_FRAME_MEMORY = 4096
_RECEIVE_BUFFER = 4 << 20
_MAX_BUFFER = 1 << 30
_MAX_BACKOFF_MS = 1000
_FRAMES_A_SECOND = 1000  # that a switch hands over
_PROBE_DATAPATH = "system@testbed-probe"
_TEMPORARY = "/tmp"  # of ovsdb-server, whatever TMPDIR says
# Open vSwitch takes the number of processors for 0 until the machine's clock shows this, s, and with the kernel's
# datapath then has no thread that looks up the first frame of a flow.
_PROCESSORS_COUNT_FROM = 10.0

_T = TypeVar("_T")


class OpenVSwitch:
    """The lab's Open vSwitch.

    Args:
        folder: its run folder; sockets, databases and logs.

    Attributes:
        datapath: `kernel` or `userspace`; empty until it is chosen.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.datapath = ""
        self._quick = False
        self._entries: dict[str, int] = {}
        self._daemons: list[SwitchDaemon] = []
        self._daemon_of: dict[str, SwitchDaemon] = {}
        self._number: dict[str, int] = {}

    @property
    def shares(self) -> list[list[str]]:
        """Bridges of each daemon."""
        return [[name for name, its in self._daemon_of.items() if its is daemon] for daemon in self._daemons]

    @property
    def pids(self) -> list[int]:
        """Of every ovs-vswitchd, in the order of its share of the bridges."""
        return [daemon.pid for daemon in self._daemons]

    @property
    def killed_switches(self) -> list[str]:
        """Switches whose process kill() has ended, and restart() has not started since."""
        return [name for name, daemon in self._daemon_of.items() if not daemon.is_alive]

    def choose_datapath(self, wanted: str) -> str:
        """Try the kernel datapath, and settle for the userspace one only where that is allowed.

        Args:
            wanted: `auto`, `kernel` or `userspace`.

        Returns:
            `kernel` or `userspace`.

        Raises:
            LabError: `kernel` was asked for and does not work here.
        """
        if wanted == "userspace":
            self.datapath = wanted
            return wanted
        try:
            run(["ovs-dpctl", "add-dp", _PROBE_DATAPATH], timeout=START_LIMIT)
            run(["ovs-dpctl", "del-dp", _PROBE_DATAPATH], timeout=START_LIMIT)
            self.datapath = "kernel"
        except LabError as error:
            if wanted == "kernel":
                raise LabError(
                    "the kernel datapath of Open vSwitch does not work here (module openvswitch missing?): "
                    "load the module, or use lab.datapath: userspace, which is slower"
                ) from error
            self.datapath = "userspace"
        return self.datapath

    def start(
        self,
        shares: Sequence[Sequence[str]] = ((),),
        *,
        stock: bool = False,
        order: Sequence[str] = (),
        flows: Sequence[int] = (),
        entries: Mapping[str, int] | None = None,
    ) -> None:
        """Start a daemon a share of the bridges.

        Args:
            shares: names of bridges.
            order: all bridges in the order of their datapath ids, from 1; none = as the shares have them.
            stock: leave out what makes them quicker, to compare.
            flows: of each share, how many its daemon keeps in its datapath; none = as it is installed.
            entries: bridge → rules that its forwarding table has at most; others have no limit.

        Raises:
            LabError: Open vSwitch is not installed or does not come up.
        """
        try:
            with tempfile.TemporaryFile(dir=_TEMPORARY, buffering=0) as file:
                file.write(bytes(1))
        except OSError as error:
            sentence = f"{_TEMPORARY} cannot be written, where Open vSwitch keeps transactions: {error.strerror}"
            raise LabError(f"{sentence}; nothing was built") from error
        self.folder.mkdir(parents=True, exist_ok=True)
        os.environ.update({name: str(self.folder) for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR")})
        self._quick = self.datapath == "userspace" and not stock
        self._entries = dict(entries or {})
        self._daemons = [
            SwitchDaemon(
                self.folder,
                number,
                quick=self._quick,
                alone=len(share) == 1 < len(shares),
                flows=None if stock or not flows else flows[number],
            )
            for number, share in enumerate(shares)
        ]
        self._daemon_of = {
            bridge: daemon for daemon, share in zip(self._daemons, shares, strict=True) for bridge in share
        }
        self._number = {bridge: number for number, bridge in enumerate(order or self._daemon_of, 1)}
        if self.datapath == "kernel":
            time.sleep(max(0.0, _PROCESSORS_COUNT_FROM - time.monotonic()))
        self._call_daemons(lambda daemon: daemon.start())

    def _call_daemons(self, call: Callable[[SwitchDaemon], _T]) -> list[_T]:
        """Call with all daemons at once."""
        with ThreadPoolExecutor(len(self._daemons) or 1) as pool:
            return list(pool.map(call, self._daemons))

    def stop(self) -> None:
        """Kill all daemons; quickly also for hundreds of ports."""
        self._call_daemons(lambda daemon: daemon.stop())

    def kill(self, bridge: str) -> None:
        """End the process of a switch, at once.

        Raises:
            LabError: it shares its process with others.
        """
        daemon = self._daemon_of[bridge]
        others = [name for name, its in self._daemon_of.items() if its is daemon and name != bridge]
        if others:
            raise LabError(f"{bridge} shares its process with {others[0]}, so it cannot be killed alone")
        daemon.kill()

    def restart(self, bridge: str, ports: Mapping[str, int], frames: int) -> None:
        """Start the process of a switch again after kill(); its rules are gone, and the queueing of its ports.

        Args:
            bridge: the switch.
            ports: as for prepare_sockets(), of this bridge.
            frames: likewise.
        """
        self._daemon_of[bridge].restart(bridge)
        self._prepare(ports, frames, [self._daemon_of[bridge]])

    def check_alive(self) -> None:
        """Raise LabError, with the end of its log, if a daemon has ended."""
        for daemon in self._daemons:
            daemon.check_alive()

    def add_bridges(self) -> None:
        """Make the bridges of all shares, without ports: fail mode secure, no spanning tree, OpenFlow 1.3 and 1.5.

        The datapath id of a bridge is its place in the order, from 1.
        """
        # The userspace datapath comes as two types. With `dummy` a bridge's own port is not a device of the kernel,
        # which the daemon would have to poll, and several daemons can work in one network namespace.
        kind = "dummy" if self._quick else "netdev" if self.datapath == "userspace" else "system"
        arguments: dict[SwitchDaemon, list[str]] = {daemon: [] for daemon in self._daemons}
        for bridge, daemon in self._daemon_of.items():
            arguments[daemon] += [
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
                f"other_config:datapath-id={self._number[bridge]:016x}",
            ]
            if bridge in self._entries:
                arguments[daemon] += [
                    "--",
                    f"--id=@{bridge}",
                    "create",
                    "flow_table",
                    f"flow_limit={self._entries[bridge]}",
                    "overflow_policy=refuse",
                    "--",
                    "set",
                    "bridge",
                    bridge,
                    f"flow_tables:{FORWARDING.number}=@{bridge}",
                ]
        self._transact_each(arguments)

    def set_controllers(self, targets: Sequence[str]) -> None:
        """Have every bridge connect to these controllers, such as `tcp:127.0.0.1:6653`, and to no other.

        Fail mode secure keeps the rules of a bridge whose controllers are all gone.
        """
        arguments: dict[SwitchDaemon, list[str]] = {daemon: [] for daemon in self._daemons}
        for bridge, daemon in self._daemon_of.items():
            arguments[daemon] += ["--", "del-controller", bridge]
            for number, target in enumerate(targets):
                record = f"@{bridge}-{number}"
                arguments[daemon] += [
                    "--",
                    f"--id={record}",
                    "create",
                    "controller",
                    f'target="{target}"',
                    "connection_mode=out-of-band",
                    # A controller that is restarted finds all switches within a second, instead of eight.
                    f"max_backoff={_MAX_BACKOFF_MS}",
                    # A host that floods its port with LLDP frames crowds out its own, and no other port's.
                    f"controller_rate_limit={_FRAMES_A_SECOND}",
                    f"controller_burst_limit={_FRAMES_A_SECOND}",
                    "--",
                    "add",
                    "bridge",
                    bridge,
                    "controller",
                    record,
                ]
        self._transact_each(arguments)

    def _transact_each(self, arguments: Mapping[SwitchDaemon, Sequence[str]]) -> None:
        self._call_daemons(
            lambda daemon: daemon.transact(arguments[daemon][1:], wait=True) if arguments[daemon] else ""
        )

    def add_ports(self, ports: Sequence[tuple[str, str, int]]) -> None:
        """Add (bridge, interface, port number) in one transaction a daemon, and read the numbers back.

        Raises:
            LabError: a port did not get the number that the rules use.
        """
        arguments: dict[SwitchDaemon, list[str]] = {daemon: [] for daemon in self._daemons}
        for bridge, interface, number in ports:
            arguments[self._daemon_of[bridge]] += [
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
        self._transact_each(arguments)
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
        return [row for rows in self._call_daemons(lambda daemon: daemon.rows(table, columns)) for row in rows]

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

    def change(self, rules: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]]) -> None:
        """Change rules, each bridge's as one bundle, and groups in place of those of their numbers.

        Returns when no flow of a datapath is of what was before: a round of the revalidators may have begun before the
        change, so the one after it is waited for.
        """
        for version, command, wanted in (("13", "add-flows", rules), ("15", "add-groups", groups)):
            argv = ["ovs-ofctl", "-O", f"OpenFlow{version}", "--bundle", command]
            run_each({to: ([*argv, to, "-"], "\n".join(lines) + "\n") for to, lines in wanted.items() if lines})
        for _ in range(2):
            self.flush_statistics()

    def dump_groups(self, bridges: Sequence[str]) -> dict[str, list[str]]:
        """Groups the running switches have, a line each."""
        texts = run_each({name: (["ovs-ofctl", "-O", "OpenFlow15", "dump-groups", name], None) for name in bridges})
        return {name: [line for line in text.splitlines() if "group_id=" in line] for name, text in texts.items()}

    def trace(self, frames: Sequence[tuple[str, str]]) -> list[str]:
        """What `ofproto/trace` says of each (bridge, flow)."""
        jobs = {
            str(n): (["ovs-appctl", "-t", self._daemon_of[bridge].target, "ofproto/trace", bridge, flow], None)
            for n, (bridge, flow) in enumerate(frames)
        }
        texts = run_each(jobs)
        return [texts[name] for name in jobs]

    def prepare_sockets(self, ports: Mapping[str, int], frames: int) -> None:
        """Let the userspace datapath queue as many frames as its ports' queues hold, and not hear what it sends.

        A daemon sends through one packet socket for all ports, whose default buffer holds some 90 frames; beyond that
        it drops frames that no counter shows. The limit of the machine stays as it is: the sockets are reached through
        the daemons' processes. A sending socket exists from the first frame on, so each daemon sends one.

        Args:
            ports: bridge → one of its ports; bridges with a host first, each with its host's port.
            frames: sum of all queues.
        """
        if self.datapath == "userspace":
            self._prepare(ports, frames, self._daemons)

    def _prepare(self, ports: Mapping[str, int], frames: int, daemons: Sequence[SwitchDaemon]) -> None:
        def prepare(one: socket.socket) -> None:
            set_buffer(one, socket.SO_SNDBUF, min(frames * _FRAME_MEMORY, _MAX_BUFFER))
            set_buffer(one, socket.SO_RCVBUF, _RECEIVE_BUFFER)
            if self._quick:  # else the kernel hands each port's socket a copy of what the port sends
                one.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)

        hello = "ffffffffffff" + "020000000000" + "88b5" + "00" * 46
        bridge_of = {self._daemon_of[bridge]: bridge for bridge in reversed(list(ports))}
        for bridge in bridge_of.values():
            out = f"in_port=controller packet={hello} actions=output:{ports[bridge]}"
            run(["ovs-ofctl", "-O", "OpenFlow13", "packet-out", bridge, out])
        with ThreadPoolExecutor(len(daemons)) as pool:
            list(pool.map(lambda daemon: daemon.with_packet_sockets(prepare), daemons))

    def each_packet_socket(self, bridges: Collection[str], change: Callable[[socket.socket], None]) -> None:
        """Apply a change to each packet socket of the processes that have some switches."""
        daemons = {self._daemon_of[bridge] for bridge in bridges}
        with ThreadPoolExecutor(len(daemons) or 1) as pool:
            list(pool.map(lambda daemon: daemon.with_packet_sockets(change), daemons))

    def dump(self, bridges: Sequence[str], *, counters: bool = False) -> dict[str, list[str]]:
        """Rules the running switches have, a line each; with packet counters if asked."""
        show = [] if counters else ["--no-stats"]
        texts = run_each(
            {
                bridge: (["ovs-ofctl", "-O", "OpenFlow13", "--no-names", *show, "dump-flows", bridge], None)
                for bridge in bridges
                if self._daemon_of[bridge].is_alive
            }
        )
        return {name: [line for line in text.splitlines() if "actions=" in line] for name, text in texts.items()}

    def flush_statistics(self) -> None:
        """Return when a round has ended in which rules, whose counters lag behind, take over the datapath's counts."""
        alive = {daemon.target: (["ovs-appctl", "-t", daemon.target, "revalidator/wait"], None)
                 for daemon in self._daemons if daemon.is_alive}  # fmt: skip
        run_each(alive)

    def forget_flows(self) -> None:
        """Take all flows out of the datapath: the next frame of each is looked up in the rules.

        A flow outlives its rules by ten seconds without frames. Of rules that were removed it says that frames are to
        be dropped, also when the same rules are there again, until a revalidator has looked at it.
        """
        self._call_daemons(
            lambda daemon: run(["ovs-appctl", "-t", daemon.target, "revalidator/purge"]) if daemon.is_alive else ""
        )

    def version(self) -> str:
        """First line of `ovs-vswitchd --version`."""
        return run(["ovs-vswitchd", "--version"]).splitlines()[0]
