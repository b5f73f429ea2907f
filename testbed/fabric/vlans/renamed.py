"""Renamed VLAN assignment: Steps 1-4 of Koibuchi et al. 2011, section 3.2.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.base.errors import InputError
from testbed.base.model import Bools, Ints, LocalPlan, Longs, Routes, Topology
from testbed.fabric.routing.paths import destination_keys, key_switches, source_keys
from testbed.fabric.routing.relation import Conflict, forwarding_table, refusal, refuse_layers
from testbed.fabric.vlans.fixed import LAST_VLAN_ID
from testbed.fabric.vlans.local_vlans import NEVER, LocalOptions, local_plan

_REMEDY = (
    'Use selection "balanced" or "low_port" where the routing has it, key "in_port" or "destination" for a fat tree, '
    "or another assignment"
)


@dataclass(frozen=True, slots=True)
class RenamedOptions(LocalOptions):
    """VLANs that mean something inside one switch only."""

    # `members`: ports share a VLAN where their member ports are the same, as in the paper (Step 4), and their
    # forwarding entries agree. `entries`: wherever these agree; fewer VLANs, but switches that flood by themselves
    # would flood into loops.
    merge: Literal["members", "entries"] = "members"
    first_vlan: Annotated[int, Ge(1), Le(LAST_VLAN_ID)] = 10  # identifier of the first VLAN of each switch


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """The classes of frames before any is merged: one a channel of arrival, then one a source key.

    Ports of hosts with one source key need the same entries and the same members: they are one class.
    """

    table: Ints  # (R, K) next channel, DELIVER or NEVER
    members: Bools  # (R, ports + 1) ports of each class (Steps 1 and 2)
    order: Ints  # classes in use, switch by switch, in the order of their ports
    start: Longs  # (S + 1,) offsets into `order`


def assign_renamed(topology: Topology, routes: Routes, options: RenamedOptions) -> LocalPlan:
    """Give every port a local VLAN as its PVID, and merge those of a switch that are the same.

    Raises:
        InputError: the paths have layers, or no next hop by in-port and destination (names switch, in-port and
            destination), or a switch needs more VLANs than identifiers are left.
    """
    refuse_layers("renamed", routes)
    arrivals = arrivals_of(topology, routes)
    vlan, members = merge_classes(arrivals, same_members=options.merge == "members")
    channels = len(topology.channel_source)
    vlan_switch = np.empty(len(members), dtype=np.int32)
    used = arrivals.order
    vlan_switch[vlan[used]] = np.repeat(np.arange(topology.switch_count), np.diff(arrivals.start))
    first = np.searchsorted(vlan_switch, np.arange(topology.switch_count))
    vlan_id = options.first_vlan + np.arange(len(members)) - first[vlan_switch]
    check_identifiers(topology, vlan_switch, vlan_id.astype(np.int32), options.first_vlan)
    return local_plan(
        "renamed", topology, routes, options, arrivals.table, vlan, members,
        vlan_switch=vlan_switch,
        vlan_id=vlan_id.astype(np.int32),
        host_vlan=vlan[channels + source_keys(topology, routes)],
        channel_vlan=vlan[:channels].copy(),
    )  # fmt: skip


def arrivals_of(topology: Topology, routes: Routes) -> Arrivals:
    """Steps 1 and 2: a class for each port, with its entries and members.

    Raises:
        InputError: the paths give no next hop by in-port and destination.
    """
    from testbed.fabric.kernels import local_classes

    table = forwarding_table(topology, routes, by_arrival=True)
    if isinstance(table, Conflict):
        raise refusal("renamed", topology, table, _REMEDY)
    channels = len(topology.channel_source)
    key = source_keys(topology, routes)
    switch = np.concatenate([topology.channel_target, key_switches(routes)[0]])
    in_port = np.zeros(len(table), dtype=np.int32)
    in_port[:channels] = topology.out_port[np.arange(channels) ^ 1]
    of_key = destination_keys(topology, routes)
    by_key = np.argsort(of_key, kind="stable")
    key_start = np.searchsorted(of_key[by_key], np.arange(table.shape[1] + 1))
    members = local_classes.member_ports(
        table, in_port, topology.out_port, key_start, topology.host_port[by_key], int(topology.port_count.max())
    )
    members[channels + key, topology.host_port] = True
    lowest = in_port.copy()  # the port by which classes of a switch are ordered
    lowest[channels + key[::-1]] = topology.host_port[::-1]
    used = (table != NEVER).any(axis=1)
    order = np.lexsort((lowest, switch))
    order = order[used[order]].astype(np.int32)
    start = np.searchsorted(switch[order], np.arange(topology.switch_count + 1))
    return Arrivals(table, members, order, start)


def merge_classes(arrivals: Arrivals, *, same_members: bool) -> tuple[Ints, Bools]:
    """Step 4: (R,) VLAN of each class, -1 where none is in use, and (V, ports + 1) members of each VLAN.

    The paper merges wherever members are the same. Forwarding entries belong to a VLAN, so that is right only where
    the entries agree too.
    """
    from testbed.fabric.kernels import local_classes

    vlan, members, _ = local_classes.merge(
        arrivals.table, arrivals.members, arrivals.order, arrivals.start, same_members
    )
    return vlan, members


def check_identifiers(topology: Topology, vlan_switch: Ints, vlan_id: Ints, first: int) -> None:
    """Let only identifiers of 802.1Q pass.

    `vlan_id`: (V,) identifier of each local VLAN, from `first` on at each switch.

    Raises:
        InputError: a switch needs identifiers beyond the last.
    """
    last = int(np.argmax(vlan_id))
    if vlan_id[last] <= LAST_VLAN_ID:
        return
    name, count = topology.switch_name(int(vlan_switch[last])), int(vlan_id[last]) - first + 1
    start = (
        f"start at {LAST_VLAN_ID - count + 1} or lower" if count <= LAST_VLAN_ID else 'use the assignment "openflow"'
    )
    raise InputError.one(
        "assignment.first_vlan",
        f"{name} needs {count} local VLANs, which from {first} on end at {vlan_id[last]}; 802.1Q has identifiers up to "
        f"{LAST_VLAN_ID}, so {start}",
    )
