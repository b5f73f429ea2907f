"""Flows that begin and end over switches that pause senders and mark frames: when has each of them arrived?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from testbed.base.errors import InputError, Problem, argument, setting
from testbed.base.model import Floats, Longs
from testbed.dataplane.kernels.dcqcn import DcqcnRates
from testbed.dataplane.kernels.packets import run
from testbed.dataplane.kernels.packets_check import waiting_cycle
from testbed.dataplane.kernels.packets_rdma import BY_PATH, KINDS, WAKES
from testbed.dataplane.kernels.packets_state import (
    DELIVERED,
    MARKED,
    NOTIFIED,
    NOW,
    PAUSES,
    TALLIES,
    PacketFabric,
    PacketRdma,
    PacketState,
)
from testbed.engines.simulate.flit_settings import UNIFORM
from testbed.engines.simulate.flow_settings import NEXT_HOPS, FlowSettings
from testbed.engines.simulate.flow_sizes import find_sizes
from testbed.engines.simulate.packet_network import PacketNetwork, empty_packet_state, packet_fabric
from testbed.engines.simulate.packet_point import STRETCH, Counters, check_frames
from testbed.engines.simulate.packet_settings import CONTROL_BYTES, time_of
from testbed.fabric.routing.paths import destination_keys, hop_counts, source_keys
from testbed.fabric.traffic import flows as pairs_of
from testbed.fabric.verify.deadlock import hop_name

MAX_FLOWS = 1 << 22
_MAX_FRAMES = 1 << 33  # of all flows together
_QUANTILES = 65_536  # at which the mean number of frames is taken
_MICROSECOND = 1e6  # ps

Progress = Callable[[int, int], bool]


class Flows(NamedTuple):
    """What hosts send; F flows, by host and by time."""

    source: Longs  # (F,) hosts
    goal: Longs  # (F,) other hosts
    size: Longs  # (F,) bytes
    begin: Longs  # (F,) ps


@dataclass(frozen=True, slots=True, eq=False)
class FlowResult:
    """What became of flows."""

    flows: Flows  # what was sent
    finished: Longs  # (F,) ps at which the last frame of each had arrived; -1 where a deadlock came before
    alone: Longs  # (F,) ps that each takes on idle links
    end: int  # ps at which all had arrived, or the deadlock was found
    frames: int  # that were delivered
    marked: int  # frames that switches marked
    notified: int  # congestion notifications
    pauses: int  # PAUSE frames that stopped a priority
    channels_paused: float  # mean share of the time that a channel between switches was paused
    hosts_paused: float  # likewise of the hosts that send
    longest_queue: int  # frames
    channel_use: Floats  # (C,) share of the time that each channel carried something
    cycle: tuple[str, ...]  # channels that wait for each other, each for the one after it; empty without a deadlock
    seconds: float  # it took

    @property
    def times(self) -> Floats:
        """(F,) s from a flow's begin until all of it had arrived; NaN where it had not."""
        found: Floats = np.where(self.finished < 0, np.nan, (self.finished - self.flows.begin) / 1e12)
        return found

    @property
    def slowdown(self) -> Floats:
        """(F,) that time as a multiple of the one on idle links; NaN likewise."""
        found: Floats = self.times / (self.alone / 1e12)
        return found


def has_percentile(count: int, percent: float) -> bool:
    """Whether so many values have a percentile of their own, with at least one value above it."""
    return count * (100 - percent) >= 100


def draw_flows(network: PacketNetwork, settings: FlowSettings, seed: int) -> Flows:
    """Draw what hosts send: at a load by a Poisson process of each host, else one flow of each pair of the pattern.

    Raises:
        InputError: there would be none, or too many.
    """
    sizes, goals = find_sizes(settings.sizes), _goals(network, settings)
    senders = sorted(goals)
    if settings.load is None:
        begins: dict[int, Floats] = {host: np.zeros(max(len(goals[host]), 1)) for host in senders}
    else:
        quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        frames = float(np.ceil(sizes.draw(quantiles) / settings.payload).mean())
        mean = frames * network.edge_time / settings.load
        expected = settings.switches.duration * 1e9 / mean * len(senders)
        if expected > MAX_FLOWS:
            sentence = (
                f"gives about {expected:,.0f} flows, and a simulation takes {MAX_FLOWS:,}; ask for a shorter "
                f"{argument('duration')} or a lower {argument('load')}"
            )
            raise InputError.one(argument("sizes"), sentence)
        begins = {host: _arrivals(seed, host, mean, settings.switches.duration * 1e9) for host in senders}
    source = np.repeat(senders, [len(begins[host]) for host in senders]).astype(np.int64)
    if not len(source):
        sentence = (
            f"is so short that no flow of {sizes.mean:,.0f} bytes on average begins at this load; ask for more ms"
        )
        raise InputError.one(argument("duration"), sentence)
    size = sizes.draw(_uniform(seed, 1 << 20, len(source)))
    frames_in_all = int(np.ceil(size / settings.payload).sum())
    if frames_in_all > _MAX_FRAMES:
        raise InputError.one(argument("sizes"), f"give {frames_in_all:,} frames, too many to simulate; ask for less")
    return Flows(
        source=source,
        goal=np.concatenate(
            [_choose(network, settings, host, goals[host], len(begins[host]), seed) for host in senders]
        ),
        size=size,
        begin=np.concatenate([begins[host] for host in senders]).astype(np.int64),
    )


