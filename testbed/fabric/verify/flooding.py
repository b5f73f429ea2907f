"""What plain switches would do with a frame that they flood to all members of a local VLAN.

Koibuchi et al. 2011, Theorem 1, excludes that such a frame circulates forever where the routing is free of deadlock.
It does not exclude that it multiplies: wherever two ways meet, both copies go on. That is why a plan registers every
address and confines broadcasts to a tree, or drops them.
"""

from __future__ import annotations

import math

import numpy as np

from testbed.base.model import Bools, Ints, LocalPlan, Longs, Topology
from testbed.fabric.routing.channel_lookup import leaving_channels, runs
from testbed.fabric.vlans.local_vlans import member_matrix


def multiplication(topology: Topology, plan: LocalPlan) -> tuple[float, float] | None:
    """Copies of one flooded frame that a switch takes in, if switches flooded to all members of a local VLAN.

    Every host sends one frame; each switch sends each copy by all member ports of the VLAN of its port of arrival but
    that port. Counted are the copies that arrive from other switches at every switch but the sender's own: 1 where the
    ways of a sender are a tree over all switches. The number of ways in an acyclic graph, so exact up to 2^53.

    The plan is `renamed` or `static`.

    Returns:
        Mean over all hosts and switches, and maximum; both infinite where copies circulate forever. None for
        `openflow`, which has no VLANs to flood.
    """
    from testbed.fabric.kernels import local_classes

    if plan.kind in ("openflow", "model"):
        return None
    members = member_matrix(topology, plan)
    channels = len(topology.channel_source)
    start, following = _sent_on(topology, plan, members, plan.channel_vlan, np.arange(channels) ^ 1)
    order = local_classes.topological_order(start, following)
    if len(order) < channels:
        return math.inf, math.inf
    senders, hosts = np.unique(plan.host_vlan, return_counts=True)
    first_start, first = _sent_on(topology, plan, members, senders, np.full(len(senders), -1))
    own = plan.vlan_switch[senders]
    total, most = local_classes.copies(
        first_start, first, hosts.astype(np.float64), own, start, following, order, topology.channel_target
    )
    others = topology.host_count * (topology.switch_count - 1)
    return total / max(others, 1), most


def _sent_on(
    topology: Topology, plan: LocalPlan, members: Bools, vlans: Ints, back: Ints | Longs
) -> tuple[Longs, Ints]:
    """(N + 1,) offsets and channels by which a frame of each VLAN is sent on, all members but the channel back."""
    start, leaving = leaving_channels(topology)
    switch = np.where(vlans >= 0, plan.vlan_switch[vlans], 0)
    row, index = runs(start[switch], np.where(vlans >= 0, np.diff(start)[switch], 0))
    channel = leaving[index]
    sent = members[vlans[row], topology.out_port[channel]] & (channel != back[row])
    offsets = np.searchsorted(row[sent], np.arange(len(vlans) + 1)).astype(np.int64)
    return offsets, channel[sent].astype(np.int32)
