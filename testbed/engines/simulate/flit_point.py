"""One run at one load: what came out, or the cycle of waits in which it deadlocked; and runs of a load as one row."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Longs
from testbed.dataplane.kernels.flits import run
from testbed.dataplane.kernels.flits_check import lost_flits, waiting_cycle
from testbed.dataplane.kernels.flits_state import CLOCK, DELIVERED, EXACT, LATENCIES, OCTAVE, FlitFabric, State
from testbed.engines.simulate.flit_network import Network, fabric_of, new_state
from testbed.engines.simulate.packet_settings import PICOSECONDS
from testbed.fabric.verify.deadlock import hop_name

# Clocksampling interval, s for a deadlock, and between two chances to be interrupted.
STRETCH = 4096
# Of figures that differ by more over orders of events of one time a reader is told.
TELLING = 0.01


@dataclass(frozen=True, slots=True)
class Latency:
    """Clocks from the making of a packet to the arrival of its last flit, of packets that arrived while measured.

    Percentiles are exact below 2,048 cycles and within 0.1 % above.
    """

    mean: float
    p50: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class Links:
    """What flow control did, or its absence, while measured: of the packet level only."""

    made: int  # frames that hosts sent
    drops: int  # frames that found no memory
    pauses: int  # PAUSE frames that stopped a sender
    resumes: int  # those that only let senders go on
    # share of the time that a channel between switches was paused, mean over all, and priorities
    channels_paused: float
    hosts_paused: float  # share of the time that a host which sends was paused, mean over hosts
    most_frames: int  # maximum buffer occupancy of a port and priority, in frames, at any time
    frame_time: int  # ps that a frame takes on a link between switches


@dataclass(frozen=True, slots=True)
class TieOrder:
    """The same run where of events of one time another comes first: of the packet level only."""

    accepted: float | None  # as in Point
    latency: float | None  # s, the mean
    drops: int  # frames that found no memory


@dataclass(frozen=True, slots=True)
class Point:
    """One load with one seed."""

    load: float  # flits that each host that sends makes a clock, on average
    seed: int  # of its random numbers
    clocks: int  # cycles measured, without the warm-up; up to where the deadlock was found in a run that had one
    accepted: float | None  # accepted throughput, flits per cycle per sending host; None in a run that deadlocked
    packets: int  # packets that arrived
    latency: Latency | None  # of these; None without any, and in a run that deadlocked
    fullest: str  # the bottleneck channel between switches; empty where there is none
    # share of the measured cycles in which that channel carried a flit; None in a run that deadlocked
    fullest_use: float | None
    # virtual channels that wait for each other, each for the one after it; empty without a deadlock
    cycle: tuple[str, ...]
    seconds: float  # it took
    channel_flits: tuple[int, ...]  # flits over each channel while measured
    # of the packet level, where the unit is the frame for a flit, the picosecond for a clock, the share of the rate of
    # a host's link for a flit per host and cycle, and latencies are in seconds; else None
    links: Links | None = None
    ties: tuple[TieOrder, ...] = ()  # packet level: what other orders of events of one time give

    @property
    def channel_use(self) -> tuple[float, ...]:
        """Share of the time that each channel carried something."""
        each = 1 if self.links is None else self.links.frame_time
        return tuple(each * count / max(self.clocks, 1) for count in self.channel_flits)


class LostFlitsError(AssertionError):
    """Flits or room for them have vanished or come from nowhere: a fault of the simulator."""


def simulate(network: Network, load: float, seed: int, stopped: Callable[[], bool] = lambda: False) -> Point | None:
    """Run one load with one seed.

    `load`: flits for each host that sends and clock, above 0 up to 1. `stopped` is asked now and then whether to give
    up.

    Returns:
        what came of it, or None when stopped.

    Raises:
        LostFlitsError: the simulator has a fault.
    """
    started = time.monotonic()
    settings = network.settings
    fabric = fabric_of(network, load)
    state = new_state(network, fabric, seed)
    sent = state.links.sent.copy()
    cycle: tuple[int, ...] = ()
    for end in (settings.warm_up, settings.clocks):
        while state.counts[CLOCK] < end and not cycle:
            if stopped():
                return None
            run(fabric, state, min(int(state.counts[CLOCK]) + STRETCH, end))
            cycle = tuple(waiting_cycle(fabric, state).tolist())
        if end == settings.warm_up and not cycle:
            sent = state.links.sent.copy()
            state.histogram[:] = 0
            state.counts[[DELIVERED, LATENCIES]] = 0
    check_conservation(network, fabric, state)
    clocks = int(state.counts[CLOCK]) - settings.warm_up if not cycle else int(state.counts[CLOCK])
    return _point(
        network, fabric, state, load, seed, clocks, state.links.sent - sent, cycle, time.monotonic() - started
    )


def check_conservation(network: Network, fabric: FlitFabric, state: State) -> None:
    """Every flit is somewhere, and every place is free, taken or promised.

    Raises:
        LostFlitsError: they are not.
    """
    room, flits = lost_flits(fabric, state, network.settings.buffer)
    if flits or room.any():
        raise LostFlitsError(f"{flits} flits and the room for {int(np.abs(room).sum())} of them are lost")


def _point(
    network: Network, fabric: FlitFabric, state: State, load: float, seed: int, clocks: int, sent: Longs,
    cycle: tuple[int, ...], seconds: float,
) -> Point:  # fmt: skip
    channels, hosts = fabric.channels, fabric.hosts
    on_channels = sent[:channels]
    packets = int(state.counts[DELIVERED])
    fullest = int(on_channels.argmax()) if channels else -1
    return Point(
        load=load,
        seed=seed,
        clocks=clocks,
        accepted=None if cycle else float(sent[channels + hosts :].sum()) / network.senders / clocks,
        packets=packets,
        latency=latency_of(state.histogram, float(state.counts[LATENCIES])) if packets and not cycle else None,
        fullest=network.topology.channel_name(fullest) if channels else "",
        fullest_use=float(on_channels[fullest]) / clocks if channels and not cycle else None,
        cycle=tuple(hop_name(network.topology, hop, network.routes.layers) for hop in cycle),
        seconds=round(seconds, 3),
        channel_flits=tuple(on_channels.tolist()),
    )


def latency_of(histogram: Longs, total_latency: float) -> Latency:
    """Read a histogram of latencies, whose sum is known."""
    places = np.flatnonzero(histogram)
    upto = np.cumsum(histogram[places])
    total = int(upto[-1])
    ranks = np.ceil(np.array([0.5, 0.99, 1.0]) * total)
    p50, p99, most = (_clocks(int(place)) for place in places[np.searchsorted(upto, ranks)])
    return Latency(total_latency / total, p50, p99, most)


def _clocks(place: int) -> float:
    """Latency in the middle of a place of the histogram."""
    if place < EXACT:
        return float(place)
    octave, within = divmod(place - EXACT, OCTAVE)
    width = 2 << octave
    return (OCTAVE + within) * float(width) + (width - 1) / 2


# What lacks so little counts as all of the load, and so does what chance explains: packets are drawn independently.
_LITTLE = 0.03
_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class Seeds:
    """A figure over seeds: mean, min and max."""

    mean: float
    min: float
    max: float

    @classmethod
    def summarise(cls, values: Sequence[float]) -> Seeds | None:
        """Summarise; None of nothing."""
        return cls(statistics.fmean(values), min(values), max(values)) if values else None


@dataclass(frozen=True, slots=True)
class TieSpread:
    """What a load's figures are over orders of events of one time, the documented one and others; means over seeds."""

    orders: int  # with the documented one
    accepted_median: float
    accepted_min: float
    accepted_max: float
    latency_median: float | None  # s
    latency_min: float | None
    latency_max: float | None
    deadlocks: int  # runs that deadlocked, of orders times seeds; in no figure
    spread: float  # the larger one of the two ranges, as a share of its median


