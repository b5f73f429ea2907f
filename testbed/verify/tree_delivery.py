"""Follow all senders through VLANs whose static entries follow from their trees; compare with the routes.

In a tree there is one way between two switches, so one walk of a VLAN from a sender's switch is the path of all its
pairs. Hosts of one switch with one PVID are one sender.
"""

from __future__ import annotations

import numpy as np

from testbed.model import Bools, Codes, Ints, Longs, Routes, Topology, Violation, VlanPlan
from testbed.routing.adjacency import leaving_channels, leaving_slots
from testbed.routing.paths import path
from testbed.routing.relation import Conflict, as_source_trees
from testbed.verify.delivery import MOST_TOLD, lost_pairs, other_way, untold


def check_tree_delivery(topology: Topology, routes: Routes, vlans: VlanPlan) -> tuple[list[Violation], Ints]:
    """Every pair must be delivered, on the channels the routes say.

    Returns:
        violations, and (D, 2) pairs of channels that some path takes one after the other.
    """
    from testbed.kernels import vlans as kernels

    wanted = as_source_trees(topology, routes)
    if isinstance(wanted, Conflict):
        return [Violation("path", f"no VLAN tree can hold these paths: {wanted.sentence(topology)}")], _no_pairs()
    start, leaving = leaving_channels(topology)
    slot, degree = leaving_slots(topology)
    sender = np.stack([topology.host_switch, vlans.pvid, wanted.host_tree], axis=1)
    rows, of_host = np.unique(sender, axis=0, return_inverse=True)
    status, taken = kernels.follow(
        rows[:, 0].copy(), rows[:, 1].copy(), wanted.tree_channel[rows[:, 2]], vlans.tagged_links, start, leaving,
        topology.channel_target, wanted.ends, slot, degree,
    )  # fmt: skip
    found = _violations(topology, routes, vlans, wanted.ends, status, of_host.reshape(-1))
    before, place = np.nonzero(taken)
    after = leaving[start[topology.channel_target[before]] + place]
    return found, np.stack([before, after], axis=1).astype(np.int32)


def _no_pairs() -> Ints:
    return np.zeros((0, 2), dtype=np.int32)


def _violations(
    topology: Topology,
    routes: Routes,
    vlans: VlanPlan,
    ends: Ints,
    status: Codes,
    of_host: Longs,
) -> list[Violation]:
    from testbed.kernels.vlans import LOST, OTHER_WAY

    everyone = bool(vlans.untagged_hosts.all())
    if everyone and not ((status == LOST).any() or (status == OTHER_WAY).any()):
        return []
    end_of_host = np.searchsorted(ends, topology.host_switch)
    lost, strange = [], []
    for source in range(topology.host_count):
        member: Bools = vlans.untagged_hosts[vlans.pvid[source]]
        of_source = status[of_host[source]][end_of_host]
        delivered = (of_source != LOST) & member & member[source]
        lost += [(source, end) for end in np.flatnonzero(~delivered).tolist() if end != source]
        strange += [(source, end) for end in np.flatnonzero(delivered & (of_source == OTHER_WAY)).tolist()]
    pairs = topology.host_count * (topology.host_count - 1)
    found = lost_pairs(topology, lost, pairs)
    for source, end in strange[:MOST_TOLD]:
        taken = _walked(topology, vlans, source, end)
        found.append(other_way(topology, source, end, taken, path(topology, routes, source, end)))
    return found + untold(len(strange))


def _walked(topology: Topology, vlans: VlanPlan, source: int, end: int) -> tuple[int, ...]:
    from testbed.kernels import vlans as kernels

    start, leaving = leaving_channels(topology)
    parent, order = (np.empty(topology.switch_count, dtype=np.int32) for _ in range(2))
    root, at = int(topology.host_switch[source]), int(topology.host_switch[end])
    tagged = vlans.tagged_links[vlans.pvid[source]]
    kernels.spread(root, tagged, start, leaving, topology.channel_target, parent, order)
    channels = []
    while at != root:
        channels.append(int(parent[at]))
        at = int(topology.channel_source[parent[at]])
    return tuple(reversed(channels))
