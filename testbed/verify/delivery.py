"""Follow all ordered host pairs through PVIDs, member sets and static entries; compare with the routes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from testbed.model import Bools, Ints, Routes, Topology, Violation, VlanPlan
from testbed.routing.paths import path

_SHOWN = 5  # lost pairs named in one sentence


@dataclass(frozen=True, slots=True)
class Walk:
    """What the VLAN plan does with one frame of every ordered pair.

    Attributes:
        source: (P,) host of each pair.
        destination: (P,) host of each pair.
        hops: (steps, P) channel taken in each step, -1 once the frame has arrived or is lost.
        delivered: (P,) the frame reached its destination, untagged.
    """

    source: Ints
    destination: Ints
    hops: Ints
    delivered: Bools


def walk(topology: Topology, vlans: VlanPlan) -> Walk:
    """Carry out the VLAN plan for all pairs of different hosts, all at once, one hop a step."""
    hosts, switches = topology.host_count, topology.switch_count
    source, destination = (a.astype(np.int32) for a in np.nonzero(~np.eye(hosts, dtype=bool)))
    table, ports = _entry_table(topology, vlans)
    port_meaning = _port_meaning(topology)
    vlan = vlans.pvid[source].astype(np.int64)
    at = topology.host_switch[source].astype(np.int64)
    on_way = vlans.untagged_hosts[vlans.pvid[source], source]  # ingress filtering at the host port
    delivered = np.zeros(len(source), dtype=bool)
    hops: list[Ints] = []
    for _ in range(switches + 1):
        if not on_way.any():
            break
        key = (vlan * switches + at) * hosts + destination
        index = np.minimum(np.searchsorted(table, key), max(len(table) - 1, 0))
        known = on_way & (table[index] == key) if len(table) else np.zeros_like(on_way)
        port = np.where(known, ports[index] if len(ports) else 0, 0)
        port = np.where((port > 0) & (port < port_meaning.shape[1]), port, 0)  # others lead nowhere
        meaning = port_meaning[at, port]
        to_host = meaning < 0
        target = -meaning - 1
        arrived = to_host & (target == destination)
        arrived[arrived] = vlans.untagged_hosts[vlan[arrived], destination[arrived]]
        delivered |= arrived
        channel = np.where(meaning > 0, meaning - 1, -1).astype(np.int32)
        member = channel >= 0
        member[member] = vlans.tagged_links[vlan[member], channel[member] // 2]
        channel = np.where(member, channel, -1).astype(np.int32)
        hops.append(channel)
        on_way = member
        at[member] = topology.channel_target[channel[member]]
    stacked = np.stack(hops) if hops else np.zeros((0, len(source)), dtype=np.int32)
    return Walk(source, destination, stacked, delivered)


def _entry_table(topology: Topology, vlans: VlanPlan) -> tuple[npt.NDArray[np.int64], Ints]:
    """Sorted keys (vlan, switch, host) of the static entries and their ports."""
    key = vlans.entry_vlan.astype(np.int64) * topology.switch_count + vlans.entry_switch
    key = key * topology.host_count + vlans.entry_host
    order = np.argsort(key, kind="stable")
    return key[order], vlans.entry_port[order]


def _port_meaning(topology: Topology) -> npt.NDArray[np.int64]:
    """(S, ports + 1) channel + 1 for a trunk port, -(host + 1) for a host port, 0 for none."""
    meaning = np.zeros((topology.switch_count, int(topology.port_count.max(initial=0)) + 1), dtype=np.int64)
    meaning[topology.host_switch, topology.host_port] = -(np.arange(topology.host_count) + 1)
    meaning[topology.channel_source, topology.out_port] = np.arange(len(topology.channel_source)) + 1
    return meaning


def check_delivery(topology: Topology, routes: Routes, steps: Walk) -> list[Violation]:
    """Every pair must be delivered, on the channels the routes say."""
    found = []
    lost = np.flatnonzero(~steps.delivered)
    if len(lost):
        pairs = tuple(_pair(topology, steps, index) for index in lost.tolist())
        found.append(
            Violation(
                "delivery",
                f"{len(lost)} of {len(steps.source)} pairs are not delivered: "
                f"{', '.join(pairs[:_SHOWN])}{' …' if len(pairs) > _SHOWN else ''}",
                pairs,
            )
        )
    for index in np.flatnonzero(steps.delivered & ~_as_routed(topology, routes, steps)).tolist():
        taken = tuple(int(c) for c in steps.hops[:, index] if c >= 0)
        wanted = path(topology, routes, int(steps.source[index]), int(steps.destination[index]))
        names = tuple(topology.channel_name(c) for c in taken)
        found.append(
            Violation(
                "path",
                f"{_pair(topology, steps, index)} takes {' '.join(names)} instead of "
                f"{' '.join(topology.channel_name(c) for c in wanted)}",
                names,
            )
        )
    return found


def _as_routed(topology: Topology, routes: Routes, steps: Walk) -> Bools:
    """(P,) whether the walk of each pair equals its route, compared from the source on."""
    if not topology.link_count:
        return np.ones(len(steps.source), dtype=bool)
    if routes.relation == "destination":
        at = topology.host_switch[steps.source]
        end = topology.host_switch[steps.destination]
        same = np.ones(len(at), dtype=bool)
        for channel in steps.hops:
            moving = channel >= 0
            same &= ~moving | (routes.next_channel[at, end] == channel)
            at = np.where(moving, topology.channel_target[channel], at)
        return same
    tree = routes.host_tree[steps.source]
    same = np.ones(len(tree), dtype=bool)
    for channel in steps.hops:
        moving = channel >= 0
        same &= ~moving | (routes.parent_channel[tree, topology.channel_target[channel]] == channel)
    return same


def _pair(topology: Topology, steps: Walk, index: int) -> str:
    source, destination = int(steps.source[index]), int(steps.destination[index])
    return f"{topology.host_name(source)}→{topology.host_name(destination)}"
