"""What assignments by the port of arrival share: options, tables of classes, members, the tree of broadcasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.model import Bools, Ints, LocalPlan, Longs, Routes, Topology
from testbed.fabric.routing.channel_lookup import leaving_channels
from testbed.fabric.routing.paths import channel_load, destination_keys

NEVER = -2
DELIVER = -1


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Options of every assignment by the port of arrival."""

    # broadcasts go along one breadth-first `tree` of the links in use, from the first switch with hosts, and so does
    # what has no entry; or `none`: they are dropped
    flood: Literal["tree", "none"] = "tree"


def local_plan(
    kind: Literal["renamed", "static", "openflow"],
    topology: Topology,
    routes: Routes,
    options: LocalOptions,
    table: Ints,
    vlan: Ints,
    members: Bools | None,
    *,
    vlan_switch: Ints,
    vlan_id: Ints,
    host_vlan: Ints,
    channel_vlan: Ints,
) -> LocalPlan:
    """Make a plan from a table of classes; see LocalPlan.

    Args:
        kind: of the plan.
        topology: the network.
        routes: what it carries.
        options: those all such assignments have.
        table: (R, K) next virtual channel of each class, DELIVER or NEVER.
        vlan: (R,) VLAN of each class, -1 where it is not in use.
        members: (V, ports + 1) True where a port is a member; None where classes are no VLANs.
        vlan_switch: (V,).
        vlan_id: (V,).
        host_vlan: (H,).
        channel_vlan: (layers·C,).
    """
    from testbed.fabric.kernels import local_classes

    order = np.argsort(vlan, kind="stable").astype(np.int32)
    entry_vlan, entry_key, entry_hop = local_classes.entries_of_classes(table, order[int((vlan < 0).sum()) :], vlan)
    of_vlan, port = (np.zeros(0, dtype=np.int64),) * 2 if members is None else np.nonzero(members)
    return LocalPlan(
        kind=kind,
        vlan_switch=vlan_switch,
        vlan_id=vlan_id,
        host_vlan=host_vlan,
        channel_vlan=channel_vlan,
        host_key=np.ascontiguousarray(destination_keys(topology, routes), dtype=np.int32),
        entry_vlan=entry_vlan,
        entry_key=entry_key,
        entry_hop=entry_hop,
        member_start=np.searchsorted(of_vlan, np.arange(len(vlan_switch) + 1)).astype(np.int64),
        member_port=port.astype(np.int32),
        flood_links=_flood_tree(topology, routes) if options.flood == "tree" else None,
    )


def member_matrix(topology: Topology, plan: LocalPlan) -> Bools:
    """(V, ports + 1) True where a port is an untagged member of a local VLAN."""
    members = np.zeros((plan.class_count, int(topology.port_count.max(initial=0)) + 1), dtype=bool)
    vlan = np.repeat(np.arange(plan.class_count), np.diff(plan.member_start))
    inside = (plan.member_port >= 0) & (plan.member_port < members.shape[1])
    members[vlan[inside], plan.member_port[inside]] = True
    return members


def _flood_tree(topology: Topology, routes: Routes) -> Bools:
    """(L,) breadth-first tree over the links in use, without branches that reach no host."""
    from testbed.fabric.kernels.vlans import spread

    load = channel_load(topology, routes)
    used = (load[0::2] > 0) | (load[1::2] > 0)
    parent, order = (np.empty(topology.switch_count, dtype=np.int32) for _ in range(2))
    start, leaving = leaving_channels(topology)
    reached = spread(int(routes.ends[0]), used, start, leaving, topology.channel_target, parent, order)
    needed = np.zeros(topology.switch_count, dtype=bool)
    needed[routes.ends] = True
    tree = np.zeros(topology.link_count, dtype=bool)
    for switch in order[1:reached][::-1].tolist():
        if needed[switch]:
            tree[parent[switch] // 2] = True
            needed[topology.channel_source[parent[switch]]] = True
    return tree


def entry_count(topology: Topology, plan: LocalPlan) -> Longs:
    """(S,) forwarding entries at each switch: one a local VLAN (or class) and destination host."""
    hosts = np.bincount(plan.host_key, minlength=int(plan.entry_key.max(initial=-1)) + 1)
    switch = plan.vlan_switch[plan.entry_vlan]
    return np.bincount(switch, weights=hosts[plan.entry_key], minlength=topology.switch_count).astype(np.int64)


def vlan_count(topology: Topology, plan: LocalPlan) -> Longs:
    """(S,) VLANs configured at each switch: the local ones, or the one that all frames carry."""
    if plan.kind == "openflow":
        return np.ones(topology.switch_count, dtype=np.int64)
    return np.bincount(plan.vlan_switch, minlength=topology.switch_count)


def fewest_by_entries(topology: Topology, plan: LocalPlan) -> int:
    """Most local VLANs of a switch if those of each were merged, first fit, wherever their entries agree.

    That many are enough to forward; the others only keep floods apart.
    """
    from testbed.fabric.kernels import local_classes

    keys = int(plan.host_key.max(initial=0)) + 1
    table = np.full((plan.class_count, keys), NEVER, dtype=np.int32)
    table[plan.entry_vlan, plan.entry_key] = plan.entry_hop
    order = np.argsort(plan.vlan_switch, kind="stable").astype(np.int32)
    start = np.searchsorted(plan.vlan_switch[order], np.arange(topology.switch_count + 1)).astype(np.int64)
    nothing = np.zeros((plan.class_count, 1), dtype=bool)
    vlan, _, _ = local_classes.merge(table, nothing, order, start, False)
    switch = plan.vlan_switch[np.unique(vlan, return_index=True)[1]]
    return int(np.bincount(switch).max())
