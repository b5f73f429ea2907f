"""Member sets and static entries: every VLAN one tree over all hosts, no entry that leaves its VLAN."""

from __future__ import annotations

import numpy as np

from testbed.base.model import Entries, HostTaggedPlan, Topology, Violation, VlanPlan


def check_members(topology: Topology, vlans: VlanPlan) -> list[Violation]:
    """The port of a host without tags must be an untagged member of its PVID, and of all VLANs it can be sent to in."""
    found = []
    if isinstance(vlans, HostTaggedPlan):
        untagged = np.flatnonzero(~vlans.tagging)
        in_use = np.unique(vlans.pair_vlan[~np.eye(topology.host_count, dtype=bool)])
    else:
        untagged, in_use = np.arange(topology.host_count), np.unique(vlans.pvid)
    members = np.broadcast_to(vlans.untagged_hosts, (vlans.vlan_count, topology.host_count))
    for vlan in in_use.tolist():
        for host in untagged[~members[vlan, untagged]].tolist():
            name = topology.host_name(host)
            found.append(
                Violation(
                    "members",
                    f"the port of {name} is not an untagged member of VLAN {vlans.vlan_ids[vlan]}, "
                    f"so frames of hosts that send in it never reach it",
                    (name,),
                )
            )
    return found


def check_tagging(topology: Topology, vlans: VlanPlan) -> list[Violation]:
    """A host must have each VLAN that it tags with, and be sent nothing without a tag; other hosts send in one VLAN."""
    if not isinstance(vlans, HostTaggedPlan):
        return []
    found, tagging = [], vlans.tagging
    for host in range(topology.host_count):
        name, others = topology.host_name(host), np.arange(topology.host_count) != host
        used = np.unique(vlans.pair_vlan[host, others])
        if not tagging[host]:
            stray = used[used != vlans.pvid[host]].tolist()
            if stray:
                sentence = (
                    f"{name} does not tag, so all it sends is in VLAN {vlans.vlan_ids[vlans.pvid[host]]}, its port's "
                    f"PVID, and paths of it are in VLAN {vlans.vlan_ids[stray[0]]}"
                )
                found.append(Violation("tagging", sentence, (name,)))
            continue
        for vlan in used[~vlans.tagged_hosts[used, host]].tolist():
            sentence = (
                f"{name} tags with VLAN {vlans.vlan_ids[vlan]}, of which its port is no tagged member; what it sends "
                "there is dropped"
            )
            found.append(Violation("tagging", sentence, (name,)))
        for vlan in np.flatnonzero(vlans.untagged_hosts[:, host]).tolist():
            sentence = (
                f"the port of {name} is an untagged member of VLAN {vlans.vlan_ids[vlan]}, and {name} has tagged "
                "interfaces alone"
            )
            found.append(Violation("tagging", sentence, (name,)))
        received = np.unique(vlans.pair_vlan[others, host])
        for vlan in received[~vlans.tagged_hosts[received, host]].tolist():
            if vlan not in used:
                sentence = f"{name} is sent to in VLAN {vlans.vlan_ids[vlan]}, of which its port is no tagged member"
                found.append(Violation("tagging", sentence, (name,)))
    return found


def check_trees(topology: Topology, vlans: VlanPlan) -> list[Violation]:
    """The tagged links of a VLAN must be free of loops and connect all switches that have hosts."""
    from testbed.fabric.kernels.vlans import loops_and_parts

    found = []
    with_hosts = np.unique(topology.host_switch)
    loops, connected = loops_and_parts(vlans.tagged_links, topology.links, topology.switch_count, int(with_hosts[0]))
    cut = ~connected[:, with_hosts]
    for vlan in np.flatnonzero(loops | cut.any(axis=1)).tolist():
        identifier = int(vlans.vlan_ids[vlan])
        if loops[vlan]:
            names = tuple(topology.channel_name(2 * int(link)) for link in np.flatnonzero(vlans.tagged_links[vlan]))
            found.append(Violation("tree", f"VLAN {identifier} contains a loop; a broadcast would circulate", names))
        if cut[vlan].any():
            names = tuple(topology.switch_name(int(switch)) for switch in with_hosts[cut[vlan]])
            found.append(
                Violation(
                    "tree",
                    f"VLAN {identifier} does not connect {topology.switch_name(int(with_hosts[0]))} "
                    f"with {', '.join(names)}",
                    names,
                )
            )
    return found


def check_entries(topology: Topology, vlans: VlanPlan, entries: Entries) -> list[Violation]:
    """A static entry must point to a port that is a member of its VLAN, and be listed once."""
    found = []
    key = (entries.vlan.astype(np.int64) * topology.switch_count + entries.switch) * max(
        topology.host_count, 1
    ) + entries.host
    _, first, counts = np.unique(key, return_index=True, return_counts=True)
    for index in first[counts > 1]:
        found.append(Violation("entries", f"{_entry(topology, vlans, entries, int(index))} is listed more than once"))
    ports = int(topology.port_count.max(initial=0)) + 1
    member = np.zeros((vlans.vlan_count, topology.switch_count, ports), dtype=bool)
    for vlan in range(vlans.vlan_count):
        channels = np.flatnonzero(np.repeat(vlans.tagged_links[vlan], 2))
        member[vlan, topology.channel_source[channels], topology.out_port[channels]] = True
        hosts = np.flatnonzero(np.broadcast_to(vlans.member_hosts[vlan], (topology.host_count,)))
        member[vlan, topology.host_switch[hosts], topology.host_port[hosts]] = True
    legal = (entries.port >= 0) & (entries.port < ports)
    inside = legal.copy()
    inside[legal] = member[entries.vlan[legal], entries.switch[legal], entries.port[legal]]
    for index in np.flatnonzero(~inside):
        found.append(
            Violation(
                "entries",
                f"{_entry(topology, vlans, entries, int(index))} points to port "
                f"{entries.port[index]}, which is not a member of that VLAN",
            )
        )
    return found


def _entry(topology: Topology, vlans: VlanPlan, entries: Entries, index: int) -> str:
    switch = topology.switch_name(int(entries.switch[index]))
    host = topology.host_name(int(entries.host[index]))
    return f"the entry of {host} in VLAN {vlans.vlan_ids[entries.vlan[index]]} on {switch}"
