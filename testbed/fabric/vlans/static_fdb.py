"""Static forwarding databases alone: no VLANs beside the one that every switch has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Ints, LocalPlan, Routes, Topology
from testbed.fabric.routing.paths import channel_load
from testbed.fabric.routing.relation import Conflict, forwarding_table, refusal, refuse_layers
from testbed.fabric.vlans.local_vlans import NEVER, LocalOptions, local_plan

DEFAULT_VLAN = 1
_REMEDY = (
    'Use a routing whose next hop depends on the destination alone, such as "dor" on a mesh, "stp", or "updown" with '
    'next_hop: destination, or an assignment that looks at the port of arrival, such as "renamed"'
)


@dataclass(frozen=True, slots=True)
class StaticOptions(LocalOptions):
    """Static MAC entries in the default VLAN of every switch; ports that no path uses are shut."""


def assign_static(topology: Topology, routes: Routes, options: StaticOptions) -> LocalPlan:
    """Register every destination once at every switch that its frames pass.

    Raises:
        InputError: the paths have layers, or no next hop by destination alone (names switch and destination).
    """
    refuse_layers("static", routes)
    table = forwarding_table(topology, routes, by_arrival=False)
    if isinstance(table, Conflict):
        raise refusal("static", topology, table, _REMEDY)
    used = (table != NEVER).any(axis=1)
    vlan: Ints = np.where(used, np.cumsum(used) - 1, -1).astype(np.int32)
    load = channel_load(topology, routes)
    arrives = np.repeat(load[0::2] + load[1::2] > 0, 2)  # a port that sends also takes in, floods at least
    return local_plan(
        "static", topology, routes, options, table, vlan, _members(topology, vlan, arrives),
        vlan_switch=np.flatnonzero(used).astype(np.int32),
        vlan_id=np.full(int(used.sum()), DEFAULT_VLAN, dtype=np.int32),
        host_vlan=vlan[topology.host_switch],
        channel_vlan=np.where(arrives, vlan[topology.channel_target], -1).astype(np.int32),
    )  # fmt: skip


def _members(topology: Topology, vlan: Ints, used: Bools) -> Bools:
    """(V, ports + 1) True for ports of hosts, and both ends of every link that a path takes."""
    channels = np.flatnonzero(used)
    ports = np.zeros((int(vlan.max()) + 1, int(topology.port_count.max()) + 1), dtype=bool)
    ports[vlan[topology.host_switch], topology.host_port] = True
    ports[vlan[topology.channel_source[channels]], topology.out_port[channels]] = True
    return ports
