"""The wires that the flows of a load share, and what each flow takes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.ethernet import VLAN_TAG
from testbed.base.model import Bools, Floats, Ints, Routes, Topology
from testbed.dataplane.predict.wire_overhead import Transport
from testbed.fabric.routing.paths import path

# Channels of each flow and of its acknowledgements.
Ways = Sequence[tuple[Sequence[int], Sequence[int]]]


@dataclass(frozen=True, slots=True, eq=False)
class Wires:
    """The R wires of a network, and what frames of one kind take of them.

    The wires are the C channels between switches, then host → switch of each host, then switch → host.
    """

    topology: Topology  # the network
    transport: Transport  # cost of payload, headers and acknowledgements
    link_rate: float | Floats  # bit/s of a link between switches, or (C,) of each channel
    host_rate: float  # bit/s of a host's link
    tagged: bool = True  # whether frames between switches carry a VLAN tag
    cut_through: bool = False  # whether switches send on what has not arrived as a whole
    tagging: Bools | None = None  # (H,) hosts whose links carry tags; None = none

    @property
    def rates(self) -> Floats:
        """(R,) bit/s of each wire."""
        channels, hosts = len(self.topology.channel_source), self.topology.host_count
        return np.concatenate([np.broadcast_to(self.link_rate, channels), np.full(2 * hosts, self.host_rate)])

    @property
    def cuts(self) -> Bools:
        """(R,) whether a switch sends frames of a wire on before they have all arrived.

        The wire must be no slower than all by which the switch sends.
        """
        topology, rates = self.topology, self.rates
        channels, hosts = len(topology.channel_source), topology.host_count
        fastest = np.zeros(topology.switch_count)
        np.maximum.at(fastest, topology.channel_source, rates[:channels])
        np.maximum.at(fastest, topology.host_switch, rates[channels + hosts :])
        into = np.concatenate([topology.channel_target, topology.host_switch])
        found = np.zeros(channels + 2 * hosts, dtype=bool)
        found[: channels + hosts] = self.cut_through & (rates[: channels + hosts] >= fastest[into])
        return found

    @property
    def tags(self) -> Ints:
        """(R,) bytes of the tag of frames on each wire."""
        channels, hosts = len(self.topology.channel_source), self.topology.host_count
        edge = np.zeros(hosts, dtype=np.int32) if self.tagging is None else VLAN_TAG * self.tagging.astype(np.int32)
        return np.concatenate([np.full(channels, VLAN_TAG * self.tagged, dtype=np.int32), edge, edge])

    def name(self, wire: int) -> str:
        """Which wire a number means: `s1→s2`, `h1→s1` or `s1→h1`."""
        topology = self.topology
        end = wire - len(topology.channel_source)
        if end < 0:
            return topology.channel_name(wire)
        host = end % topology.host_count
        ends = [topology.host_name(host), topology.switch_name(int(topology.host_switch[host]))]
        return "→".join(ends if end < topology.host_count else ends[::-1])

    def costs(self, flows: Sequence[tuple[int, int]], ways: Ways) -> tuple[Floats, Floats]:
        """What each flow takes of each wire.

        Returns:
            (F, R) bits on each wire for a bit of goodput, and (F, R) those of its acknowledgements.
        """
        channels, hosts = len(self.topology.channel_source), self.topology.host_count
        tagged, wire = self.tags > 0, self.transport
        forward, backward = np.zeros((2, len(flows), channels + 2 * hosts))
        there_costs = np.where(tagged, wire.cost(tagged=True), wire.cost(tagged=False))
        back_costs = np.where(tagged, wire.reverse_cost(tagged=True), wire.reverse_cost(tagged=False))
        for flow, ((source, destination), (there, back)) in enumerate(zip(flows, ways, strict=True)):
            for cost, costs, start, end, taken in (
                (forward, there_costs, source, destination, there),
                (backward, back_costs, destination, source, back),
            ):
                met = [*taken, channels + start, channels + hosts + end]
                cost[flow, met] += costs[met]
        return forward, backward

    def channel_shares(self, ways: Ways, goodput: Floats) -> Floats:
        """(C,) share of each channel's rate that flows take with their acknowledgements at a goodput of (F,) bit/s."""
        share = np.zeros(len(self.topology.channel_source))
        for (there, back), rate in zip(ways, goodput, strict=True):
            share[list(there)] += rate * self.transport.cost(tagged=self.tagged)
            share[list(back)] += rate * self.transport.reverse_cost(tagged=self.tagged)
        return np.asarray(share / self.link_rate, dtype=np.float64)


def routed_ways(topology: Topology, routes: Routes, flows: Sequence[tuple[int, int]]) -> Ways:
    """Channels of each flow and of its acknowledgements, as routed."""
    return [(path(topology, routes, start, end), path(topology, routes, end, start)) for start, end in flows]
