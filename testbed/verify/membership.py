"""Member sets and static entries: every VLAN one tree over all hosts, no entry that leaves its VLAN."""

from __future__ import annotations

import numpy as np

from testbed.model import Ints, Topology, Violation, VlanPlan
from testbed.verify.peel import peel_leaves


def check_members(topology: Topology, vlans: VlanPlan) -> list[Violation]:
    """Each host port must be an untagged member of its own PVID and of every VLAN it can be sent to in."""
    found = []
    in_use = np.unique(vlans.pvid)
    for vlan in in_use.tolist():
        for host in np.flatnonzero(~vlans.untagged_hosts[vlan]).tolist():
            name = topology.host_name(host)
            found.append(
                Violation(
                    "members",
                    f"the port of {name} is no untagged member of VLAN {vlans.vlan_ids[vlan]}, "
                    f"so frames of hosts with that PVID never reach it",
                    (name,),
                )
            )
    return found


def check_trees(topology: Topology, vlans: VlanPlan) -> list[Violation]:
    """The tagged links of a VLAN must be free of loops and connect all switches that have hosts."""
    found = []
    with_hosts = np.unique(topology.host_switch)
    vlan_of, link = vlans.tagged_links.nonzero()
    # One graph of all VLANs: switch s of VLAN v is node v·S + s.
    ends = vlan_of[:, None] * topology.switch_count + topology.links[link]
    circles = np.zeros(vlans.vlan_count, dtype=bool)
    circles[vlan_of[peel_leaves(ends, vlans.vlan_count * topology.switch_count)]] = True
    for vlan in range(vlans.vlan_count):
        links = np.flatnonzero(vlans.tagged_links[vlan]).astype(np.int32)
        identifier = int(vlans.vlan_ids[vlan])
        if circles[vlan]:
            names = tuple(topology.channel_name(2 * int(link)) for link in links)
            found.append(Violation("tree", f"VLAN {identifier} contains a loop; a broadcast would circulate", names))
        cut_off = np.setdiff1d(with_hosts, _reached(topology, links, int(with_hosts[0])))
        if len(cut_off):
            names = tuple(topology.switch_name(int(switch)) for switch in cut_off)
            found.append(
                Violation(
                    "tree",
                    f"VLAN {identifier} does not connect {topology.switch_name(int(with_hosts[0]))} "
                    f"with {', '.join(names)}",
                    names,
                )
            )
    return found


def _reached(topology: Topology, links: Ints, start: int) -> Ints:
    """Switches that links connect with one switch."""
    ends = topology.links[links]
    reached = np.zeros(topology.switch_count, dtype=bool)
    reached[start] = True
    while True:
        crossing = reached[ends[:, 0]] != reached[ends[:, 1]]
        if not crossing.any():
            return np.flatnonzero(reached).astype(np.int32)
        reached[ends[crossing].reshape(-1)] = True


def check_entries(topology: Topology, vlans: VlanPlan) -> list[Violation]:
    """A static entry must point to a port that is a member of its VLAN, and stand once."""
    found = []
    key = (vlans.entry_vlan.astype(np.int64) * topology.switch_count + vlans.entry_switch) * max(
        topology.host_count, 1
    ) + vlans.entry_host
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    for index in first[counts > 1]:
        found.append(Violation("entries", f"{_entry(topology, vlans, int(index))} stands more than once"))
    ports = int(topology.port_count.max(initial=0)) + 1
    member = np.zeros((vlans.vlan_count, topology.switch_count, ports), dtype=bool)
    for vlan in range(vlans.vlan_count):
        channels = np.flatnonzero(np.repeat(vlans.tagged_links[vlan], 2))
        member[vlan, topology.channel_source[channels], topology.out_port[channels]] = True
        hosts = np.flatnonzero(vlans.untagged_hosts[vlan])
        member[vlan, topology.host_switch[hosts], topology.host_port[hosts]] = True
    legal = (vlans.entry_port >= 0) & (vlans.entry_port < ports)
    inside = legal.copy()
    inside[legal] = member[vlans.entry_vlan[legal], vlans.entry_switch[legal], vlans.entry_port[legal]]
    for index in np.flatnonzero(~inside):
        found.append(
            Violation(
                "entries",
                f"{_entry(topology, vlans, int(index))} points to port "
                f"{vlans.entry_port[index]}, which is no member of that VLAN",
            )
        )
    return found


def _entry(topology: Topology, vlans: VlanPlan, index: int) -> str:
    switch = topology.switch_name(int(vlans.entry_switch[index]))
    host = topology.host_name(int(vlans.entry_host[index]))
    return f"the entry of {host} in VLAN {vlans.vlan_ids[vlans.entry_vlan[index]]} on {switch}"
