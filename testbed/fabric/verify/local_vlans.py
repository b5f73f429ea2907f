"""Local VLANs: every port has one, no entry leaves it, and every pair takes its path through them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Ints, LocalPlan, Topology, Violation
from testbed.fabric.vlans.local_vlans import DELIVER, NEVER, member_matrix


@dataclass(frozen=True, slots=True, eq=False)
class Working:
    """What of a plan carries frames: all but what a switch would drop."""

    host_vlan: Ints  # (H,) local VLAN of frames that a host sends, -1 where its port does not take them in
    channel_vlan: Ints  # (layers·C,) likewise for frames that arrive by a virtual channel
    entry_hop: Ints  # (N,) next virtual channel, DELIVER, or NEVER for an entry that points to no member port
    receives: Bools  # (V, ports + 1) True where a port of the switch is a member


def list_malformed(topology: Topology, plan: LocalPlan, layers: int) -> list[Violation]:
    """Arrays of a wrong length, or with numbers of things that do not exist; nothing else can be checked then."""
    hosts, vlans = topology.host_count, plan.class_count
    entries, hops = len(plan.entry_vlan), layers * len(topology.channel_source)
    keys = int(plan.host_key.max(initial=-1)) + 1
    found = []
    for name, length, low, high in (
        ("vlan_switch", vlans, 0, topology.switch_count),
        ("vlan_id", vlans, None, None),
        ("host_vlan", hosts, -1, vlans),
        ("channel_vlan", hops, -1, vlans),
        ("host_key", hosts, 0, keys),
        ("entry_vlan", entries, 0, vlans),
        ("entry_key", entries, 0, keys),
        ("entry_hop", entries, DELIVER, hops),
        ("member_start", vlans + 1, 0, len(plan.member_port) + 1),
        ("flood_links", topology.link_count, None, None),
    ):
        array = getattr(plan, name)
        if array is None:
            continue
        if array.shape != (length,):
            found.append(Violation("plan", f"{name} has {array.size} numbers and the fabric needs {length}", (name,)))
        elif low is not None and high is not None and len(array) and (array.min() < low or array.max() >= high):
            wrong = int(array[(array < low) | (array >= high)][0])
            found.append(Violation("plan", f"{name} holds {wrong}, and goes from {low} to {high - 1}", (name,)))
    if not found and (np.diff(plan.member_start) < 0).any():
        found.append(Violation("plan", "member_start goes back", ("member_start",)))
    return found


def check_arrivals(topology: Topology, plan: LocalPlan) -> tuple[list[Violation], Working]:
    """Each port's PVID must be a local VLAN of its switch with the port as member; entries must point to members.

    Returns:
        violations, and what of the plan carries frames nevertheless.
    """
    members = member_matrix(topology, plan)
    if plan.kind == "openflow":
        members[:] = True  # a class is no VLAN and has no members
    host_vlan, found = _arrivals(topology, plan, plan.host_vlan, topology.host_switch, topology.host_port, members)
    channels = len(topology.channel_source)
    layers = len(plan.channel_vlan) // max(channels, 1)
    channel_vlan, more = _arrivals(
        topology,
        plan,
        plan.channel_vlan,
        np.tile(topology.channel_target, layers),
        np.tile(topology.out_port[np.arange(channels) ^ 1], layers),
        members,
    )
    for host in np.flatnonzero(plan.host_vlan < 0).tolist():
        name = topology.host_name(host)
        found.append(Violation("members", f"the port of {name} has no PVID, so its frames are dropped", (name,)))
    entry_hop, wrong = _entries(topology, plan, members)
    return [*found, *more, *wrong], Working(host_vlan, channel_vlan, entry_hop, members)


def _arrivals(
    topology: Topology, plan: LocalPlan, vlan: Ints, switch: Ints, port: Ints, members: Bools
) -> tuple[Ints, list[Violation]]:
    """VLAN of each arrival or -1, and what is wrong: a VLAN of another switch, or one the port is not a member of."""
    known = vlan >= 0
    here = known & (plan.vlan_switch[vlan] == switch)
    inside = here.copy()
    inside[here] = members[vlan[here], port[here]]
    found = []
    for index in np.flatnonzero(known & ~here).tolist():
        place = f"port {port[index]} of {topology.switch_name(int(switch[index]))}"
        other = class_name(topology, plan, int(vlan[index]))
        sentence = f"the PVID of {place} belongs to another switch: {other}"
        found.append(Violation("members", sentence, (place,)))
    for index in np.flatnonzero(here & ~inside).tolist():
        place = f"port {port[index]} of {topology.switch_name(int(switch[index]))}"
        name = class_name(topology, plan, int(vlan[index]))
        sentence = f"{place} is not a member of its own PVID, {name}, so it drops what arrives"
        found.append(Violation("members", sentence, (place,)))
    return np.where(inside, vlan, -1).astype(np.int32), found


def _entries(topology: Topology, plan: LocalPlan, members: Bools) -> tuple[Ints, list[Violation]]:
    """Next hop of each entry or NEVER, and what is wrong: two entries for one address, or no member port."""
    found = []
    key = plan.entry_vlan.astype(np.int64) * (int(plan.host_key.max(initial=0)) + 1) + plan.entry_key
    if not (np.diff(key) > 0).all():
        _, first, counts = np.unique(key, return_index=True, return_counts=True)
        for index in first[counts > 1].tolist():
            found.append(Violation("entries", f"{entry_name(topology, plan, index)} is listed more than once"))
    switch = plan.vlan_switch[plan.entry_vlan]
    hop = plan.entry_hop
    sent = hop >= 0
    channel = hop[sent] % max(len(topology.channel_source), 1)
    leaves = topology.channel_source[channel] == switch[sent]
    works = np.ones(len(hop), dtype=bool)
    works[sent] = leaves & members[plan.entry_vlan[sent], topology.out_port[channel]]
    for index in np.flatnonzero(~works).tolist():
        name = topology.channel_name(int(hop[index]) % len(topology.channel_source))
        there = int(topology.channel_source[int(hop[index]) % len(topology.channel_source)]) == int(switch[index])
        why = "whose port is not a member of that VLAN" if there else "which does not leave that switch"
        found.append(Violation("entries", f"{entry_name(topology, plan, index)} points to {name}, {why}", (name,)))
    for index, host in _deliveries(plan):
        there = topology.host_switch[host] == switch[index]
        if there and members[plan.entry_vlan[index], topology.host_port[host]]:
            continue
        name = topology.host_name(host)
        why = (
            "whose port is not a member of that VLAN"
            if there
            else f"which is attached to {topology.switch_name(int(topology.host_switch[host]))}"
        )
        sentence = f"{entry_name(topology, plan, index)} delivers to {name}, {why}"
        found.append(Violation("entries", sentence, (name,)))
    return np.where(works, hop, NEVER).astype(np.int32), found


def _deliveries(plan: LocalPlan) -> Iterator[tuple[int, int]]:
    """Every entry that delivers, with each of its hosts."""
    by_key = np.argsort(plan.host_key, kind="stable")
    start = np.searchsorted(plan.host_key[by_key], np.arange(int(plan.host_key.max(initial=-1)) + 2))
    for index in np.flatnonzero(plan.entry_hop == DELIVER).tolist():
        key = int(plan.entry_key[index])
        for host in by_key[start[key] : start[key + 1]].tolist():
            yield index, host


def class_name(topology: Topology, plan: LocalPlan, vlan: int) -> str:
    """A class in words: the local VLAN, the MAC table, or port and priority of arrival."""
    switch = topology.switch_name(int(plan.vlan_switch[vlan]))
    if plan.kind == "renamed":
        return f"local VLAN {plan.vlan_id[vlan]} of {switch}"
    if plan.kind == "static":
        return f"the MAC table of {switch}"
    hops = np.flatnonzero(plan.channel_vlan == vlan)
    if not len(hops):
        hosts = np.flatnonzero(plan.host_vlan == vlan)
        senders = ", ".join(topology.host_name(host) for host in hosts.tolist()) or "no host"
        return f"the rules of {switch} for frames from {senders}"
    layer, channel = divmod(int(hops[0]), len(topology.channel_source))
    port = topology.out_port[channel ^ 1]
    return f"the rules of {switch} for frames that enter by port {port} with priority {layer}"


def entry_name(topology: Topology, plan: LocalPlan, index: int) -> str:
    """An entry in words."""
    hosts = np.flatnonzero(plan.host_key == plan.entry_key[index])
    names = ", ".join(topology.host_name(host) for host in hosts.tolist())
    return f"the entry of {names} in {class_name(topology, plan, int(plan.entry_vlan[index]))}"


def check_flood(topology: Topology, plan: LocalPlan) -> list[Violation]:
    """The links that carry broadcasts must be free of loops and connect all switches that have hosts."""
    from testbed.fabric.kernels.vlans import loops_and_parts

    if plan.flood_links is None:
        return []
    with_hosts = np.unique(topology.host_switch)
    loops, connected = loops_and_parts(
        plan.flood_links[None, :], topology.links, topology.switch_count, int(with_hosts[0])
    )
    found = []
    if loops[0]:
        names = tuple(topology.channel_name(2 * int(link)) for link in np.flatnonzero(plan.flood_links))
        found.append(Violation("flood", "the links of broadcasts contain a loop; a broadcast would circulate", names))
    cut = with_hosts[~connected[0, with_hosts]]
    if len(cut):
        names = tuple(topology.switch_name(int(switch)) for switch in cut)
        first = topology.switch_name(int(with_hosts[0]))
        sentence = f"the links of broadcasts do not connect {first} with {', '.join(names)}"
        found.append(Violation("flood", sentence, names))
    return found
