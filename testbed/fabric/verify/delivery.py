"""Follow all ordered host pairs through VLANs of the whole fabric; compare with the routes.

Through listed static entries, pair by pair; or, where entries follow from the trees of VLANs, sender by sender: in a
tree there is one way between two switches, so one walk of a VLAN from a sender's switch is the path of all its pairs.
Hosts of one switch with one PVID are one sender.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from testbed.base.model import Bools, Codes, Entries, HostTaggedPlan, Ints, Longs, Routes, Topology, Violation, VlanPlan
from testbed.fabric.routing.channel_lookup import leaving_channels, leaving_slots
from testbed.fabric.routing.paths import all_paths, destination_keys, key_switches, path, source_keys
from testbed.fabric.routing.relation import Conflict, as_source_trees
from testbed.fabric.verify.deadlock import turns_taken

_SHOWN = 5  # lost pairs named in one sentence
MAX_SHOWN = 1000  # pairs on another path that are listed one by one


@dataclass(frozen=True, slots=True)
class Walk:
    """What the VLAN plan does with one frame of every ordered pair."""

    source: Ints  # (P,) host of each pair
    destination: Ints  # (P,) host of each pair
    hops: Ints  # (steps, P) channel taken in each step, -1 once the frame has arrived or is lost
    delivered: Bools  # (P,) the frame reached its destination, untagged unless that tags


def walk(topology: Topology, vlans: VlanPlan, entries: Entries) -> Walk:
    """Carry out the VLAN plan for all pairs of different hosts, all at once, one hop a step."""
    hosts, switches = topology.host_count, topology.switch_count
    source, destination = (a.astype(np.int32) for a in np.nonzero(~np.eye(hosts, dtype=bool)))
    table, ports = _entry_table(topology, entries)
    port_meaning = _port_meaning(topology)
    vlan, passes = _sent_in(vlans, source, destination), _passing_ports(topology, vlans)
    at = topology.host_switch[source].astype(np.int64)
    on_way = passes[vlan, source]  # ingress filtering at the host port
    delivered = np.zeros(len(source), dtype=bool)
    hops: list[Ints] = []
    for _ in range(switches + 1):
        if not on_way.any():
            break
        key = (vlan * switches + at) * hosts + destination
        index = np.minimum(np.searchsorted(table, key), max(len(table) - 1, 0))
        known = on_way & (table[index] == key) if len(table) else np.zeros_like(on_way)
        port = np.where(known, ports[index] if len(ports) else 0, 0)
        port = np.where((port > 0) & (port < port_meaning.shape[1]), port, 0)  # others lead nowhere
        meaning = port_meaning[at, port]
        to_host = meaning < 0
        target = -meaning - 1
        arrived = to_host & (target == destination)
        arrived[arrived] = passes[vlan[arrived], destination[arrived]]
        delivered |= arrived
        channel = np.where(meaning > 0, meaning - 1, -1).astype(np.int32)
        member = channel >= 0
        member[member] = vlans.tagged_links[vlan[member], channel[member] // 2]
        channel = np.where(member, channel, -1).astype(np.int32)
        hops.append(channel)
        on_way = member
        at[member] = topology.channel_target[channel[member]]
    stacked = np.stack(hops) if hops else np.zeros((0, len(source)), dtype=np.int32)
    return Walk(source, destination, stacked, delivered)


def _sent_in(vlans: VlanPlan, source: Ints, destination: Ints) -> Longs:
    """(P,) VLAN of each pair's frames: the one that the host tags them with, or its port's PVID."""
    if not isinstance(vlans, HostTaggedPlan):
        return vlans.pvid[source].astype(np.int64)
    chosen = vlans.pair_vlan[source, destination]
    return np.where(vlans.tagging[source], chosen, vlans.pvid[source]).astype(np.int64)


def _passing_ports(topology: Topology, vlans: VlanPlan) -> Bools:
    """(V, H) True where frames of a VLAN pass a host's port as the host sends and takes them, tagged or untagged."""
    shape = vlans.vlan_count, topology.host_count
    if isinstance(vlans, HostTaggedPlan):
        found: Bools = np.where(vlans.tagging, vlans.tagged_hosts, vlans.untagged_hosts)
        return found
    return np.broadcast_to(vlans.untagged_hosts, shape)


def _entry_table(topology: Topology, entries: Entries) -> tuple[npt.NDArray[np.int64], Ints]:
    """Sorted keys (vlan, switch, host) of the static entries and their ports."""
    key = entries.vlan.astype(np.int64) * topology.switch_count + entries.switch
    key = key * topology.host_count + entries.host
    order = np.argsort(key, kind="stable")
    return key[order], entries.port[order]


def _port_meaning(topology: Topology) -> npt.NDArray[np.int64]:
    """(S, ports + 1) channel + 1 for a trunk port, -(host + 1) for a host port, 0 for none."""
    meaning = np.zeros((topology.switch_count, int(topology.port_count.max(initial=0)) + 1), dtype=np.int64)
    meaning[topology.host_switch, topology.host_port] = -(np.arange(topology.host_count) + 1)
    meaning[topology.channel_source, topology.out_port] = np.arange(len(topology.channel_source)) + 1
    return meaning


