"""The network of a lab whose switches are a model: hosts as in every lab, each with a tap in place of a cable."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from testbed.base.errors import LabError
from testbed.base.ethernet import HEADER, wire_bytes
from testbed.base.messages import LATE_BINS, Count, FrameCounts, LinkChange, LinkState, Snapshot
from testbed.base.model import Floats, Longs
from testbed.base.python_isolation import make_module_command
from testbed.dataplane.kernels.packets_clock import set_pace
from testbed.dataplane.kernels.packets_live import set_byte_times
from testbed.dataplane.kernels.packets_state import (
    AS_ASKED,
    DELIVERED,
    LINK_DOWN,
    NO_ROOM,
    NOT_MEMBER,
    NOW,
    REFUSED,
    PacketModel,
)
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.counters import counters
from testbed.engines.lab.hosts.commands import first_line, in_host, run_each
from testbed.engines.lab.hosts.host_view import program_folders
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE, MODEL, channel_ports, host_ports
from testbed.engines.lab.hosts.lab_network import LabNetwork, require_numbers
from testbed.engines.lab.hosts.shaping import require_speeds
from testbed.engines.realtime import COMPILING
from testbed.engines.realtime.port_state import Ports
from testbed.engines.realtime.shared_memory import attach, write
from testbed.engines.realtime.taps import (
    BIN,
    DEADLOCKED,
    DELIVERY,
    EMPTY,
    FRAME_NS,
    GRAIN,
    KICK,
    LOOP,
    READING,
    REFUSED_BY_HOST,
    STALLED_NS,
    STOP,
    WATCHDOG_NS,
    HostPorts,
    new_doors,
    open_queues,
    open_taps,
    send_descriptors,
)

if TYPE_CHECKING:
    from testbed.engines.lab.counters.telemetry import Telemetry

DOORS = "doors"
_READY = 600.0  # s, of which compiling takes most, once
_PICOSECONDS = 1e12
_SHOWN = 5.0  # s for which a deadlock that is over is still told
# The loop sleeps for a fifth of the time of a full frame, within bounds, ns; but rather for a third than for less than
# _QUICK, since waking takes the processor 10,000.
_PART, _QUICK_PART = 5, 3
_MIN_GRAIN, _QUICK, _MAX_GRAIN = 20_000, 40_000, 200_000

_TSO_RTT_LOG = 9  # Linux halves segments for every 2^9 µs of the round trip

# Of what is not forwarded, what frames do not deserve; the rest is for what they are, or as `testbed link` asked.
_LOSSES = tuple(REFUSED[why] for why in (NOT_MEMBER, LINK_DOWN, NO_ROOM))

Progress = Callable[[str], None]


class ModelNetwork(LabNetwork):
    """A lab without switches of its own: taps, and what is asked of the model by its memory.

    Args:
        order: what is to be built.
        folder: of the lab; the planner's side has put the model there.
        holders: as of LabNetwork.
    """

    def __init__(
        self,
        order: BuildOrder,
        folder: Path,
        holders: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(order, holders)
        if order.tso:
            # A TCP hands its segments over as to a network card that cuts them, and as many of them as it would on
            # links that are not slowed down.
            self.segments_at_once = 44
            self.unsent_bytes = 131072
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._model: PacketModel | None = None
        self._doors: HostPorts | None = None
        self._ends = Ports(order, folder)
        self.pace = ""
        self._ended_cycle: tuple[tuple[int, ...], float] = (), 0.0

    @property
    def model(self) -> PacketModel:
        """The packet-level model, in the file where its process computes it."""
        if self._model is None:
            self._model = attach(self._folder / MODEL, PacketModel)
        return self._model

    @property
    def doors(self) -> HostPorts:
        """The taps of the hosts, in a file likewise."""
        if self._doors is None:
            self._doors = attach(self._folder / DOORS, HostPorts)
        return self._doors

    def make(self, progress: Progress, rules: Callable[[], None]) -> dict[str, float]:
        """As LabNetwork.make(); the model has its tables already, and `rules` waits for who looks after them."""
        seconds: dict[str, float] = {}
        steps: tuple[tuple[str, Callable[[], None]], ...] = (
            ("model", lambda: self._start(progress)),
            ("hosts", self._configure_hosts),
            ("rates", self._set_model),
            *([("controller", rules)] if self.order.controller is not None else []),
        )
        for text, step in steps:
            progress(text)
            started = time.monotonic()
            step()
            seconds[text] = round(time.monotonic() - started, 4)
        return seconds

    def _start(self, progress: Progress) -> None:
        """Open the doors and start the process that computes the model."""
        # It takes as long to load its libraries as the doors take to be made.
        files = (str(self._folder / MODEL), str(self._folder / DOORS))
        ours, its = socket.socketpair()
        with ours, its, (self._folder / "model.log").open("wb") as log:
            process = subprocess.Popen(
                make_module_command("testbed.engines.realtime.process", *files),
                stdin=its.fileno(), stdout=subprocess.PIPE, stderr=log, bufsize=0,
                env={**os.environ, "NUMBA_DISABLE_JIT": "0"},  # it calls the C library, which no interpreter does
            )  # fmt: skip
            self._process = process
            its.close()
            why_not = self._make_doors(ours)
        self.pace = self._wait_until_ready(process, progress) + why_not

    def _wait_until_ready(self, process: subprocess.Popen[bytes], progress: Progress) -> str:
        """Wait for the model; returns how it keeps pace. It says first if it must be compiled."""
        while line := first_line(process, "the process that computes the switches", _READY):
            said = json.loads(line)
            if "pace" in said:
                return str(said["pace"])
            progress(COMPILING)
        raise LabError(f"the process that computes the switches did not start: {self.last_words()}")

    def _make_doors(self, process: socket.socket) -> str:
        """Open the doors and hand them over; says why netfilter does not hold packets, or nothing."""
        for folder in program_folders():
            self.share_folder(folder)
        processors = sorted(os.sched_getaffinity(0))
        others = sum(1 << processor for processor in processors[:-1])
        taps = open_taps({self.holders[host.name]: host.mac for host in self.order.hosts}, others)
        queues: list[int] = []
        why_not = ""
        try:
            queues = open_queues(self.holders, {host.name: host.vlans for host in self.order.hosts})
        except LabError as error:
            why_not = f"; {error}"
        write(self._folder / DOORS, new_doors(len(taps), len(self.model.fabric.place), self.order.mtu, *self._tags()))
        try:
            send_descriptors(process, taps, queues)
        except OSError:
            self.check_switches()
            raise
        finally:
            for door in (*taps, *queues):
                os.close(door)
        return why_not

    def _tags(self) -> tuple[list[tuple[int, ...]], int]:
        """VLANs of each host, and the mask of a host's number in its addresses in their networks."""
        hosts = self.order.hosts
        return [host.vlans for host in hosts], (1 << (len(hosts) + 1).bit_length()) - 1

    def last_words(self) -> str:
        """The last line that the model's process has said."""
        lines = (self._folder / "model.log").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"

    @property
    def pid(self) -> int:
        """Of the process that computes the model."""
        return self._process.pid if self._process is not None else 0

    @property
    def datapath(self) -> str:
        """What forwards frames."""
        return "model"

    @property
    def switch_pids(self) -> list[int]:
        """Of that process."""
        return [self.pid]

    def check_switches(self) -> None:
        """Raise LabError if that process has ended."""
        if self._process is not None and (code := self._process.poll()) is not None:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise LabError(f"the process that computes the switches {how}: {self.last_words()}")

    def stop_switches(self) -> None:
        """End that process."""
        if self._process is not None:
            self.doors.control[STOP] = 1
            self._process.kill()
            self._process.wait()

    # ------------------------------------------------------------------------------------------------------- rates

    @property
    def _full_frame(self) -> int:
        """Bytes of one on a host's link."""
        return wire_bytes(HEADER + self.order.mtu)

    def _set_pace(self) -> None:
        """How often the model looks at its doors."""
        frame = 8 * self._full_frame / max(self.order.link_rate, self.order.host_rate) * 1e9
        wanted = max(frame / _PART, min(frame / _QUICK_PART, _QUICK))
        self.doors.control[GRAIN] = int(min(max(wanted, _MIN_GRAIN), _MAX_GRAIN))
        self.doors.control[FRAME_NS] = int(frame)

    def port_rates(self) -> dict[str, float]:
        """Bit/s of each switch port; ports of the hosts first, then of the channels."""
        order = self.order
        rates = dict.fromkeys(host_ports(order), order.host_rate)
        return rates | dict(zip(channel_ports(order), self._channel_rates(), strict=True))

    def _channel_rates(self) -> list[float]:
        order, found = self.order, []
        for link in range(len(order.links)):
            rate = self.changed.get(link, LinkState()).rate
            found += [order.link_rate * order.speeds.get(link, 1.0) if rate is None else rate / order.dilation] * 2
        return found

    def _byte_times(self) -> Longs:
        rates = np.array([*self._channel_rates(), *[self.order.host_rate] * (2 * len(self.order.hosts))])
        return np.rint(8 * _PICOSECONDS / rates).astype(np.int64)

    def _set_rates(self) -> None:
        set_byte_times(self.model.fabric, self.model.live, self._byte_times())

    def reshape(self, link_rate: float, host_rate: float, dilation: float) -> None:
        """Give all links other rates, and cables and switches their delay, while the lab runs."""
        self.order = replace(self.order, link_rate=link_rate, host_rate=host_rate, dilation=dilation)
        self._reshape_hosts()
        self._set_model()

    def _set_model(self) -> None:
        """Let the model compute at the rates of the order, and see that hosts have theirs."""
        dilation = self.order.dilation
        self.model.live.delay[0] = round(self.model.fabric.delay * dilation)
        self._set_rates()
        self._set_pace()
        self.doors.control[WATCHDOG_NS] = int(self.order.watchdog * dilation * 1e9)
        self._set_clock(dilation)
        problems = self.shaping_problems()
        if problems:
            raise LabError(f"{len(problems)} hosts do not have their new rate: {'; '.join(problems[:3])}")

    def _set_clock(self, dilation: float) -> None:
        """Let the clock by which frames are stamped begin at the time of day, once, and then run as the lab does."""
        clock = self.model.live.clock
        row = int(clock.row[0])
        if not clock.epoch[row]:
            set_pace(clock, 0, dilation, time.time_ns() - (time.monotonic_ns() - int(self.doors.zero[0])))
        elif clock.dilation[row] != dilation:
            set_pace(clock, int(self.model.state.counts[NOW]), dilation)

    def _host_settings(self) -> str:
        return super()._host_settings() + self._long_round_trip()

    def _card_settings(self, interface: str) -> str:
        return ""  # a tap cuts nothing and joins nothing

    def _long_round_trip(self) -> str:
        """Tells a host's TCP what a long round trip is here, by which it sizes its segments."""
        log = min(_TSO_RTT_LOG + round(math.log2(self.order.dilation)), 31)
        return f"echo {log} >/proc/sys/net/ipv4/tcp_tso_rtt_log\n"

    def _reshape_hosts(self) -> None:
        jobs = {}
        for host in self.order.hosts:
            shaping = self._host_shaping(host).change(HOST_INTERFACE)
            script = f"set -e\n{self._long_round_trip()}tc -batch - <<END\n{shaping}END\n"
            jobs[host.name] = (in_host(self.holders[host.name], ["sh"]), script)
        run_each(jobs)

    def set_speeds(self, speeds: Mapping[int, float]) -> None:
        """Let links between switches run at other shares of their rate while the lab runs."""
        require_speeds(speeds, len(self.order.links))
        self.order = replace(self.order, speeds={**self.order.speeds, **speeds})
        self._set_rates()

    def shaping_problems(self) -> list[str]:
        """Differences between the rates asked for and those of the model and of hosts' interfaces."""
        problems = []
        if (self.model.live.byte_time != self._byte_times()).any():
            problems.append("links of the model have other rates than asked for")
        return problems + self._host_problems()

    def change_links(self, changes: Sequence[LinkChange]) -> None:
        """Let links between switches run otherwise than planned, or as planned again, while the lab runs."""
        require_numbers("link", [change.link for change in changes], len(self.order.links))
        wanted, live = dict(self.changed), self.model.live
        for change in changes:
            wanted[change.link] = wanted.get(change.link, LinkState()).apply_change(change)
        self.changed = {link: state for link, state in wanted.items() if state != LinkState()}
        for link in {change.link for change in changes}:
            state = wanted[link]
            ends = slice(2 * link, 2 * link + 2)
            live.longer[ends] = round(state.delay * self.order.dilation * _PICOSECONDS)
            live.loss[ends] = round(state.loss * 2**32)
        self._set_rates()

    def link_states(self) -> dict[int, LinkState]:
        """Links between switches that are not as planned, by number."""
        down, found = self.model.live.down, {}
        for link in range(len(self.order.links)):
            state = replace(self.changed.get(link, LinkState()), up=not down[2 * link : 2 * link + 2].any())
            if state != LinkState():
                found[link] = state
        return found

    # ------------------------------------------------------------------------------------------------ flow control

    def deadlock(self) -> tuple[int, ...]:
        """Virtual channels that wait for each other for ever. The model is emptied then, so that others can use it."""
        found = self._cycle()
        if self.doors.control[DEADLOCKED]:
            self._ended_cycle = found, time.monotonic()
            self.doors.control[EMPTY] = 1
        return found

    def waiting_cycle(self) -> tuple[int, ...]:
        """As deadlock(), without any effect; for some seconds also one that is over, so that who looks sees it."""
        ended, at = self._ended_cycle
        return self._cycle() or (ended if time.monotonic() - at < _SHOWN else ())

    def _cycle(self) -> tuple[int, ...]:
        doors, virtual = self.doors, self.model.fabric.virtual
        return tuple(int(node) for node in doors.cycle[: doors.control[DEADLOCKED]] if node < virtual)

    def paused_seconds(self) -> Floats | None:
        """(C + 2H,) see LinkReadings.paused; None without flow control."""
        fabric, state = self.model.fabric, self.model.state
        if not fabric.lossless:
            return None
        since = np.where(state.stopped, state.counts[NOW] - state.since, 0)
        still = np.maximum(state.still + since, 0) / _PICOSECONDS
        channels = still[: fabric.virtual].reshape(fabric.priorities, fabric.channels).sum(axis=0)
        from_hosts, to_hosts = np.split(still[fabric.virtual :], 2)
        paused: Floats = np.concatenate([channels, to_hosts, from_hosts])
        return paused

    # ---------------------------------------------------------------------------------------------------- failures

    def set_ports(self, channels: Sequence[int], hosts: Sequence[int], *, up: bool) -> None:
        """Take the sending ports of channels, and switches' ports with hosts, down or up; see Ports."""
        fabric = self.model.fabric
        require_numbers("channel", channels, fabric.channels)
        require_numbers("host", hosts, fabric.hosts)
        self._ends.set(channels, hosts, up=up)
        self.model.live.down[:] = self._ends.dead_links()

    def pause_hosts(self, hosts: Sequence[int], *, paused: bool) -> None:
        """Let hosts pause their switch for ever, as a broken network card does, or no more."""
        model = self.model
        require_numbers("host", hosts, model.fabric.hosts)
        if hosts and not model.fabric.lossless:
            raise LabError("without flow control a host cannot pause its switch; set simulator.flow_control")
        for host in hosts:
            node = model.fabric.virtual + model.fabric.hosts + host
            model.state.since[node] = model.state.counts[NOW]
            model.state.stopped[node] = paused
        self.doors.control[KICK] = 1

    def list_killed(self) -> list[str]:
        """Names of switches that lose everything."""
        return [self.order.switches[switch] for switch in self._ends.killed_switches]

    def kill_switch(self, switch: str) -> None:
        """Let a switch lose everything."""
        self._set_switch(switch, up=False)

    def start_switch(self, switch: str) -> None:
        """Let it forward again."""
        self._set_switch(switch, up=True)

    def _set_switch(self, switch: str, *, up: bool) -> None:
        self._ends.kill(self.order.switches.index(switch), up=up)
        self.model.live.down[:] = self._ends.dead_links()

    # ---------------------------------------------------------------------------------------------------- counters

    def snapshot(self, daemons: Sequence[int]) -> Snapshot:
        """Counters and clocks now."""
        model, doors = self.model, self.doors
        sent, sent_bytes = model.state.sent.tolist(), model.live.sent_bytes.tolist()
        count = [Count(size, frames) for size, frames in zip(sent_bytes, sent, strict=True)]
        channels, hosts = model.fabric.channels, model.fabric.hosts
        ends = np.searchsorted(np.arange(doors.late.shape[1]) * (BIN * 1e-9), LATE_BINS)
        late = {
            name: tuple(int(part.sum()) for part in np.split(doors.late[row], ends))
            for row, name in ((DELIVERY, "delivery"), (READING, "reading"), (LOOP, "loop"))
        }
        slowest = float(model.live.byte_time.max()) / _PICOSECONDS * self._full_frame
        stalled = float(doors.control[STALLED_NS]) * 1e-9
        parts = tuple(count[:channels]), tuple(count[channels : channels + hosts])
        delivered, transit = int(model.state.counts[DELIVERED]), float(model.state.latencies[0]) / _PICOSECONDS
        return replace(
            counters.snapshot(*parts, daemons=daemons), late=late, frame_seconds=slowest, stalled=stalled,
            delivered=delivered, transit=transit,
        )  # fmt: skip

    def port_figures(self) -> Longs:
        """(P, 9) what rtnetlink.FIGURES would be of the switches' ports."""
        fabric, state, live = self.model.fabric, self.model.state, self.model.live
        channels, hosts = fabric.channels, fabric.hosts

        def by_link(nodes: Longs) -> Longs:
            summed = nodes[: fabric.virtual].reshape(fabric.priorities, channels).sum(axis=0)
            every: Longs = np.concatenate([summed, nodes[fabric.virtual :]])
            return every

        waiting, size, drops = (by_link(one.astype(np.int64)) for one in (live.waiting, live.waiting_bytes, live.drops))
        out = np.concatenate([channels + hosts + np.arange(hosts), np.arange(channels)])
        back = np.concatenate([channels + np.arange(hosts), np.arange(channels) ^ 1])
        nothing = np.zeros(len(out), dtype=np.int64)
        figures: Longs = np.stack(
            [
                state.sent[back], state.sent[out], live.sent_bytes[back], live.sent_bytes[out], nothing, nothing,
                waiting[out], size[out], drops[out],
            ],
            axis=1,
        )  # fmt: skip
        return figures

    def pair_counter(self) -> tuple[Callable[[], Longs] | None, str]:
        """What returns (2, H, H) bytes and frames of pairs of hosts, and no reason against it."""
        return self.model.live.pairs.copy, ""

    def telemetry(self) -> Telemetry:
        """What counts beside loads."""
        from testbed.engines.lab.counters.telemetry import Telemetry  # noqa: PLC0415

        return Telemetry(list(self.port_rates()), self.port_figures, self.holders, self.model.live.pairs.copy)

    def frame_counts(self) -> FrameCounts:
        """Everything that counts frames."""
        fabric, state, live = self.model.fabric, self.model.state, self.model.live
        refused = dict(zip(REFUSED, live.refused.tolist(), strict=True))
        del refused[REFUSED[AS_ASKED]]
        lost = {f"in the model: {why}": refused.pop(why) for why in _LOSSES}
        lost["in a host's own queue"] = self._lost_in_hosts()
        if self.order.watchdog:
            lost["in queues that the watchdog shut"] = int(live.drops.sum())
        lost["at a host's interface"] = int(self.doors.control[REFUSED_BY_HOST])
        lost["in a receiving program's socket"] = counters.socket_drops(self.holders)
        to_switches = fabric.channels + fabric.hosts
        return FrameCounts(
            arrived=int(state.sent[:to_switches].sum()),
            lost=lost,
            flooded=int(live.flooded[0]),
            channels=tuple(state.sent[: fabric.channels].tolist()),
            to_hosts=tuple(state.sent[to_switches:].tolist()),
            admitted=tuple(live.admitted.tolist()),
            refused=refused,
        )

    def _lost_in_hosts(self) -> int:
        """Packets that netfilter could not hold for the model, and frames that found a tap full."""
        lost = 0
        for pid in self.holders.values():
            held = Path(f"/proc/{pid}/net/netfilter/nfnetlink_queue")
            for line in held.read_text().splitlines() if held.exists() else ():
                words = line.split()
                lost += int(words[5]) + int(words[6])
            for line in Path(f"/proc/{pid}/net/dev").read_text().splitlines():
                name, _, figures = line.partition(":")
                if name.strip() == HOST_INTERFACE:
                    lost += int(figures.split()[11])
        return lost