def _goals(network: PacketNetwork, settings: FlowSettings) -> dict[int, list[int]]:
    """The hosts that each host which sends sends to; none where a destination is drawn from all others."""
    if settings.switches.pattern == UNIFORM:
        return {host: [] for host in range(network.topology.host_count)}
    goals: dict[int, list[int]] = {}
    for source, goal in pairs_of(settings.switches.pattern, network.topology, network.pattern_seed):
        goals.setdefault(source, []).append(goal)
    return goals


def _uniform(seed: int, stream: int, count: int) -> Floats:
    # Only raw bits are the same in all versions of numpy.
    found: Floats = np.random.PCG64([seed, 3, stream]).random_raw(count) / 2.0**64
    return found


def _arrivals(seed: int, host: int, mean: float, end: float) -> Floats:
    """Times of a Poisson process before an end."""
    count = 16
    while True:
        found: Floats = np.cumsum(-np.log1p(-_uniform(seed, 2 * host, count)) * mean)
        if found[-1] >= end:
            return found[found < end]
        count *= 2


def _choose(
    network: PacketNetwork, settings: FlowSettings, host: int, goals: list[int], count: int, seed: int
) -> Longs:
    """Where the flows of a host go: to each of its goals, or to one that is drawn for each flow."""
    if goals and settings.load is None:
        return np.array(goals, dtype=np.int64)
    others = len(goals) or network.topology.host_count - 1
    drawn = (_uniform(seed, 2 * host + 1, count) * others).astype(np.int64)
    return np.array(goals, dtype=np.int64)[drawn] if goals else drawn + (drawn >= host)


