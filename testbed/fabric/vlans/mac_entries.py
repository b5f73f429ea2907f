"""The static MAC entries that follow from the trees of a fixed assignment."""

from __future__ import annotations

import numpy as np

from testbed.base.model import Bools, Entries, Longs, Topology, VlanPlan
from testbed.fabric.routing.channel_lookup import leaving_channels, runs


def entries_of(topology: Topology, vlans: VlanPlan) -> Entries:
    """Every static entry, ordered by VLAN, switch and host; 16 bytes each, so beware of large fabrics.

    A switch holds an entry for each of its own hosts in every VLAN, and for another host in a VLAN that
    leads to it from a switch whose hosts send there (`used`), or at every switch of the tree (`all`).
    """
    if vlans.entries is not None:
        return vlans.entries
    from testbed.fabric.kernels.vlans import used_entries

    start, leaving = leaving_channels(topology)
    ends, of_host = np.unique(topology.host_switch, return_inverse=True)
    by_end = np.argsort(of_host, kind="stable")
    first = np.searchsorted(of_host[by_end], np.arange(len(ends) + 1))
    columns: list[list[np.ndarray]] = [[], [], [], []]  # type: ignore[type-arg]
    sends = vlans.senders(topology)
    for vlan in range(vlans.vlan_count):
        sources = np.flatnonzero(sends[vlan]).astype(np.int32)
        rows = used_entries(
            sources, vlans.tagged_links[vlan], start, leaving, topology.channel_target, ends, vlans.entry_rule == "all"
        )
        row, index = runs(first[rows[:, 1]], np.diff(first)[rows[:, 1]])
        host, switch, channel = by_end[index].astype(np.int32), rows[row, 0], rows[row, 2]
        port = topology.host_port[host]
        port[channel >= 0] = topology.out_port[channel[channel >= 0]]
        order = np.lexsort((host, switch))
        for column, values in zip(columns, (np.full(len(host), vlan), switch, host, port), strict=True):
            column.append(values[order].astype(np.int32))
    return Entries(*(np.concatenate(c) if c else np.zeros(0, dtype=np.int32) for c in columns))


def entry_counts(topology: Topology, vlans: VlanPlan) -> Longs:
    """(S,) number of static entries at each switch, counted without listing them."""
    if vlans.entries is not None:
        return np.bincount(vlans.entries.switch, minlength=topology.switch_count)
    from testbed.fabric.kernels import vlans as kernels

    start, leaving = leaving_channels(topology)
    sends = vlans.senders(topology)
    hosts_on = np.bincount(topology.host_switch, minlength=topology.switch_count).astype(np.int32)
    return kernels.entry_counts(
        sends, vlans.tagged_links, start, leaving, topology.channel_target, hosts_on, vlans.entry_rule == "all"
    )


def vlans_on_switches(topology: Topology, vlans: VlanPlan) -> Bools:
    """(V, S) True where a switch has a member port of a VLAN."""
    present = np.zeros((vlans.vlan_count, topology.switch_count), dtype=bool)
    for vlan in range(vlans.vlan_count):
        present[vlan, topology.links[vlans.tagged_links[vlan]].reshape(-1)] = True
        present[vlan, topology.host_switch[vlans.member_hosts[vlan]]] = True
    return present
