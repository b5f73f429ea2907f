"""LocalPlan → OpenFlow 1.3 rules: ingress gives a frame its class, forwarding looks up class and destination.

`renamed`: the local VLAN is a tag that exists inside the switch only; every output is untagged. `static`: no tag at
all. `openflow`: the tag stays on between switches, and its priority is the layer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.base.model import Bools, LocalPlan, Rule, Topology, host_mac
from testbed.fabric.openflow.tables import FORWARDING, INGRESS, UNTAGGED, Priority
from testbed.fabric.vlans.local_vlans import entry_count, member_matrix

Match = tuple[tuple[str, int | str], ...]
Actions = tuple[tuple[str, int], ...]
_NEXT: Actions = (("goto_table", FORWARDING.number),)


def compile_local(topology: Topology, plan: LocalPlan) -> list[Rule]:
    """Compile the rules of all switches, in no particular order.

    As 802.1Q asks, a port takes in only frames of a VLAN it is a member of, and sends no others.
    """
    if plan.kind == "openflow":
        return [*_trunk_ingress(topology, plan), *_by_priority(topology, plan), *_floods(topology, plan)]
    members = member_matrix(topology, plan)
    return [*_port_ingress(topology, plan, members), *_by_vlan(topology, plan, members), *_floods(topology, plan)]


def count_local_rules(topology: Topology, plan: LocalPlan) -> int:
    """Count the rules that compile_local() makes of a sound plan, without making them."""
    tree = np.zeros(topology.link_count, dtype=bool) if plan.flood_links is None else plan.flood_links
    channels = len(topology.channel_source)
    layers = plan.channel_vlan.reshape(-1, channels) if channels else plan.channel_vlan.reshape(1, 0)
    arrives = (layers >= 0).any(axis=0)  # of a static plan, all in the tree
    ingress = topology.host_count + int((arrives | np.repeat(tree, 2)).sum())
    if plan.kind == "openflow":
        hosts = np.bincount(plan.host_key, minlength=int(plan.entry_key.max()) + 1)
        senders = np.bincount(plan.host_vlan, minlength=plan.class_count)
        ports = np.where(senders > 0, senders, 1)  # of a class: hosts' ports, or the one of its channel
        entries = int((hosts[plan.entry_key] * ports[plan.entry_vlan]).sum())
    else:
        entries = int(entry_count(topology, plan).sum())
    return ingress + entries + sum(1 for _ in _floods(topology, plan))


def _port_ingress(topology: Topology, plan: LocalPlan, members: Bools) -> Iterator[Rule]:
    """A port gives untagged frames the local VLAN that is its PVID; one without takes in only floods, untagged."""
    for host, vlan in enumerate(plan.host_vlan.tolist()):
        switch, port = int(topology.host_switch[host]), int(topology.host_port[host])
        if vlan >= 0 and plan.vlan_switch[vlan] == switch and members[vlan, port]:
            yield _admit(switch, port, UNTAGGED, _local_tag(plan, vlan))
    for channel, vlan in enumerate(plan.channel_vlan.tolist()):
        switch, port = int(topology.channel_target[channel]), int(topology.out_port[channel ^ 1])
        if vlan >= 0 and plan.vlan_switch[vlan] == switch and members[vlan, port]:
            yield _admit(switch, port, UNTAGGED, _local_tag(plan, vlan))
        elif vlan < 0 and plan.kind == "renamed" and plan.flood_links is not None and plan.flood_links[channel // 2]:
            yield _admit(switch, port, UNTAGGED, ())


def _trunk_ingress(topology: Topology, plan: LocalPlan) -> Iterator[Rule]:
    """A host's port takes in untagged frames, a trunk those of the one VLAN."""
    for switch, port in zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True):
        yield _admit(switch, port, UNTAGGED, ())
    channels = len(topology.channel_source)
    tag = int(plan.vlan_id[0])
    for channel in range(channels):
        floods = plan.flood_links is not None and bool(plan.flood_links[channel // 2])
        if floods or (plan.channel_vlan[channel::channels] >= 0).any():
            yield _admit(int(topology.channel_target[channel]), int(topology.out_port[channel ^ 1]), tag, ())


def _admit(switch: int, port: int, tag: int, actions: Actions) -> Rule:
    match = (("in_port", port), ("dl_vlan", tag))
    return Rule(switch, INGRESS.number, Priority.ADMIT, match, (*actions, *_NEXT))


def _local_tag(plan: LocalPlan, vlan: int) -> Actions:
    return (("push_vlan", int(plan.vlan_id[vlan])),) if plan.kind == "renamed" else ()


def _entries(plan: LocalPlan) -> Iterator[tuple[int, int, int, int]]:
    """Switch, class, destination host, and next virtual channel or -1 of each entry."""
    hosts_of_key: list[list[int]] = [[] for _ in range(int(plan.host_key.max()) + 1)]
    for host, key in enumerate(plan.host_key.tolist()):
        hosts_of_key[key].append(host)
    columns = (plan.vlan_switch[plan.entry_vlan], plan.entry_vlan, plan.entry_key, plan.entry_hop)
    for switch, vlan, key, hop in zip(*(column.tolist() for column in columns), strict=True):
        for host in hosts_of_key[key] if key < len(hosts_of_key) else ():
            yield switch, vlan, host, hop


def _out_port(topology: Topology, switch: int, host: int, hop: int) -> int:
    """Port that an entry points to; 0 where there is none on its switch."""
    if hop < 0:
        return int(topology.host_port[host]) if topology.host_switch[host] == switch else 0
    channel = hop % len(topology.channel_source)
    return int(topology.out_port[channel]) if topology.channel_source[channel] == switch else 0


def _by_vlan(topology: Topology, plan: LocalPlan, members: Bools) -> Iterator[Rule]:
    """Static entries (local VLAN, destination) → port, without the tag."""
    macs = [host_mac(host) for host in range(topology.host_count)]
    for switch, vlan, host, hop in _entries(plan):
        port = _out_port(topology, switch, host, hop)
        local = plan.kind == "renamed"
        match = (("dl_vlan", int(plan.vlan_id[vlan]) if local else UNTAGGED), ("dl_dst", macs[host]))
        send: Actions = (("output", port),) if members[vlan, port] else ()
        strip: Actions = (("pop_vlan", 0),) if local and send else ()
        yield Rule(switch, FORWARDING.number, Priority.STATIC_ENTRY, match, (*strip, *send))


def _by_priority(topology: Topology, plan: LocalPlan) -> Iterator[Rule]:
    """(in-port, priority, destination) → new priority and port; the first switch tags, the last untags."""
    macs = [host_mac(host) for host in range(topology.host_count)]
    channels = len(topology.channel_source)
    arrivals: list[list[tuple[tuple[str, int], ...]]] = [[] for _ in range(plan.class_count)]
    for host, vlan in enumerate(plan.host_vlan.tolist()):
        if vlan >= 0 and plan.vlan_switch[vlan] == topology.host_switch[host]:
            arrivals[vlan].append((("in_port", int(topology.host_port[host])), ("dl_vlan", UNTAGGED)))
    for hop, vlan in enumerate(plan.channel_vlan.tolist()):
        layer, channel = divmod(hop, channels)
        if vlan >= 0 and plan.vlan_switch[vlan] == topology.channel_target[channel]:
            in_port = int(topology.out_port[channel ^ 1])
            tag = int(plan.vlan_id[vlan])
            arrivals[vlan].append((("in_port", in_port), ("dl_vlan", tag), ("dl_vlan_pcp", layer)))
    for switch, vlan, host, hop in _entries(plan):
        port = _out_port(topology, switch, host, hop)
        for arrival in arrivals[vlan]:
            actions: list[tuple[str, int]] = [("output", port)] if port else []
            tagged = arrival[1] != ("dl_vlan", UNTAGGED)
            if port and hop >= 0:
                actions.insert(0, ("set_pcp", hop // channels))
                if not tagged:
                    actions.insert(0, ("push_vlan", int(plan.vlan_id[vlan])))
            elif port and tagged:
                actions.insert(0, ("pop_vlan", 0))
            match: Match = (*arrival, ("dl_dst", macs[host]))
            yield Rule(switch, FORWARDING.number, Priority.STATIC_ENTRY, match, tuple(actions))


def _floods(topology: Topology, plan: LocalPlan) -> Iterator[Rule]:
    """Group addresses, and addresses without an entry: the tree of broadcasts, from whatever port and class."""
    if plan.flood_links is None:
        return
    hosts: list[list[int]] = [[] for _ in range(topology.switch_count)]
    trunks: list[list[int]] = [[] for _ in range(topology.switch_count)]
    untagged_trunk = np.zeros(topology.switch_count, dtype=bool)
    for switch, port in zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True):
        hosts[switch].append(port)
    for channel in np.flatnonzero(np.repeat(plan.flood_links, 2)).tolist():
        trunks[int(topology.channel_source[channel])].append(int(topology.out_port[channel]))
        untagged_trunk[topology.channel_target[channel]] |= plan.channel_vlan[channel] < 0
    if plan.kind == "openflow":
        yield from _tagged_floods(plan, hosts, trunks)
        return
    vlans: list[list[int]] = [[] for _ in range(topology.switch_count)]
    if plan.kind == "renamed":
        for switch, vlan_id in zip(plan.vlan_switch.tolist(), plan.vlan_id.tolist(), strict=True):
            vlans[switch].append(vlan_id)
    for switch in range(topology.switch_count):
        send = tuple(("output", port) for port in sorted(trunks[switch] + hosts[switch]))
        tags = vlans[switch] + ([UNTAGGED] if plan.kind == "static" or untagged_trunk[switch] else [])
        for tag in tags if send else ():
            strip: Actions = () if tag == UNTAGGED else (("pop_vlan", 0),)
            yield Rule(switch, FORWARDING.number, Priority.FLOOD, (("dl_vlan", tag),), (*strip, *send))


def _tagged_floods(plan: LocalPlan, hosts: list[list[int]], trunks: list[list[int]]) -> Iterator[Rule]:
    tag = int(plan.vlan_id[0])
    for switch, (edges, links) in enumerate(zip(hosts, trunks, strict=True)):
        onward = tuple(("output", port) for port in sorted(links))
        untagged = tuple(("output", port) for port in sorted(edges))
        if edges:
            push: Actions = (("push_vlan", tag), ("set_pcp", 0), *onward, ("pop_vlan", 0)) if onward else ()
            yield Rule(switch, FORWARDING.number, Priority.FLOOD, (("dl_vlan", UNTAGGED),), (*push, *untagged))
        if links:
            strip: Actions = (("pop_vlan", 0), *untagged) if untagged else ()
            yield Rule(switch, FORWARDING.number, Priority.FLOOD, (("dl_vlan", tag),), (*onward, *strip))
