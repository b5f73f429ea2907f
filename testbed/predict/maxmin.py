"""Max-min fair goodput of flows that share channels: progressive filling (Bertsekas and Gallager, 6.5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.model import Floats, Routes, Topology
from testbed.predict.frames import Transport
from testbed.routing.paths import channel_load, path

_SATURATED = 1e-9


Ways = Sequence[tuple[Sequence[int], Sequence[int]]]


def fair_goodput(
    topology: Topology,
    routes: Routes,
    flows: Sequence[tuple[int, int]],
    wire: Transport,
    link_rate: float | Floats,
    host_rate: float,
    *,
    tagged: bool = True,
) -> Floats:
    """Goodput of each flow when all run at once and share every channel max-min fairly.

    Args:
        topology: the network.
        routes: its paths.
        flows: (source, destination) hosts.
        wire: cost of payload, headers and acknowledgements.
        link_rate: bit/s of a link between switches, or (C,) of each channel.
        host_rate: bit/s of a host's link.
        tagged: whether frames between switches carry a VLAN tag.

    Returns:
        (F,) goodput in bit/s. Acknowledgements take their share of the reverse path.
    """
    ways = [(path(topology, routes, start, end), path(topology, routes, end, start)) for start, end in flows]
    return fair_on_ways(topology, flows, ways, wire, link_rate, host_rate, tagged=tagged)


def fair_on_ways(
    topology: Topology,
    flows: Sequence[tuple[int, int]],
    ways: Ways,
    wire: Transport,
    link_rate: float | Floats,
    host_rate: float,
    *,
    tagged: bool = True,
) -> Floats:
    """As fair_goodput(), with the channels that each flow and its acknowledgements take."""
    forward, backward, capacity = wire_costs(topology, flows, ways, wire, link_rate, host_rate, tagged=tagged)
    return _fill(forward + backward, capacity)


def wire_costs(
    topology: Topology,
    flows: Sequence[tuple[int, int]],
    ways: Ways,
    wire: Transport,
    link_rate: float | Floats,
    host_rate: float,
    *,
    tagged: bool = True,
) -> tuple[Floats, Floats, Floats]:
    """What each flow takes of each wire; arguments as for fair_on_ways().

    Returns:
        (F, R) bits on each wire for a bit of goodput, (F, R) those of its acknowledgements, and (R,) bit/s of the
        wires: channels between switches, then host → switch, then switch → host.
    """
    channels, hosts = len(topology.channel_source), topology.host_count
    capacity = np.concatenate([np.broadcast_to(link_rate, channels), np.full(2 * hosts, host_rate)])
    forward, backward = np.zeros((2, len(flows), len(capacity)))
    for flow, ((source, destination), (there, back)) in enumerate(zip(flows, ways, strict=True)):
        for cost, start, end, taken, trunk, edge in (
            (forward, source, destination, there, wire.cost(tagged=tagged), wire.cost(tagged=False)),
            (backward, destination, source, back, wire.reverse_cost(tagged=tagged), wire.reverse_cost(tagged=False)),
        ):
            cost[flow, list(taken)] += trunk
            cost[flow, channels + start] += edge
            cost[flow, channels + hosts + end] += edge
    return forward, backward, capacity


def _fill(cost: Floats, capacity: Floats) -> Floats:
    """Raise all rates together; freeze the flows of each resource as it saturates."""
    rate = np.zeros(len(cost))
    rising = np.ones(len(cost), dtype=bool)
    while rising.any():
        left = capacity - rate @ cost
        demand = cost[rising].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(demand > 0, left / demand, np.inf)
        step = room.min()
        rate[rising] += step
        full = room <= step * (1 + _SATURATED) + _SATURATED
        rising &= ~(cost[:, full] > 0).any(axis=1)
    return rate


def alltoall_bound(
    topology: Topology,
    routes: Routes,
    bytes_a_pair: float,
    wire: Transport,
    link_rate: float | Floats,
    host_rate: float,
    *,
    tagged: bool = True,
) -> float:
    """Least seconds for every host to send `bytes_a_pair` to every other: the fullest channel's time.

    Frames between switches carry a VLAN tag where `tagged`; `link_rate` is one, or (C,) that of each channel.
    """
    trunk = (channel_load(topology, routes) / link_rate).max(initial=0) * wire.cost(tagged=tagged)
    edge = (topology.host_count - 1) * wire.cost(tagged=False) / host_rate
    return float(max(trunk, edge) * bytes_a_pair * 8)
