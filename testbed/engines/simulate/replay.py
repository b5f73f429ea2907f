"""A given number of bytes from host to host, sent as fast as the fabric takes them: when has all of it arrived?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from testbed.base.model import Floats, Ints, Longs, Topology
from testbed.dataplane.kernels.flits import release_entry, run, schedule
from testbed.dataplane.kernels.flits_check import waiting_cycle
from testbed.dataplane.kernels.flits_state import CLOCK, DELIVERED, IDLE, LISTED, NEVER, FlitFabric, State
from testbed.engines.simulate.flit_network import Network, fabric_of, new_state
from testbed.engines.simulate.flit_point import STRETCH, check_conservation
from testbed.fabric.collectives import Steps, waits_of
from testbed.fabric.routing.paths import hops
from testbed.fabric.verify.deadlock import hop_name

Progress = Callable[[int, int], bool]
_MAX_COLUMNS = 120


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What is sent. M pairs of hosts, by source."""

    source: Ints  # (M,) hosts
    destination: Ints  # (M,) other hosts
    size: Longs  # (M,) bytes, above 0
    carried: int  # bytes that a packet carries, the last one of a pair as many or fewer
    steps: Steps | None = None  # of a collective, whose messages these are; None where all begin at once

    @classmethod
    def from_matrix(cls, matrix: Longs, carried: int) -> Demand:
        """Make it from a matrix (H, H) of bytes from host (row) to host (column); its diagonal stays at home.

        The entries of a host are in the order in which it takes turns: those behind it first, then from the first
        host on, so that not all hosts begin with the same one.
        """
        source, destination = np.nonzero(np.where(np.eye(len(matrix), dtype=bool), 0, matrix))
        order = np.lexsort(((destination - source) % max(len(matrix), 1), source))
        source, destination = source[order], destination[order]
        return cls(source.astype(np.int32), destination.astype(np.int32), matrix[source, destination], carried)

    @classmethod
    def from_steps(cls, steps: Steps, carried: int) -> Demand:
        """Make it from the messages of a collective; a pair may have several."""
        return cls(steps.source, steps.destination, steps.size, carried, steps)

    @property
    def packets(self) -> Longs:
        """(M,) packets of each pair."""
        found: Longs = -(-self.size // self.carried)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class OverTime:
    """How full the channels were, T columns of about the same length."""

    clock: Longs  # (T + 1,) where each column begins, and where the last one ends
    flits: Longs  # (C, T) flits over each channel

    @property
    def use(self) -> Floats:
        """(C, T) share of the cycles in which each channel carried a flit."""
        found: Floats = self.flits / np.maximum(np.diff(self.clock), 1)
        return found


class _Recorder:
    """Reads counters after every few stretches; where that gives too many columns, twice as many stretches a column."""

    def __init__(self, channels: int) -> None:
        self._clock = [0]
        self._sent: list[Longs] = [np.zeros(channels, dtype=np.int64)]
        self._every, self._since = 1, 0

    def read(self, clock: int, sent: Longs) -> None:
        self._since += 1
        if self._since < self._every:
            return
        self._since = 0
        self._clock.append(clock)
        self._sent.append(sent.copy())
        if len(self._clock) > _MAX_COLUMNS:
            self._clock, self._sent = self._clock[::2], self._sent[::2]
            self._every *= 2

    def end(self, clock: int, sent: Longs) -> OverTime:
        """All columns, the last one up to the end."""
        clocks = [at for at in self._clock if at < clock]
        flits = np.diff(np.stack([*self._sent[: len(clocks)], sent]), axis=0).T
        return OverTime(np.array([*clocks, clock]), flits)


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """How a replay went."""

    clocks: int  # until the last flit had arrived; where packets wait for each other, until that was found
    finished: Longs  # (M,) clock at which the last flit of each pair arrived; 0 for pairs of which nothing has arrived
    # virtual channels that wait for each other, each for the one after it; empty without a deadlock
    cycle: tuple[str, ...]
    channel_flits: Longs  # (C,) flits over each channel
    over_time: OverTime  # the same by time
    seconds: float  # it took


def replay(network: Network, demand: Demand, progress: Progress = lambda done, total: False) -> Replayed | None:
    """Send everything, each host one packet to each of its destinations in turn, as fast as the fabric takes them.

    `progress` is called now and then with the packets that have arrived and all; True to give up. The settings' pattern
    and clocks play no part.

    Returns:
        how it went, or None when given up.

    Raises:
        LostFlitsError: the simulator has a fault.
    """
    started = time.monotonic()
    fabric, state = _begin_replay(network, demand)
    total = int(demand.packets.sum())
    cycle: tuple[int, ...] = ()
    sent = state.links.sent[: fabric.channels]
    recorder = _Recorder(fabric.channels)
    while state.counts[DELIVERED] < total and not cycle:
        if progress(int(state.counts[DELIVERED]), total):
            return None
        run(fabric, state, int(state.counts[CLOCK]) + STRETCH)
        cycle = tuple(waiting_cycle(fabric, state).tolist())
        recorder.read(int(state.counts[CLOCK]), sent)
    check_conservation(network, fabric, state)
    clocks = int(state.counts[CLOCK]) if cycle else int(state.finished.max(initial=0))
    return Replayed(
        clocks=clocks,
        finished=state.finished,
        cycle=tuple(hop_name(network.topology, hop, network.routes.layers) for hop in cycle),
        channel_flits=sent,
        over_time=recorder.end(clocks, sent),
        seconds=round(time.monotonic() - started, 3),
    )


def least_clocks(network: Network, demand: Demand) -> tuple[int, str]:
    """Cycles that no order of packets can get below, and what takes them, the bottleneck host or channel.

    Of a channel the flits that its paths lead over it, of a host those that it sends or receives.
    """
    topology = network.topology
    flits = demand.packets * network.settings.packet
    channels = np.zeros(len(topology.channel_source), dtype=np.int64)
    number = demand.source.astype(np.int64) * topology.host_count + demand.destination
    pair, of_pair = np.unique(number, return_inverse=True)
    summed = np.bincount(of_pair, flits, len(pair)).astype(np.int64)
    ends = (divmod(one, topology.host_count) for one in pair.tolist())
    for (source, destination), count in zip(ends, summed.tolist(), strict=True):
        for hop in hops(topology, network.routes, source, destination):
            channels[hop % len(channels)] += count
    sent = np.bincount(demand.source, flits, topology.host_count).astype(np.float64)
    received = np.bincount(demand.destination, flits, topology.host_count).astype(np.float64)
    found = [
        (int(sent.max(initial=0)), _host(topology, sent, "what {} sends")),
        (int(received.max(initial=0)), _host(topology, received, "what {} receives")),
    ]
    if demand.steps is not None:
        found.append((_longest_chain(network, demand, demand.steps), "the longest chain of messages, each alone"))
    if len(channels):
        found.append((int(channels.max()), f"channel {topology.channel_name(int(channels.argmax()))}"))
    return max(found, key=lambda pair: pair[0])


def _longest_chain(network: Network, demand: Demand, steps: Steps) -> int:
    """Cycles that a collective takes if each message is alone: header and flits, one message after the other."""
    topology, waits = network.topology, waits_of(steps)

    @cache
    def header(source: int, goal: int) -> int:
        return network.settings.header * (len(hops(topology, network.routes, source, goal)) + 1)

    alone = [
        header(source, goal) + flits
        for source, goal, flits in zip(
            steps.source.tolist(),
            steps.destination.tolist(),
            (demand.packets * network.settings.packet).tolist(),
            strict=True,
        )
    ]
    begin = [0] * len(alone)
    left = waits.count.copy()
    ready = np.flatnonzero(left == 0).tolist()
    latest = 0
    while ready:
        message = ready.pop()
        end = begin[message] + alone[message]
        latest = max(latest, end)
        for start, lists, at in (
            (waits.arrived_start, waits.arrived, end),
            (waits.released_start, waits.released, begin[message]),
        ):
            for after in lists[start[message] : start[message + 1]].tolist():
                begin[after] = max(begin[after], at)
                left[after] -= 1
                if left[after] == 0:
                    ready.append(after)
    return latest


def _host(topology: Topology, flits: Floats, words: str) -> str:
    return words.format(topology.host_name(int(flits.argmax())))


def _begin_replay(network: Network, demand: Demand) -> tuple[FlitFabric, State]:
    """Every host with something to send has its first packet due at clock 0."""
    hosts = network.topology.host_count
    target = np.full(hosts, IDLE, dtype=np.int32)
    target[demand.source] = LISTED
    fabric = fabric_of(network, 1.0)._replace(target=target, listed=demand.destination)
    if demand.steps is not None:
        return _begin_steps(network, fabric, demand, demand.steps)
    state = new_state(network, fabric, 1)
    first = np.searchsorted(demand.source, np.arange(hosts + 1))
    ring = np.arange(1, len(demand.source) + 1, dtype=np.int32)
    senders = np.flatnonzero(first[1:] > first[:-1])
    ring[first[senders + 1] - 1] = first[senders]
    ring_at = np.full(hosts, -1, dtype=np.int32)
    ring_at[senders] = first[senders + 1] - 1
    state = state._replace(
        unsent=demand.packets.copy(),
        ring=ring,
        ring_at=ring_at,
        entry=np.zeros(network.packets, dtype=np.int32),
        finished=np.zeros(len(demand.source), dtype=np.int64),
    )
    state.due[:] = 0
    for host in senders.tolist():
        schedule(state, host)
    return fabric, state


def _begin_steps(network: Network, fabric: FlitFabric, demand: Demand, steps: Steps) -> tuple[FlitFabric, State]:
    """The messages that wait for nothing are due at clock 0; who has none sleeps."""
    waits = waits_of(steps)
    fabric = fabric._replace(
        sender=demand.source,
        arrived_start=waits.arrived_start,
        arrived=waits.arrived,
        released_start=waits.released_start,
        released=waits.released,
    )
    count = len(demand.source)
    state = new_state(network, fabric, 1)._replace(
        unsent=demand.packets.copy(),
        ring=np.full(count, -1, dtype=np.int32),
        ring_at=np.full(network.topology.host_count, -1, dtype=np.int32),
        entry=np.zeros(network.packets, dtype=np.int32),
        finished=np.zeros(count, dtype=np.int64),
        missing=demand.packets.copy(),
        blocked=waits.count.copy(),
        releasing=np.zeros(count, dtype=np.int32),
    )
    state.due[:] = NEVER
    ready = np.flatnonzero(waits.count == 0).tolist()
    while ready:
        entry = ready.pop(0)
        release_entry(state, int(demand.source[entry]), entry, 0)
        for after in waits.released[waits.released_start[entry] : waits.released_start[entry + 1]].tolist():
            state.blocked[after] -= 1
            if state.blocked[after] == 0:
                ready.append(after)
    return fabric, state
