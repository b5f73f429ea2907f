"""Fixed VLAN assignment: Steps 1-6 of Koibuchi et al. 2011, section 3.2.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.errors import InputError
from testbed.model import Bools, Ints, Routes, Topology, VlanPlan
from testbed.vlans.relation import as_source_trees

LAST_VLAN_ID = 4094


@dataclass(frozen=True, slots=True)
class FixedOptions:
    """One VLAN a distinct source tree.

    Attributes:
        first_vlan: identifier of the first VLAN; the paper's figures start at 10.
        entries: static MAC entries for the switches a path `used`, or for `all` switches of a VLAN's tree.
    """

    first_vlan: Annotated[int, Ge(1), Le(LAST_VLAN_ID)] = 10
    entries: Literal["used", "all"] = "used"


def assign_fixed(topology: Topology, routes: Routes, options: FixedOptions) -> VlanPlan:
    """Give every distinct source tree a VLAN and every host the VLAN of its tree as PVID.

    Raises:
        InputError: the paths of a source are not one tree (names switch, in-port and destination), or more
            VLANs are needed than identifiers are left.
    """
    routes = as_source_trees(topology, routes)
    vlan_links, vlan_of_tree = _vlans_of_trees(_tree_links(topology, routes))
    count = len(vlan_links)
    if count > LAST_VLAN_ID:
        raise InputError.one(
            "topology",
            f"needs {count} VLANs with this routing and 802.1Q has {LAST_VLAN_ID}; make it smaller",
        )
    last = options.first_vlan + count - 1
    if last > LAST_VLAN_ID:
        raise InputError.one(
            "assignment.first_vlan",
            f"{count} VLANs from {options.first_vlan} on end at {last}; 802.1Q has identifiers up to "
            f"{LAST_VLAN_ID}, so start at {LAST_VLAN_ID - count + 1} or lower",
        )
    pvid = vlan_of_tree[routes.host_tree].astype(np.int32)
    used = _used_entries if options.entries == "used" else _all_entries
    entries = [used(topology, routes, vlan_links[vlan], pvid == vlan) for vlan in range(count)]
    vlan_column = np.repeat(np.arange(count, dtype=np.int32), [len(entry) for entry in entries])
    rows = np.concatenate(entries) if entries else np.zeros((0, 3), dtype=np.int32)
    return VlanPlan(
        vlan_ids=np.arange(options.first_vlan, options.first_vlan + count, dtype=np.int32),
        pvid=pvid,
        tagged_links=vlan_links,  # Step 4
        untagged_hosts=np.ones((count, topology.host_count), dtype=bool),  # Step 6
        entry_vlan=vlan_column,
        entry_switch=np.ascontiguousarray(rows[:, 0]),
        entry_host=np.ascontiguousarray(rows[:, 1]),
        entry_port=np.ascontiguousarray(rows[:, 2]),
    )


def _tree_links(topology: Topology, routes: Routes) -> Bools:
    """(T, L) links of each source tree (Step 1)."""
    links = np.zeros((len(routes.parent_channel), topology.link_count), dtype=bool)
    tree, switch = np.nonzero(routes.parent_channel >= 0)
    links[tree, routes.parent_channel[tree, switch] // 2] = True
    return links


def _vlans_of_trees(trees: Bools) -> tuple[Bools, Ints]:
    """Steps 2 and 3: (V, L) links of each VLAN, (T,) VLAN of each tree; a tree joins one that includes it."""
    packed = np.packbits(trees, axis=1)  # eight links a byte compare faster
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    distinct = trees[first]
    size = distinct.sum(axis=1)
    vlans: list[Bools] = []
    size_of_vlan = np.zeros(len(distinct), dtype=np.int64)
    vlan_of_distinct = np.empty(len(distinct), dtype=np.int32)
    for index in np.argsort(first):
        links = distinct[index]
        # Only a larger tree can include a distinct one; where all span the fabric none is compared.
        for vlan in np.flatnonzero(size_of_vlan > size[index]).tolist():
            if not (links & ~vlans[vlan]).any():
                vlan_of_distinct[index] = vlan
                break
        else:
            vlan_of_distinct[index] = len(vlans)
            size_of_vlan[len(vlans)] = size[index]
            vlans.append(links)
    stacked = np.stack(vlans) if vlans else np.zeros((0, trees.shape[1]), dtype=bool)
    return stacked, vlan_of_distinct[inverse.reshape(-1)]


def _used_entries(topology: Topology, routes: Routes, links: Bools, members: Bools) -> Ints:
    """(E, 3) switch, host, port of the entries on paths of the hosts whose PVID is this VLAN."""
    del links
    trees = np.unique(routes.host_tree[members])
    port = np.zeros((topology.switch_count, topology.host_count), dtype=np.int32)
    hosts = np.arange(topology.host_count)
    port[topology.host_switch, hosts] = topology.host_port
    current = np.repeat(topology.host_switch[None, :], len(trees), axis=0)
    destination = np.repeat(hosts[None, :], len(trees), axis=0)
    tree = np.repeat(trees[:, None], topology.host_count, axis=1)
    while current.size:
        channel = routes.parent_channel[tree, current]
        go = channel >= 0
        channel, tree, destination = channel[go], tree[go], destination[go]
        current = topology.channel_source[channel]
        port[current, destination] = topology.out_port[channel]
    return _rows(port)


def _all_entries(topology: Topology, routes: Routes, links: Bools, members: Bools) -> Ints:
    """(E, 3) switch, host, port of the entries of every switch in the VLAN's tree toward every host."""
    del routes, members
    port = np.zeros((topology.switch_count, topology.host_count), dtype=np.int32)
    neighbours: list[list[int]] = [[] for _ in range(topology.switch_count)]
    for link in np.flatnonzero(links).tolist():
        for channel in (2 * link, 2 * link + 1):
            neighbours[topology.channel_target[channel]].append(channel)
    for end in np.unique(topology.host_switch).tolist():
        hosts = np.flatnonzero(topology.host_switch == end)
        port[end, hosts] = topology.host_port[hosts]
        frontier, seen = [end], {end}
        while frontier:
            entering = [channel for switch in frontier for channel in neighbours[switch]]
            frontier = []
            for channel in entering:
                switch = int(topology.channel_source[channel])
                if switch not in seen:
                    seen.add(switch)
                    frontier.append(switch)
                    port[switch, hosts] = topology.out_port[channel]
    return _rows(port)


def _rows(port: Ints) -> Ints:
    switch, host = np.nonzero(port)
    return np.stack([switch, host, port[switch, host]], axis=1).astype(np.int32)
