"""The lab network: switches, hosts and links that are made in a few batches."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.base.errors import LabError
from testbed.base.ethernet import VLAN_TAG, WIRE_OVERHEAD
from testbed.base.messages import (
    FastPathEntries,
    FrameCounts,
    LinkChange,
    LinkReadings,
    LinkState,
    PairReadings,
    Snapshot,
)
from testbed.engines.lab.build_order import BuildOrder, HostOrder
from testbed.engines.lab.counters import counters, procfs
from testbed.engines.lab.hosts.commands import how_it_ended, in_host, run, run_each
from testbed.engines.lab.hosts.host_view import is_hidden, program_folders, show, start_holders
from testbed.engines.lab.hosts.interface_names import (
    HOST_INTERFACE,
    channel_ports,
    far_end,
    host_ports,
    port_interface,
    vlan_interface,
)
from testbed.engines.lab.hosts.interfaces import set_interfaces
from testbed.engines.lab.hosts.shaping import (
    HEAD_DROP,
    HOST_QUEUE,
    TAIL_DROP,
    Shaping,
    read_back_commands,
    require_speeds,
    shaping_problems,
)
from testbed.engines.lab.hosts.vlan_interfaces import ANY_INTERFACE, has_8021q, host_lines, tag_by_classifiers
from testbed.engines.ovs.fast_path import FastPath, open_fast_path
from testbed.engines.ovs.fast_path_sync import FastPathSync
from testbed.engines.ovs.first_hop import copy_at
from testbed.engines.ovs.netem import MISSING, UNKNOWN, Netem
from testbed.engines.ovs.switch_backend import SwitchBackend

if TYPE_CHECKING:
    from testbed.base.model import Floats, Longs
    from testbed.engines.lab.counters.rtnetlink import PortCounters
    from testbed.engines.lab.counters.telemetry import Telemetry

# Room for the VLAN tag on links between switches.
_TRUNK_MTU = 1504
_AS_PLANNED = LinkState()
# Open vSwitch carries the datapath's packet counts over to its rules twice a second, in rounds. The one that is under
# way may have passed some by; the next one has them all.
_ROUNDS = 2
_ENDED = 1.0  # s
_FRAMES = slice(0, 2)  # of the figures of a port: frames taken in and sent

Progress = Callable[[str], None]


class LabNetwork:
    """The hosts and links of a lab, and what is asked of them.

    Args:
        order: what is to be built.
        holders: host → pid to adopt the namespaces of a running lab; none = make them.
        switches: whose processes run by the time of make(); None = those of a lab that is adopted are left alone.
    """

    # Linux's TCP puts several segments at a time into a queue, whatever an interface can do. A shaper then counts one
    # gap between frames for all of them: hosts would send up to 1.6 % too much.
    segments_at_once = 1
    # What a program may put into a host's TCP beyond what is on the way; with megabytes there, iperf3 would spin until
    # a slow link has carried them.
    unsent_bytes = 16384

    def __init__(
        self,
        order: BuildOrder,
        holders: Mapping[str, int] | None = None,
        switches: SwitchBackend | None = None,
    ) -> None:
        self.order = order
        self._open_vswitch = switches
        self.changed: dict[int, LinkState] = {}  # links that run otherwise than planned
        self.fast_path: FastPath | None = None
        self.short_cuts: FastPathSync | None = None  # what keeps it in step with the switches
        self.why_slow = ""  # why there is none; empty where nobody asked for one
        self.tsq_backpressure_reason = (
            ""  # why hosts' sockets wait for queues of switches, too; empty where they do not
        )
        self._reading = threading.Lock()
        self._figures: PortCounters | None = None  # made when somebody looks
        self._in_rules: list[list[int]] = []  # frames of all ports when the rules had last counted them
        self._pairs: tuple[Callable[[], Longs] | None, str] | None = None  # likewise
        self._shown: set[tuple[int, Path]] = set()
        # Of those that this has started; nothing is known of how others' ended.
        self._kept = {} if holders else start_holders([host.name for host in order.hosts], order.host_access)
        # Pid of the process that keeps each host's namespaces.
        self.holders = dict(holders or {name: process.pid for name, process in self._kept.items()})

    @property
    def open_vswitch(self) -> SwitchBackend:
        """The switches' processes.

        Raises:
            LabError: this network has none of its own.
        """
        if self._open_vswitch is None:
            raise LabError(
                "the switches of this lab are no Open vSwitch of this program, so they have no rules, groups or traces"
            )
        return self._open_vswitch

    @property
    def datapath(self) -> str:
        """What forwards frames: `kernel`, `userspace` or `model`."""
        return self.open_vswitch.datapath

    @property
    def switch_pids(self) -> list[int]:
        """Of the processes that forward frames."""
        return self.open_vswitch.pids

    def check_switches(self) -> None:
        """Raise LabError, with the reason, if what forwards frames has ended and was not killed on purpose."""
        self.open_vswitch.check_alive()

    def stop_switches(self) -> None:
        """End what forwards frames."""
        self.open_vswitch.stop()

    def check_hosts(self) -> None:
        """Raise LabError if what keeps a host's namespaces has died, so that no program can enter them any more."""
        dead = [name for name, pid in self.holders.items() if not procfs.has_network(pid)]
        if dead:
            raise LabError(
                f"{', '.join(dead[:5])} died{self._death(dead[0])}: no program can enter such a host any more, and "
                "what ran there was left alone; end the lab with `testbed down` and build it anew"
            )

    def _death(self, host: str) -> str:
        """How the process ended that kept a host's namespaces; empty where nothing is known."""
        kept = self._kept.get(host)
        if kept is None:
            return ""
        with suppress(subprocess.TimeoutExpired):  # it loses its namespaces a moment before it has ended
            kept.wait(_ENDED)
        how = how_it_ended(kept.returncode)
        return f" (the process that keeps {host} {how})" if how else ""

    def share_folder(self, folder: Path, hosts: Sequence[str] | None = None) -> None:
        """Let hosts, all or some, read a folder of the machine that they may read and that is hidden from them.

        Raises:
            LabError: it cannot be shown.
        """
        if not is_hidden(folder, self.order.host_access):
            return
        wanted = self.holders if hosts is None else {name: self.holders[name] for name in hosts}
        for pid in wanted.values():
            if not any((pid, above) in self._shown for above in (folder, *folder.parents)):
                show([pid], folder)
                self._shown.add((pid, folder))

    def make(self, progress: Progress, rules: Callable[[], None]) -> dict[str, float]:
        """Make everything the order names; returns seconds by step.

        Args:
            progress: called with the name of each step.
            rules: brings the rules onto the bridges, which are there then.

        Raises:
            LabError: a step failed, or what was asked for is not what was read back.
        """
        seconds: dict[str, float] = {}
        switches = self.open_vswitch
        # Before the ports: the userspace datapath's loop is quick while it has none to poll. But for a controller that
        # looks by the ports what is joined before it installs anything.
        early, late = [("rules", rules)], list[tuple[str, Callable[[], None]]]()
        if self.order.collects_links:
            early, late = late, early
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("bridges", switches.add_bridges),
            ("groups", lambda: switches.install_groups(self.order.groups)),
            *early,
            ("links", self._make_links),
            ("hosts", self._configure_hosts),
            ("ports", lambda: switches.add_ports(self._ports())),
            # After the ports: Open vSwitch clears the queueing of a port it takes over.
            ("first hops", lambda: self._copy_at(self.order.switches)),
            ("fast path", self._open_fast_path),
            ("shaping", self._shape),
            ("buffers", self._prepare_sockets),
            *late,
            ("short cuts", self._begin_short_cuts),
            ("read back", self._read_back),
        )
        for text, step in steps:
            progress(text)
            started = time.monotonic()
            try:
                step()
            except (LabError, OSError):
                self.check_switches()
                self.check_hosts()  # what died, rather than what failed for it
                raise
            self.check_switches()
            seconds[text] = round(time.monotonic() - started, 4)
        return seconds

    def _ports(self) -> list[tuple[str, str, int]]:
        """Switch, interface and number of each switch port: the hosts' in host order, then the channels' in theirs."""
        order = self.order
        ends = [(host.switch, host.port) for host in order.hosts]
        ends += [end for here in order.ends for end in here]
        return [(switch, port_interface(switch, port), port) for switch, port in ends]

    def _make_links(self) -> None:
        for folder in program_folders():
            self.share_folder(folder)
        for name in ("all", "default"):  # no router solicitations on the fabric
            Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
        lines = []
        for host in self.order.hosts:
            port, room = port_interface(host.switch, host.port), f"mtu {_TRUNK_MTU} " if host.vlans else ""
            lines += [
                f"link add {port} {room}numtxqueues 1 numrxqueues 1 type veth peer name {HOST_INTERFACE} "
                f"address {host.mac} {room}numtxqueues 1 numrxqueues 1 netns {self.holders[host.name]}",
                f"link set {port} up",
            ]
        for link in self.order.links:
            a, b = (port_interface(switch, port) for switch, port in link.ends)
            lines += [
                f"link add {a} mtu {_TRUNK_MTU} numtxqueues 1 numrxqueues 1 type veth peer name {b} "
                f"mtu {_TRUNK_MTU} numtxqueues 1 numrxqueues 1",
                f"link set {a} up",
                f"link set {b} up",
            ]
        for number, far in enumerate(self.order.far):
            port = port_interface(far.switch, far.port)
            lines += [
                f"link add {port} mtu {_TRUNK_MTU} numtxqueues 1 numrxqueues 1 type veth peer name {far_end(number)} "
                f"mtu {_TRUNK_MTU} numtxqueues 1 numrxqueues 1",
                f"link set {far.tunnel} mtu {_TRUNK_MTU}",
                *(f"link set {name} up" for name in (port, far_end(number), far.tunnel)),
            ]
        run(["ip", "-batch", "-"], "\n".join(lines) + "\n")
        self._join_tunnels()

    def _join_tunnels(self) -> None:
        """Pass on what comes to the end of a link that is cut, and what its tunnel brings, frame by frame."""
        lines = []
        for number, far in enumerate(self.order.far):
            ends = (far_end(number), far.tunnel)
            for end in ends:  # else frames that came together would go on as one
                run(["ethtool", "-K", end, "tx", "off", "tso", "off", "gso", "off", "gro", "off"])
            for source, target in (ends, ends[::-1]):
                lines += [
                    f"qdisc add dev {source} ingress",
                    f"filter add dev {source} parent ffff: protocol all u32 match u32 0 0 action mirred egress "
                    f"redirect dev {target}",
                ]
        if lines:
            run(["tc", "-batch", "-"], "\n".join(lines) + "\n")

    def _configure_hosts(self) -> None:
        """Addresses, static ARP, shaping, and offloads off: every frame on a link is a frame of the wire."""
        order = self.order
        known = {
            host.name: f"neigh replace {host.ip} lladdr {host.mac} dev {HOST_INTERFACE} nud permanent"
            for host in (*order.hosts, *order.others)
        }
        jobs = {}
        kernel = bool(order.tagging) and has_8021q(self.holders[order.tagging[0].name])
        for host in order.hosts:
            shaping = self._host_shaping(host).commands(HOST_INTERFACE)
            if host.vlans:
                made = host_lines(
                    host, order.hosts, mtu=order.mtu, segments=self.segments_at_once, static=order.static_arp,
                    kernel=kernel,
                )  # fmt: skip
                card = [
                    "link set lo up",
                    # Before it is up: else it has an address of IPv6, and asks for routers without a tag.
                    f"link set {HOST_INTERFACE} addrgenmode none",
                    f"link set {HOST_INTERFACE} gso_max_segs {self.segments_at_once} mtu {order.mtu + VLAN_TAG} up",
                ]
                cards = "".join(self._card_settings(vlan_interface(vlan)) for vlan in host.vlans)
                script = (
                    f"set -e\n{self._host_settings()}ip -batch - <<END\n" + "\n".join([*card, *made]) + "\nEND\n"
                    f"{ANY_INTERFACE}{cards}tc -batch - <<END\n{shaping}END\n"
                )
                jobs[host.name] = (in_host(self.holders[host.name], ["sh"]), script)
                continue
            neighbours = [line for name, line in known.items() if name != host.name] if order.static_arp else []
            addresses = "\n".join(
                [
                    "link set lo up",
                    f"link set {HOST_INTERFACE} addrgenmode none",
                    f"addr add {host.ip}/{order.prefix} dev {HOST_INTERFACE}",
                    f"link set {HOST_INTERFACE} mtu {order.mtu} gso_max_segs {self.segments_at_once}",
                    f"link set {HOST_INTERFACE} up",
                    *neighbours,
                ]
            )
            script = (
                f"set -e\n{self._host_settings()}ip -batch - <<END\n{addresses}\nEND\ntc -batch - <<END\n{shaping}END\n"
            )
            jobs[host.name] = (in_host(self.holders[host.name], ["sh"]), script)
        run_each(jobs)
        if order.tagging and not kernel:
            tag_by_classifiers(order.tagging, self.holders)

    def _host_settings(self) -> str:
        """Lines of a shell that settle how a host's TCP and its card work."""
        return (
            f"echo {self.unsent_bytes} >/proc/sys/net/ipv4/tcp_notsent_lowat\n"
            # Else a connection starts from what the last one to that host learned, and no repeat may know another.
            f"echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save\n{self._card_settings(HOST_INTERFACE)}"
        )

    def _card_settings(self, interface: str) -> str:
        """Lines of a shell that settle what an interface of a host does to frames."""
        return f"ethtool -K {interface} tx off tso off gso off gro off >/dev/null\n"

    def _host_shaping(self, host: HostOrder) -> Shaping:
        # Linux does not count the tag that a host puts on its frames.
        tag = VLAN_TAG if host.vlans else 0
        return Shaping(self.order.host_rate, max(self.order.queue_frames, HOST_QUEUE), WIRE_OVERHEAD + tag, tag=tag)

    def _reshape_hosts(self) -> None:
        """Give hosts the rate of the order while the lab runs."""
        run_each(
            {
                host.name: (
                    in_host(self.holders[host.name], ["tc", "-batch", "-"]),
                    self._host_shaping(host).change(HOST_INTERFACE),
                )
                for host in self.order.hosts
            }
        )

    def _port_shaping(self) -> dict[str, Shaping]:
        """How each switch port is shaped."""
        order, kernel = self.order, self.datapath == "kernel"
        in_kernel = kernel or self.fast_path is not None
        queue = TAIL_DROP if kernel else HEAD_DROP
        edge = Shaping(order.host_rate, order.queue_frames, queue=queue)
        # What forwards in the kernel keeps the tag out of what Linux counts.
        tag = VLAN_TAG if order.tagged_trunks else 0
        overhead = WIRE_OVERHEAD + tag * in_kernel
        found = dict.fromkeys(host_ports(order), edge)
        if order.tagging:
            tagged = replace(edge, overhead=WIRE_OVERHEAD + VLAN_TAG * in_kernel, tag=VLAN_TAG)
            found |= {port_interface(host.switch, host.port): tagged for host in order.tagging}
        for link, ends in enumerate(order.ends):
            state = self.changed.get(link, _AS_PLANNED)
            planned = order.link_rate * order.speeds.get(link, 1.0)
            rate = planned if state.rate is None else state.rate / order.dilation
            netem = Netem(state.delay * order.dilation, state.loss) if state.delay or state.loss else None
            shaping = Shaping(rate, order.queue_frames, overhead, queue, netem, tag)
            found |= {port_interface(*end): shaping for end in ends}
        return found

    def port_rates(self) -> dict[str, float]:
        """Bit/s that each switch port is shaped to, gaps included; ports of the hosts first, then of the channels."""
        return {name: shaping.rate for name, shaping in self._port_shaping().items()}

    def _copy_at(self, switches: Sequence[str]) -> None:
        if self.datapath == "kernel":
            self.tsq_backpressure_reason = copy_at(
                [port_interface(h.switch, h.port) for h in self.order.hosts if h.switch in switches]
            )

    def _open_fast_path(self) -> None:
        self.fast_path, self.why_slow = open_fast_path(self.order, self.datapath, self._ports())

    def _begin_short_cuts(self) -> None:
        if self.fast_path is None:
            return
        switches = self.open_vswitch
        switches.each_packet_socket(self.order.switches, self.fast_path.listen)
        self.short_cuts = FastPathSync(self.fast_path, switches.folder, switches.dump)
        self.short_cuts.start()

    def _shape(self) -> None:
        run(["tc", "-batch", "-"], "".join(shaping.commands(name) for name, shaping in self._port_shaping().items()))

    def reshape(self, link_rate: float, host_rate: float, dilation: float) -> None:
        """Give all links other rates while the lab runs.

        Args:
            link_rate: lab bit/s between switches.
            host_rate: lab bit/s of host links.
            dilation: of these.

        Raises:
            LabError: a rate could not be set, or is not what was read back.
        """
        self.order = replace(self.order, link_rate=link_rate, host_rate=host_rate, dilation=dilation)
        ports = self._port_shaping().items()
        run(["tc", "-batch", "-"], "".join(shaping.instead_of(shaping, name) for name, shaping in ports))
        self._reshape_hosts()
        problems = self.shaping_problems()
        if problems:
            raise LabError(f"{len(problems)} ports do not have their new rate: {'; '.join(problems[:3])}")

    def set_speeds(self, speeds: Mapping[int, float]) -> None:
        """Let links between switches run at other shares of their rate while the lab runs.

        Args:
            speeds: share by the link's number; links not named keep theirs.

        Raises:
            LabError: there is no such link or speed, a rate could not be set, or is not what was read back.
        """
        require_speeds(speeds, len(self.order.ends))
        self.order = replace(self.order, speeds={**self.order.speeds, **speeds})
        shaping = self._port_shaping()
        mine = {name: shaping[name] for name in self._ends_of(speeds)}
        run(["tc", "-batch", "-"], "".join(shaping[name].change(name) for name in mine))
        problems = shaping_problems(mine, run(["tc", "-d", "-batch", "-"], read_back_commands(mine)))
        if problems:
            raise LabError(f"{len(problems)} ports do not have their new rate: {'; '.join(problems[:3])}")

    def change_links(self, changes: Sequence[LinkChange]) -> None:
        """Let links between switches run otherwise than planned, or as planned again, while the lab runs.

        Raises:
            LabError: there is no such link, the kernel cannot do it, or it is not what was read back; where the kernel
                cannot, nothing has changed.
        """
        links = list(dict.fromkeys(change.link for change in changes))
        require_numbers("link", links, len(self.order.ends))
        before, shaped = self.changed, self._port_shaping()
        wanted = dict(before)
        for change in changes:
            wanted[change.link] = wanted.get(change.link, _AS_PLANNED).apply_change(change)
        self.changed = {link: state for link, state in wanted.items() if state != _AS_PLANNED}
        shaping = self._port_shaping()
        mine = {name: shaping[name] for name in self._ends_of(links)}
        try:
            run(["tc", "-batch", "-"], "".join(new.instead_of(shaped[name], name) for name, new in mine.items()))
        except LabError as error:
            self.changed = before
            if UNKNOWN in str(error):
                raise LabError(MISSING) from error
            raise
        problems = shaping_problems(mine, run(["tc", "-d", "-batch", "-"], read_back_commands(mine)))
        if problems:
            raise LabError(f"{len(problems)} settings are not as asked: {'; '.join(problems[:3])}")

    def link_states(self) -> dict[int, LinkState]:
        """Links between switches that are not as planned, by number."""
        found = {}
        for link, ends in enumerate(self.order.ends):
            flags = (procfs.read_kernel_file(f"/sys/class/net/{port_interface(*end)}/flags") for end in ends)
            up = all(int(text, 16) & 1 for text in flags)
            state = replace(self.changed.get(link, _AS_PLANNED), up=up)
            if state != _AS_PLANNED:
                found[link] = state
        return found

    def set_ports(self, channels: Sequence[int], hosts: Sequence[int], *, up: bool) -> None:
        """Take the sending ports of channels, and switches' ports with hosts, down or up."""
        set_interfaces(self.ports_of(channels, hosts), up=up)

    def set_far_ends(self, links: Sequence[int], *, up: bool) -> None:
        """Take the signal off the ends here of links that lead to other machines, or give it back.

        Raises:
            LabError: a link leads nowhere else.
        """
        far = [link - len(self.order.links) for link in links]
        require_numbers("link to another machine", far, len(self.order.far))
        set_interfaces([far_end(number) for number in far], up=up)

    def pause_hosts(self, hosts: Sequence[int], *, paused: bool) -> None:
        """Open vSwitch knows no flow control."""
        del paused
        if hosts:
            raise LabError("Open vSwitch has no flow control, so no host can pause it; set engine: realtime")

    def snapshot(self, daemons: Sequence[int]) -> Snapshot:
        """Counters and clocks now; `daemons` are pids of the switches' processes."""
        return counters.snapshot(*counters.read_carried(self.order), daemons=daemons)

    def deadlock(self) -> tuple[int, ...]:
        """Virtual channels that wait for each other for ever; without flow control there are none."""
        return ()

    def telemetry(self) -> Telemetry:
        """What counts beside loads."""
        # It needs numpy, without which a lab is there a tenth of a second sooner.
        from testbed.engines.lab.counters.rtnetlink import PortCounters  # noqa: PLC0415
        from testbed.engines.lab.counters.telemetry import Telemetry  # noqa: PLC0415

        ports = list(self.port_rates())
        # Two, since two threads read; a third one reads by port_figures().
        reading, departing = PortCounters(ports), PortCounters(ports)
        matrix, why_not = self.pair_counter()
        return Telemetry(ports, reading.read, self.holders, matrix, why_not, departing)

    def pair_counter(self) -> tuple[Callable[[], Longs] | None, str]:
        """What returns (2, H, H) bytes and frames of pairs of hosts; None, and why, where they cannot be counted."""
        from testbed.engines.lab.counters.telemetry import edge_matrix  # noqa: PLC0415 - as above

        with self._reading:
            if self._pairs is None:
                self._pairs = edge_matrix(host_ports(self.order), len(self.order.hosts) + len(self.order.others))
            return self._pairs

    def port_figures(self) -> Longs:
        """(P, 9) rtnetlink.FIGURES of the switches' ports, in the order of port_rates()."""
        from testbed.engines.lab.counters.rtnetlink import PortCounters  # noqa: PLC0415 - as above

        with self._reading:
            if self._figures is None:
                self._figures = PortCounters([*host_ports(self.order), *channel_ports(self.order)])
            return self._figures.read()

    def paused_seconds(self) -> Floats | None:
        """(C + 2H,) see LinkReadings.paused; None without flow control."""
        return None

    def waiting_cycle(self) -> tuple[int, ...]:
        """As deadlock(), without any effect."""
        return ()

    def read_links(self) -> LinkReadings:
        """What all links have carried until now, and what waits for them."""
        from testbed.engines.lab.counters.readings import link_readings  # noqa: PLC0415 - as above

        return link_readings(self)

    def read_pairs(self) -> PairReadings:
        """Bytes between hosts."""
        from testbed.engines.lab.counters.readings import pair_readings  # noqa: PLC0415 - as above

        return pair_readings(self)

    def frame_counts(self) -> FrameCounts:
        """Everything that counts frames."""
        self._wait_for_rules()
        order, switches = self.order, self.open_vswitch
        taken = {} if self.fast_path is None else self.fast_path.frames()

        def dump() -> Mapping[str, Sequence[str]]:
            if order.controller is not None:
                switches.flush_statistics()
            return switches.dump(order.switches, counters=True)

        return counters.frame_counts(order, self.holders, dump, taken)

    def _wait_for_rules(self) -> None:
        """Return when the rules have counted all frames until now; at once where no port has moved any since."""
        frames = self.port_figures()[:, _FRAMES].tolist()
        if frames == self._in_rules:
            return
        for _ in range(_ROUNDS):
            self.open_vswitch.flush_statistics()
        self._in_rules = frames

    def settle(self) -> None:
        """Return when the fast path, if there is one, holds what the switches' rules are now."""
        if self.short_cuts is not None:
            self.short_cuts.settle()

    def dump_short_cuts(self) -> FastPathEntries:
        """The entries of the fast path, as the kernel has them when rules are at rest."""
        if self.fast_path is None or self.short_cuts is None:
            return FastPathEntries({}, dict.fromkeys(self.order.switches, self.why_slow), 0)
        self.short_cuts.settle()
        return FastPathEntries(self.fast_path.dump(), self.short_cuts.why_off(), self.fast_path.map_id)

    def ports_of(self, channels: Sequence[int], hosts: Sequence[int] = ()) -> list[str]:
        """Interfaces of switches that send into some channels, and to some hosts.

        Raises:
            LabError: there is no such channel or host.
        """
        into, to = channel_ports(self.order), host_ports(self.order)
        for what, numbers, count in (("channel", channels, len(into)), ("host", hosts, len(to))):
            require_numbers(what, numbers, count)
        return [*(into[channel] for channel in channels), *(to[host] for host in hosts)]

    def _ends_of(self, links: Iterable[int]) -> list[str]:
        """Interfaces here of the ends of links."""
        return [port_interface(*end) for link in links for end in self.order.ends[link]]

    def switches_of(self, numbers: Sequence[int]) -> list[str]:
        """Names of switches.

        Raises:
            LabError: there is no such switch.
        """
        require_numbers("switch", numbers, len(self.order.switches))
        return [self.order.switches[number] for number in numbers]

    def list_killed(self) -> list[str]:
        """Names of switches that were killed and not started since."""
        return self.open_vswitch.killed_switches

    def kill_switch(self, switch: str) -> None:
        """End the process of a switch, which must have one of its own."""
        if self.short_cuts is not None:
            self.short_cuts.end(switch)
        self.open_vswitch.kill(switch)

    def start_switch(self, switch: str) -> None:
        """Start it again and shape its ports anew; its rules are whoever's who installs them."""
        one = next(port for bridge, _, port in self._ports() if bridge == switch)
        self.open_vswitch.restart(switch, {switch: one}, len(self._ports()) * self.order.queue_frames)
        mine = [name for bridge, name, _ in self._ports() if bridge == switch]
        shaping = self._port_shaping()
        run(["tc", "-batch", "-"], "".join(shaping[name].commands(name) for name in mine))
        self._copy_at([switch])
        if self.fast_path is not None and self.short_cuts is not None:
            self.fast_path.attach([switch])
            self.open_vswitch.each_packet_socket([switch], self.fast_path.listen)
            self.short_cuts.begin(switch)

    def _prepare_sockets(self) -> None:
        ports = self._ports()  # the hosts' first
        one_each: dict[str, int] = {}
        for bridge, _, port in ports:
            one_each.setdefault(bridge, port)
        self.open_vswitch.prepare_sockets(one_each, len(ports) * self.order.queue_frames)

    def _read_back(self) -> None:
        problems = self.open_vswitch.spanning_tree_problems() + self.shaping_problems()
        if problems:
            raise LabError(f"{len(problems)} settings are not as asked: {'; '.join(problems[:3])}")

    def shaping_problems(self) -> list[str]:
        """Differences between the shaping asked for and the kernel's, on switches and hosts."""
        ports = self._port_shaping()
        problems = shaping_problems(ports, run(["tc", "-d", "-batch", "-"], read_back_commands(ports)))
        return problems + self._host_problems()

    def _host_problems(self) -> list[str]:
        """Differences between the shaping asked for and the kernel's, on hosts."""
        ask = read_back_commands([HOST_INTERFACE])
        jobs = {name: (in_host(pid, ["tc", "-d", "-batch", "-"]), ask) for name, pid in self.holders.items()}
        wanted = {host.name: {HOST_INTERFACE: self._host_shaping(host)} for host in self.order.hosts}
        return [
            f"{name} {problem}"
            for name, text in run_each(jobs).items()
            for problem in shaping_problems(wanted[name], text)
        ]


def require_numbers(what: str, numbers: Sequence[int], count: int) -> None:
    """Let only numbers pass that the fabric has."""
    for number in numbers:
        if not 0 <= number < count:
            raise LabError(f"there is no {what} {number}: they have the numbers 0 to {count - 1}")
