"""Follow all pairs through the local VLANs of a plan; compare with the routes.

Hosts of one switch with one local VLAN and one source key are one sender; likewise receivers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.base.model import Ints, LocalPlan, Longs, Paths, Routes, Topology, Violation
from testbed.fabric.routing.channel_lookup import leaving_slots
from testbed.fabric.routing.paths import all_paths, destination_keys, hops, key_switches, source_keys
from testbed.fabric.verify.deadlock import hop_name, turns_taken
from testbed.fabric.verify.delivery import MAX_SHOWN, lost_pairs, summarize_remaining
from testbed.fabric.verify.local_vlans import Working, class_name
from testbed.fabric.vlans.local_vlans import DELIVER, NEVER


def check_local_delivery(
    topology: Topology, routes: Routes, plan: LocalPlan, working: Working
) -> tuple[list[Violation], Ints]:
    """Every pair must be delivered, on the virtual channels the routes say.

    Returns:
        violations, and (D, 2) pairs of virtual channels that some frame takes one after the other.
    """
    from testbed.fabric.kernels import local_classes

    # Explicit paths of trees take most of a large plan's memory.
    by_tree = routes.relation == "destination_trees"
    nothing = Paths(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))
    paths = nothing if by_tree else all_paths(topology, routes)
    tree = routes.tree_channel if by_tree else np.zeros((0, topology.switch_count), dtype=np.int32)
    senders, of_sender = _groups(topology.host_switch, working.host_vlan, source_keys(topology, routes))
    receivers, of_receiver = _groups(plan.host_key, destination_keys(topology, routes), topology.host_switch)
    receivers = np.ascontiguousarray(receivers[:, [2, 0, 1]])
    slot, degree = leaving_slots(topology)
    keys = int(plan.host_key.max()) + 1
    key_start, order = local_classes.by_key(plan.entry_key, keys)
    columns = len(key_switches(routes)[1])
    status, final, taken = local_classes.walk(
        senders, receivers, working.channel_vlan, key_start, order, plan.entry_vlan, working.entry_hop,
        plan.class_count, topology.channel_source, topology.channel_target, paths.start, paths.hop, columns,
        tree, routes.layers, slot, degree,
    )  # fmt: skip
    lost, strange = [], []
    alike = (status == local_classes.AS_WANTED).all() and working.receives[:, topology.host_port].all()
    for source in range(0 if alike else topology.host_count):
        of_source, vlan = status[of_sender[source]][of_receiver], final[of_sender[source]][of_receiver]
        delivered = (of_source != local_classes.LOST) & working.receives[vlan, topology.host_port]
        lost += [(source, end) for end in np.flatnonzero(~delivered).tolist() if end != source]
        other = delivered & (of_source == local_classes.OTHER_WAY)
        strange += [(source, end) for end in np.flatnonzero(other).tolist() if end != source]
    found = lost_pairs(topology, lost, topology.host_count * (topology.host_count - 1))
    follow = _Follow(topology, plan, working)
    found += [
        _other_path(topology, routes, source, end, follow.hops(source, end)) for source, end in strange[:MAX_SHOWN]
    ]
    found += summarize_remaining(len(strange))
    if (lost or strange) and plan.kind != "openflow":
        found += _disagreement(topology, routes, plan)
    return found, turns_taken(topology, taken, degree)


def _groups(*columns: Ints) -> tuple[Ints, Longs]:
    """Distinct rows of columns, sorted, and the row of each host."""
    rows, of_host = np.unique(np.stack(columns, axis=1).astype(np.int32), axis=0, return_inverse=True)
    return np.ascontiguousarray(rows), of_host.reshape(-1)


def _other_path(topology: Topology, routes: Routes, source: int, end: int, taken: Sequence[int]) -> Violation:
    names = tuple(hop_name(topology, hop, routes.layers) for hop in taken)
    wanted = (hop_name(topology, hop, routes.layers) for hop in hops(topology, routes, source, end))
    sentence = (
        f"{topology.host_name(source)}→{topology.host_name(end)} takes {' '.join(names) or 'no link'} instead of "
    )
    return Violation("path", sentence + (" ".join(wanted) or "no link"), names)


class _Follow:
    """One pair at a time, for those that are reported."""

    def __init__(self, topology: Topology, plan: LocalPlan, working: Working) -> None:
        self._topology, self._plan, self._working = topology, plan, working

    def hops(self, source: int, end: int) -> tuple[int, ...]:
        """Virtual channels from host `source` until the frame is delivered."""
        plan, working = self._plan, self._working
        entries = np.flatnonzero(plan.entry_key == plan.host_key[end])
        following = dict(zip(plan.entry_vlan[entries].tolist(), working.entry_hop[entries].tolist(), strict=True))
        vlan, taken = int(working.host_vlan[source]), []
        for _ in range(len(plan.channel_vlan) + 1):
            hop = following.get(vlan, NEVER)
            if hop < 0:
                break
            taken.append(hop)
            vlan = int(working.channel_vlan[hop])
        return tuple(taken)


def _disagreement(topology: Topology, routes: Routes, plan: LocalPlan) -> list[Violation]:
    """The first local VLAN that serves ports whose frames to one destination must leave by different ports."""
    from testbed.fabric.kernels import forwarding

    paths = all_paths(topology, routes)
    no_class = plan.class_count  # for arrivals that have none
    source_class = np.full(len(key_switches(routes)[0]), no_class, dtype=np.int32)
    source_class[source_keys(topology, routes)] = plan.host_vlan
    channel_class = np.where(plan.channel_vlan >= 0, plan.channel_vlan, no_class).astype(np.int32)
    _, conflict = forwarding.next_hops(
        paths.start, paths.hop, source_class, channel_class, no_class + 1, len(key_switches(routes)[1])
    )
    if not len(conflict) or conflict[0] in (no_class, -1):
        return []
    vlan, key, first, second = conflict[:4].tolist()
    hosts = np.flatnonzero(destination_keys(topology, routes) == key).tolist()
    names = ", ".join(topology.host_name(host) for host in hosts)
    ways = " and ".join(
        f"to {topology.channel_name(hop % len(topology.channel_source))}" if hop != DELIVER else "to a host here"
        for hop in (first, second)
    )
    name = class_name(topology, plan, vlan)
    sentence = f"{name} serves ports that do not agree: frames for {names} must go {ways}"
    return [Violation("merge", sentence, (name,))]
