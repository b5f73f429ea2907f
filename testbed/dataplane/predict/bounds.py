"""What links allow at most, and how much work a load is for the switches.

A bound is no expectation: no figure of any program can be beyond it, so one that is was not made by the links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Floats, Routes
from testbed.dataplane.predict.shared_links import Ways, Wires
from testbed.fabric.routing.paths import channel_load, mean_switches_on_path, path, switches_on_path

# Metrics whose prediction is the least there can be, and the most.
AT_LEAST = frozenset(
    {
        "completion_time", "rtt_min", "rtt_mean", "mpi_latency", "mpi_pingping_time", "mpi_multi_pingping_time",
        "mpi_sendrecv_time", "mpi_exchange_time", "mpi_alltoall_time", "mpi_allreduce_time", "mpi_bcast_time",
        "mpi_barrier_time",
    }
)  # fmt: skip
AT_MOST = frozenset(
    {
        "transactions", "mpi_bandwidth", "mpi_pingping_bandwidth", "mpi_multi_pingping_bandwidth",
        "mpi_sendrecv_bandwidth", "mpi_exchange_bandwidth", "mpi_stream_bandwidth", "mpi_bidirectional_bandwidth",
        "mpi_alltoall_bandwidth",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Least:
    """The least time of something."""

    seconds: float  # that links need
    held: float  # what of it a lab's ports need; less where they let a frame that finds them idle go at once

    @classmethod
    def from_load(cls, seconds: Callable[[bool], float], *, exact: bool) -> Least:
        """Work it out: `seconds` is the time, given whether ports hold every frame for its time on the wire.

        `exact` says whether those of the lab do.
        """
        whole = seconds(True)
        return cls(whole, whole if exact else seconds(False))

    @property
    def unheld(self) -> float:
        """Share of the time that the lab's ports do not need, 0 to 1."""
        return 1 - self.held / self.seconds if self.seconds > 0 else 0.0


def wire_shares(wires: Wires, flows: Sequence[tuple[int, int]], ways: Ways, goodput: Floats) -> Floats:
    """(R,) share of each wire's rate that the payload of flows takes with its headers; acknowledgements are left out.

    `goodput`: (F,) bit/s.
    """
    forward, _ = wires.costs(flows, ways)
    return np.asarray(goodput @ forward / wires.rates, dtype=np.float64)


def alltoall_bound(wires: Wires, routes: Routes, bytes_a_pair: float) -> float:
    """Least seconds for every host to send `bytes_a_pair` to every other: the bottleneck channel's time."""
    topology, wire = wires.topology, wires.transport
    trunk = (channel_load(topology, routes) / wires.link_rate).max(initial=0) * wire.cost(tagged=wires.tagged)
    tagged = bool(wires.tags[len(topology.channel_source) :].any())
    edge = (topology.host_count - 1) * wire.cost(tagged=tagged) / wires.host_rate
    return float(max(trunk, edge) * bytes_a_pair * 8)


def exchange_bound(
    wires: Wires,
    routes: Routes,
    sent: Mapping[tuple[int, int], float],
    *,
    at_once: float = 0.0,
    edges_only: bool = False,
) -> float:
    """Least seconds in which all bytes between hosts can arrive, whatever the order they are sent in.

    `sent`: (source, destination) hosts → bytes of payload; acknowledgements are left out. `at_once`: bytes that a
    channel lets pass at once after a pause, as a token bucket does. `edges_only`: whether hosts may
    pass on what is for others, so that only the links of hosts count.
    """
    topology, wire = wires.topology, wires.transport
    channels, hosts = len(topology.channel_source), topology.host_count
    load, tagged = np.zeros(channels + 2 * hosts), wires.tags > 0  # bytes on each wire
    for (source, destination), payload in sent.items():
        if source == destination:
            continue
        if not edges_only:
            load[list(path(topology, routes, source, destination))] += payload * wire.cost(tagged=wires.tagged)
        for end in (channels + source, channels + hosts + destination):
            load[end] += payload * wire.cost(tagged=bool(tagged[end]))
    load -= at_once
    trunk, edges = (load[:channels] / wires.link_rate).max(initial=0), load[channels:].max(initial=0) / wires.host_rate
    return float(8 * max(trunk, edges))


def frame_hops(wires: Wires, routes: Routes, pairs: Sequence[tuple[int, int]], goodput: Floats) -> float:
    """Frames a second times the switches they pass, acknowledgements included.

    `goodput`: (F,) of each pair in bit/s.
    """
    switches = switches_on_path(wires.topology, routes)
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    forth, back = switches[ends[:, 0], ends[:, 1]], switches[ends[:, 1], ends[:, 0]]
    wire = wires.transport
    return float((goodput / (8 * wire.payload)) @ (forth + wire.backward_tags * back))


def alltoall_frame_hops(wires: Wires, routes: Routes) -> float:
    """The same of an all-to-all that is as fast as its bottleneck channel."""
    hosts, wire = wires.topology.host_count, wires.transport
    seconds = alltoall_bound(wires, routes, wire.payload)
    # Pairs of a host with itself count 1 in the mean, and send nothing.
    passes = mean_switches_on_path(wires.topology, routes) * hosts**2 - hosts
    return passes * (1 + wire.backward_tags) / seconds