def begin_flows(
    network: PacketNetwork, settings: FlowSettings, flows: Flows, seed: int
) -> tuple[PacketFabric, PacketState, PacketRdma]:
    """A network at time 0, with every flow still to begin."""
    count = len(flows.source)
    pairs = list(zip(flows.source.tolist(), flows.goal.tolist(), strict=True))
    fabric = packet_fabric(network, pairs, np.full(count, network.edge_time, dtype=np.float64))
    hosts, frame, payload = fabric.hosts, settings.switches.frame, settings.payload
    back = _time_back(network, flows)
    interval = round(settings.dcqcn.interval * _MICROSECOND)
    under_way = 2 + int(back.max(initial=0)) // interval
    state = empty_packet_state(network, fabric, seed, events=hosts + count * (1 + under_way))
    senders = np.flatnonzero(np.diff(fabric.flows))
    # In order of time they are a heap.
    first = flows.begin[fabric.flows[senders]]
    order = np.argsort(first, kind="stable")
    state.heap.time[: len(senders)] = first[order]
    state.heap.what[: len(senders)] = senders[order] * KINDS + WAKES
    state.heap.count[0] = len(senders)
    state.waking[senders] = True

    def longs(*shape: int) -> Longs:
        return np.zeros(shape, dtype=np.int64)

    dcqcn, choices = settings.dcqcn, network.routes.choices
    several = choices is not None and choices.layers == 1 and settings.next_hop != "path"
    rates = DcqcnRates(
        controlled=settings.congestion == "dcqcn",
        gain=dcqcn.gain,
        alpha_time=round(dcqcn.alpha_time * _MICROSECOND),
        timer=round(dcqcn.timer * _MICROSECOND),
        byte_counter=max(1, dcqcn.byte_counter // payload),
        fast=dcqcn.fast_recovery,
        additive=dcqcn.additive,
        hyper=dcqcn.hyper,
        rate=np.ones(count),
        target=np.ones(count),
        alpha=np.ones(count),
        told=longs(count),
        limited=np.zeros(count, dtype=np.bool_),
        times=longs(count),
        counts=longs(count),
        frames=longs(count),
        deadline=longs(count),
        ticking=np.zeros(count, dtype=np.bool_),
    )
    rdma = PacketRdma(
        rates=rates,
        begin=flows.begin,
        size=-(-flows.size // payload),
        finished=np.full(count, -1, dtype=np.int64),
        sending=longs(count),
        open=longs(hosts),
        upcoming=fabric.flows[:-1].copy(),
        k_min=settings.k_min // frame,
        k_max=max(settings.k_max // frame, settings.k_min // frame + 1),
        p_max=settings.p_max,
        interval=interval,
        back=back,
        next_notice=longs(count),
        marked=np.zeros(network.frames, dtype=np.bool_),
        waiting=longs(network.nodes),
        peak=longs(network.nodes),
        next_hop=NEXT_HOPS.index(settings.next_hop or "flow") if several else BY_PATH,
        key=destination_keys(network.topology, network.routes).astype(np.int64) if several else longs(0),
        table=choices.table if choices is not None and several else np.zeros((0, 0), dtype=np.int32),
        start=choices.start if choices is not None and several else longs(0),
        channel=choices.hop if choices is not None and several else np.zeros(0, dtype=np.int32),
        turn=longs(len(choices.start) if choices is not None and several else 0),
        tally=longs(TALLIES),
    )
    return fabric, state, rdma


def simulate_flows(
    network: PacketNetwork,
    settings: FlowSettings,
    seed: int,
    progress: Progress = lambda done, total: False,
    flows: Flows | None = None,
) -> FlowResult | None:
    """Let all flows begin, and go on until all have arrived, or until frames wait for each other for ever.

    `progress` is called now and then with the frames that have arrived and all; True to give up. `flows` None: those
    that draw_flows() draws.

    Returns:
        what became of them, or None when given up.

    Raises:
        InputError: there would be no flows, or too many.
        LostFramesError: the simulator has a fault.
    """
    started = time.monotonic()
    flows = draw_flows(network, settings, seed) if flows is None else flows
    fabric, state, rdma = begin_flows(network, settings, flows, seed)
    total = int(rdma.size.sum())
    cycle: tuple[int, ...] = ()
    while state.counts[DELIVERED] < total and not cycle:
        if progress(int(state.counts[DELIVERED]), total):
            return None
        run(fabric, state, int(state.counts[NOW]) + STRETCH * network.channel_time, rdma=rdma)
        cycle = tuple(waiting_cycle(fabric, state).tolist())
    check_frames(network, fabric, state)
    counted, channels = Counters.from_state(state), fabric.channels
    end = max(counted.now if cycle else int(rdma.finished.max()), 1)
    paused = counted.still / max(counted.now, 1)
    senders = np.flatnonzero(np.diff(fabric.flows))
    return FlowResult(
        flows=flows,
        finished=rdma.finished,
        alone=_time_alone(network, flows, rdma.size),
        end=end,
        frames=int(counted.counts[DELIVERED]),
        marked=int(rdma.tally[MARKED]),
        notified=int(rdma.tally[NOTIFIED]),
        pauses=int(counted.counts[PAUSES]),
        channels_paused=float(paused[: fabric.virtual].mean()) if channels else 0.0,
        hosts_paused=float(paused[fabric.virtual + senders].mean()),
        longest_queue=int(rdma.peak.max()),
        channel_use=np.minimum(counted.sent[:channels] * network.channel_time / end, 1.0),
        cycle=tuple(hop_name(network.topology, hop, network.priorities) for hop in cycle),
        seconds=round(time.monotonic() - started, 3),
    )


def choice_problems(network: PacketNetwork, settings: FlowSettings) -> list[Problem]:
    """Next hops that switches are to choose among, where the plan has one for each pair."""
    if settings.next_hop in (None, "path") or network.routes.choices is not None:
        return []
    sentence = (
        f'"{settings.next_hop}" chooses among several next hops, and this plan has one path for each pair; ask for a '
        f"routing with several, {setting('routing', value='{kind: ecmp}')}"
    )
    return [Problem(argument("next_hop"), sentence)]


def memory_problems(network: PacketNetwork, settings: FlowSettings) -> list[Problem]:
    """Marks that could never be set, since senders are paused before a queue is as long."""
    if settings.congestion == "none":
        return []
    holders = int(np.bincount(network.topology.channel_target).max(initial=0)) + int(
        np.bincount(network.topology.host_switch).max(initial=0)
    )
    longest = network.thresholds.buffer * max(holders - 1, 1)
    if settings.k_min // settings.switches.frame < longest:
        return []
    sentence = (
        f"of {settings.k_min:,} bytes is more than any queue can hold here, {longest * settings.switches.frame:,}: no "
        f"frame would be marked; give it less, or a larger {argument('buffer')}"
    )
    return [Problem(argument("k_min"), sentence)]


def _hops(network: PacketNetwork, flows: Flows) -> Longs:
    """(F,) channels between switches on the path of each flow."""
    topology, routes = network.topology, network.routes
    counts = hop_counts(topology, routes)
    return counts[source_keys(topology, routes)[flows.source], destination_keys(topology, routes)[flows.goal]].astype(
        np.int64
    )


def _time_back(network: PacketNetwork, flows: Flows) -> Longs:
    """(F,) ps of a short frame from a flow's goal to its source, on idle links and as many of them."""
    hops = _hops(network, flows)
    on_edge, on_channel = time_of(CONTROL_BYTES, network.edge_rate), time_of(CONTROL_BYTES, network.rate)
    found: Longs = 2 * on_edge + hops * on_channel + (hops + 2) * network.delay
    return found


def _time_alone(network: PacketNetwork, flows: Flows, frames: Longs) -> Longs:
    """(F,) ps that a flow takes on idle links: its first frame from switch to switch, the others behind it."""
    hops = _hops(network, flows)
    slowest = np.where(hops > 0, max(network.edge_time, network.channel_time), network.edge_time)
    first = 2 * network.edge_time + hops * network.channel_time + (hops + 2) * network.delay
    found: Longs = first + (frames - 1) * slowest
    return found