@dataclass(frozen=True, slots=True)
class Row:
    """One load. Runs that deadlocked are counted and left out of every figure."""

    load: float  # flits/host/cycle of hosts that send
    seeds: int  # number of runs
    deadlocks: int  # how many of them deadlocked
    accepted: Seeds | None  # flits that arrived, likewise
    latency: Seeds | None  # mean latency in cycles
    p99: Seeds | None  # 99th percentile of the latency in cycles
    max_channel_use: Seeds | None  # max channel utilisation, of the bottleneck channel
    saturated: bool  # whether less arrives than is asked for
    loss: Seeds | None = None  # packet level: share of the frames that were dropped
    hosts_paused: Seeds | None = None  # packet level: share of the time that hosts were paused
    channels_paused: Seeds | None = None  # packet level: share of the time that channels between switches were paused
    pauses: Seeds | None = None  # packet level: PAUSE frames a simulated second
    ties: TieSpread | None = None  # packet level: how far it depends on the order of events of one time


def rows_of(points: Sequence[Point]) -> tuple[Row, ...]:
    """One row a load, ascending."""
    by_load: dict[float, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.load):
        by_load.setdefault(point.load, []).append(point)
    return tuple(_row(load, some) for load, some in by_load.items())


def _row(load: float, points: Sequence[Point]) -> Row:
    accepted = Seeds.summarise([point.accepted for point in points if point.accepted is not None])
    packets = sum(point.packets for point in points if point.accepted is not None)
    lack = max(_LITTLE, _DEVIATIONS / math.sqrt(max(packets, 1)))
    latencies = [point.latency for point in points if point.latency is not None]
    flowing = [(point, point.links) for point in points if point.links is not None and not point.cycle]
    return Row(
        load=load,
        seeds=len(points),
        deadlocks=sum(bool(point.cycle) for point in points),
        accepted=accepted,
        latency=Seeds.summarise([latency.mean for latency in latencies]),
        p99=Seeds.summarise([latency.p99 for latency in latencies]),
        max_channel_use=Seeds.summarise([point.fullest_use for point in points if point.fullest_use is not None]),
        saturated=accepted is not None and accepted.mean < (1 - lack) * load,
        loss=Seeds.summarise([links.drops / max(links.drops + point.packets, 1) for point, links in flowing]),
        hosts_paused=Seeds.summarise([links.hosts_paused for _, links in flowing]),
        channels_paused=Seeds.summarise([links.channels_paused for _, links in flowing]),
        pauses=Seeds.summarise([links.pauses * PICOSECONDS / point.clocks for point, links in flowing]),
        ties=tie_spread(points),
    )


