"""What an exchange of messages takes at least, and how much work a load is for the switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from testbed.model import Floats, Routes
from testbed.predict.wires import Wires
from testbed.routing.paths import channel_load, mean_switches_on_path, path, switches_on_path


def alltoall_bound(wires: Wires, routes: Routes, bytes_a_pair: float) -> float:
    """Least seconds for every host to send `bytes_a_pair` to every other: the bottleneck channel's time."""
    topology, wire = wires.topology, wires.transport
    trunk = (channel_load(topology, routes) / wires.link_rate).max(initial=0) * wire.cost(tagged=wires.tagged)
    edge = (topology.host_count - 1) * wire.cost(tagged=False) / wires.host_rate
    return float(max(trunk, edge) * bytes_a_pair * 8)


def exchange_bound(
    wires: Wires, routes: Routes, sent: Mapping[tuple[int, int], float], *, at_once: float = 0.0
) -> float:
    """Least seconds in which all bytes between hosts can arrive, whatever the order they are sent in.

    `sent`: (source, destination) hosts → bytes of payload; acknowledgements are left out. `at_once`: bytes that a
    channel lets pass at once after a pause, as a token bucket does.
    """
    topology, wire = wires.topology, wires.transport
    channels, hosts = len(topology.channel_source), topology.host_count
    load = np.zeros(channels + 2 * hosts)  # bytes on each wire
    for (source, destination), payload in sent.items():
        if source == destination:
            continue
        load[list(path(topology, routes, source, destination))] += payload * wire.cost(tagged=wires.tagged)
        edge = payload * wire.cost(tagged=False)
        load[channels + source] += edge
        load[channels + hosts + destination] += edge
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