def check_delivery(topology: Topology, routes: Routes, steps: Walk) -> list[Violation]:
    """Every pair must be delivered, on the channels the routes say."""
    names = list(zip(steps.source.tolist(), steps.destination.tolist(), strict=True))
    found = lost_pairs(topology, [names[i] for i in np.flatnonzero(~steps.delivered)], len(names))
    strange = np.flatnonzero(steps.delivered & ~_as_routed(topology, routes, steps)).tolist()
    for index in strange[:MAX_SHOWN]:
        taken = tuple(int(c) for c in steps.hops[:, index] if c >= 0)
        source, end = names[index]
        found.append(other_path(topology, source, end, taken, path(topology, routes, source, end)))
    return found + summarize_remaining(len(strange))


def summarize_remaining(strange: int) -> list[Violation]:
    """One violation for the pairs on another path beyond those that are listed one by one, or nothing."""
    if strange <= MAX_SHOWN:
        return []
    return [Violation("path", f"{strange - MAX_SHOWN} more pairs take another path than the routes say")]


def lost_pairs(topology: Topology, lost: Sequence[tuple[int, int]], pairs: int) -> list[Violation]:
    """One violation for all pairs of hosts that are not delivered, or nothing."""
    if not lost:
        return []
    names = tuple(f"{topology.host_name(source)}→{topology.host_name(end)}" for source, end in lost)
    shown = f"{', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
    return [Violation("delivery", f"{len(lost)} of {pairs} pairs are not delivered: {shown}", names)]


def other_path(topology: Topology, source: int, end: int, taken: Sequence[int], wanted: Sequence[int]) -> Violation:
    """The violation of a pair that arrives by other channels than the routes say."""
    names = tuple(topology.channel_name(channel) for channel in taken)
    return Violation(
        "path",
        f"{topology.host_name(source)}→{topology.host_name(end)} takes {' '.join(names)} instead of "
        f"{' '.join(topology.channel_name(channel) for channel in wanted)}",
        names,
    )


def dependencies(topology: Topology, steps: Walk) -> Ints:
    """(D, 2) pairs of channels that some path takes one after the other."""
    count = max(len(topology.channel_source), 1)
    used = [np.zeros(0, dtype=np.int64)]
    for before, after in zip(steps.hops[:-1], steps.hops[1:], strict=True):
        both = (before >= 0) & (after >= 0)
        used.append(np.unique(before[both].astype(np.int64) * count + after[both]))
    pairs = np.unique(np.concatenate(used))
    return np.stack([pairs // count, pairs % count], axis=1).astype(np.int32)


def _as_routed(topology: Topology, routes: Routes, steps: Walk) -> Bools:
    """(P,) whether the walk of each pair equals its route."""
    paths = all_paths(topology, routes)
    pair = source_keys(topology, routes)[steps.source].astype(np.int64) * len(key_switches(routes)[1])
    pair += destination_keys(topology, routes)[steps.destination]
    first, end = paths.start[pair], paths.start[pair + 1]
    same: Bools = (steps.hops >= 0).sum(axis=0) == end - first
    for step, channel in enumerate(steps.hops):
        under_way = same & (first + step < end)
        same[under_way] = paths.hop[first[under_way] + step] == channel[under_way]
    return same


def check_tree_delivery(topology: Topology, routes: Routes, vlans: VlanPlan) -> tuple[list[Violation], Ints]:
    """Every pair must be delivered, on the channels the routes say.

    Returns:
        violations, and (D, 2) pairs of channels that some path takes one after the other.
    """
    from testbed.fabric.kernels import vlans as kernels

    wanted = as_source_trees(topology, routes)
    if isinstance(wanted, Conflict):
        sentence = f"no VLAN tree can hold these paths: {wanted.sentence(topology)}"
        return [Violation("path", sentence)], np.zeros((0, 2), dtype=np.int32)
    start, leaving = leaving_channels(topology)
    slot, degree = leaving_slots(topology)
    sender = np.stack([topology.host_switch, vlans.pvid, wanted.host_tree], axis=1)
    rows, of_host = np.unique(sender, axis=0, return_inverse=True)
    status, taken = kernels.follow(
        rows[:, 0].copy(), rows[:, 1].copy(), wanted.tree_channel[rows[:, 2]], vlans.tagged_links, start, leaving,
        topology.channel_target, wanted.ends, slot, degree,
    )  # fmt: skip
    found = _violations(topology, routes, vlans, wanted.ends, status, of_host.reshape(-1))
    return found, turns_taken(topology, taken, degree)


def _violations(
    topology: Topology, routes: Routes, vlans: VlanPlan, ends: Ints, status: Codes, of_host: Longs
) -> list[Violation]:
    from testbed.fabric.kernels.vlans import LOST, OTHER_WAY

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
    for source, end in strange[:MAX_SHOWN]:
        taken = _trace_path(topology, vlans, source, end)
        found.append(other_path(topology, source, end, taken, path(topology, routes, source, end)))
    return found + summarize_remaining(len(strange))


def _trace_path(topology: Topology, vlans: VlanPlan, source: int, end: int) -> tuple[int, ...]:
    from testbed.fabric.kernels import vlans as kernels

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