def tie_spread(points: Sequence[Point]) -> TieSpread | None:
    """None where runs were not repeated with other orders, or all deadlocked."""
    orders = min(len(point.ties) for point in points)
    if not orders:
        return None
    accepted, latency, deadlocks = [], [], 0
    for number in range(orders + 1):
        runs = [_with_order(point, number) for point in points]
        flowing = [run.accepted for run in runs if run.accepted is not None]
        times = [run.latency for run in runs if run.latency is not None]
        deadlocks += len(runs) - len(flowing)
        accepted += [statistics.fmean(flowing)] if flowing else []
        latency += [statistics.fmean(times)] if times else []
    if not accepted:
        return None
    ranges = [
        (max(values) - min(values)) / max(statistics.median(values), 1e-12) for values in (accepted, latency) if values
    ]
    return TieSpread(
        orders + 1, statistics.median(accepted), min(accepted), max(accepted),
        statistics.median(latency) if latency else None, min(latency, default=None), max(latency, default=None),
        deadlocks, max(ranges),
    )  # fmt: skip


def _with_order(point: Point, number: int) -> TieOrder:
    """A run with one of the orders, of which 0 is the documented one."""
    if number:
        return point.ties[number - 1]
    return TieOrder(point.accepted, None if point.latency is None else point.latency.mean, 0)
