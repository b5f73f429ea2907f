"""How much work a load is for the switches: frames a second, counted at every switch that forwards them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.model import Floats, Routes, Topology
from testbed.predict.frames import Transport
from testbed.predict.maxmin import alltoall_bound
from testbed.routing.paths import mean_switches_on_path, switches_on_path


def frame_hops(
    topology: Topology, routes: Routes, pairs: Sequence[tuple[int, int]], goodput: Floats, wire: Transport
) -> float:
    """Frames a second times the switches they pass, acknowledgements included.

    Args:
        topology: the network.
        routes: its paths.
        pairs: (source, destination) hosts.
        goodput: (F,) of each pair in bit/s.
        wire: payload of a frame, and how many acknowledgements it causes.
    """
    switches = switches_on_path(topology, routes)
    ends = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    forth, back = switches[ends[:, 0], ends[:, 1]], switches[ends[:, 1], ends[:, 0]]
    return float((goodput / (8 * wire.payload)) @ (forth + wire.backward_tags * back))


def alltoall_frame_hops(
    topology: Topology, routes: Routes, wire: Transport, link_rate: float | Floats, host_rate: float, *, tagged: bool
) -> float:
    """The same of an all-to-all that is as fast as its fullest channel.

    Args:
        topology: the network.
        routes: its paths.
        wire: as in frame_hops.
        link_rate: bit/s of a link between switches, or (C,) of each channel.
        host_rate: bit/s of a host's link.
        tagged: whether frames between switches carry a VLAN tag.
    """
    hosts = topology.host_count
    seconds = alltoall_bound(topology, routes, wire.payload, wire, link_rate, host_rate, tagged=tagged)
    # Pairs of a host with itself count 1 in the mean, and send nothing.
    passes = mean_switches_on_path(topology, routes) * hosts**2 - hosts
    return passes * (1 + wire.backward_tags) / seconds
