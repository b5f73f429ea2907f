"""Plans → OpenFlow 1.3 rules. OpenFlow never sends a frame back by its in-port, which bounds flooding."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import numpy as np

from testbed.base.model import (
    Bundles,
    Group,
    HostTaggedPlan,
    LearningPlan,
    LocalPlan,
    Rule,
    Topology,
    VlanPlan,
    host_mac,
)
from testbed.fabric.openflow.admission import FILTERS, filter_rules
from testbed.fabric.openflow.compile_local import compile_local, count_local_rules
from testbed.fabric.openflow.oracle import Frame, Oracle
from testbed.fabric.openflow.tables import (
    EGRESS,
    FORWARDING,
    INGRESS,
    LEARN_AT_BUNDLE,
    LEARN_AT_HOST,
    LEARN_AT_TRUNK,
    UNTAGGED,
    Priority,
)
from testbed.fabric.vlans.mac_entries import entries_of, entry_counts, vlans_on_switches


def compile_rules(topology: Topology, vlans: VlanPlan | LocalPlan, bundles: Bundles | None = None) -> tuple[Rule, ...]:
    """Compile the rules of all switches, ordered by switch, table, priority; none where the plan has no tables."""
    if isinstance(vlans, LocalPlan) and vlans.kind == "model":
        return ()
    rules = compile_local(topology, vlans) if isinstance(vlans, LocalPlan) else _compile_fixed(topology, vlans)
    if bundles is not None:
        if isinstance(vlans, LearningPlan):
            rules = to_learn_bundles(rules, bundles)
        rules = [*through_bundles(rules, bundles), *bundle_rules(bundles)]
    rules = [*filter_rules(topology.switch_count), *rules]
    return tuple(sorted(rules, key=lambda rule: (rule.switch, rule.table, -rule.priority, str(rule.match))))


def count_rules(topology: Topology, vlans: VlanPlan | LocalPlan, bundles: Bundles | None = None) -> int:
    """Count the rules that compile_rules() makes, without making them."""
    if isinstance(vlans, LocalPlan) and vlans.kind == "model":
        return 0
    beside = count_bundle_rules(bundles) + FILTERS * topology.switch_count
    if isinstance(vlans, LocalPlan):
        return beside + count_local_rules(topology, vlans)
    trunks, floods = 2 * int(vlans.tagged_links.sum()), int(vlans_on_switches(topology, vlans).sum())
    if isinstance(vlans, LearningPlan):
        return beside + topology.host_count * (1 + vlans.vlan_count) + trunks + floods
    admitted = topology.host_count
    if isinstance(vlans, HostTaggedPlan):
        admitted = int((~vlans.tagging).sum()) + int(vlans.tagged_hosts.sum())
    return beside + admitted + trunks + int(entry_counts(topology, vlans).sum()) + floods


def _compile_fixed(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    if isinstance(vlans, LearningPlan):
        arriving = [*_host_ports(topology, vlans), *_trunk_ports(topology, vlans)]
        return [*learning_rules(topology, vlans, arriving), *_floods(topology, vlans)]
    return [
        *_host_ports(topology, vlans),
        *_trunk_ports(topology, vlans),
        *entry_rules(topology, vlans),
        *_floods(topology, vlans),
    ]


def _host_ports(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    tagging = vlans.tagging if isinstance(vlans, HostTaggedPlan) else np.zeros(topology.host_count, dtype=bool)
    return [
        *_tagged_host_ports(topology, vlans),
        *(_port_with_pvid(topology, vlans, host) for host in np.flatnonzero(~tagging).tolist()),
    ]


def _tagged_host_ports(topology: Topology, vlans: VlanPlan) -> Iterator[Rule]:
    """What hosts that tag are let send: frames of the VLANs that their port is a tagged member of."""
    if not isinstance(vlans, HostTaggedPlan):
        return
    for vlan, host in zip(*vlans.tagged_hosts.nonzero(), strict=True):
        match = (("in_port", int(topology.host_port[host])), ("dl_vlan", int(vlans.vlan_ids[vlan])))
        to = (("goto_table", FORWARDING.number),)
        yield Rule(int(topology.host_switch[host]), INGRESS.number, Priority.ADMIT, match, to)


def _port_with_pvid(topology: Topology, vlans: VlanPlan, host: int) -> Rule:
    return Rule(
        int(topology.host_switch[host]),
        INGRESS.number,
        Priority.ADMIT,
        (("in_port", int(topology.host_port[host])), ("dl_vlan", UNTAGGED)),
        (("push_vlan", int(vlans.vlan_ids[vlans.pvid[host]])), ("goto_table", FORWARDING.number)),
    )


def _trunk_ports(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    rules = []
    for vlan, link in zip(*vlans.tagged_links.nonzero(), strict=True):
        for channel in (2 * int(link), 2 * int(link) + 1):
            rules.append(
                Rule(
                    int(topology.channel_target[channel]),
                    INGRESS.number,
                    Priority.ADMIT,
                    (
                        ("in_port", int(topology.out_port[channel ^ 1])),
                        ("dl_vlan", int(vlans.vlan_ids[vlan])),
                    ),
                    (("goto_table", FORWARDING.number),),
                )
            )
    return rules


def _floods(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    trunks: dict[tuple[int, int], list[int]] = defaultdict(list)
    for vlan, link in zip(*vlans.tagged_links.nonzero(), strict=True):
        for channel in (2 * int(link), 2 * int(link) + 1):
            trunks[int(vlan), int(topology.channel_source[channel])].append(int(topology.out_port[channel]))
    if isinstance(vlans, HostTaggedPlan):
        for vlan, host in zip(*vlans.tagged_hosts.nonzero(), strict=True):
            trunks[int(vlan), int(topology.host_switch[host])].append(int(topology.host_port[host]))
    edges: dict[tuple[int, int], list[int]] = defaultdict(list)
    for vlan, host in zip(*vlans.untagged_hosts.nonzero(), strict=True):
        edges[int(vlan), int(topology.host_switch[host])].append(int(topology.host_port[host]))
    rules = []
    for vlan, switch in sorted(trunks.keys() | edges.keys()):
        tagged = [("output", port) for port in sorted(trunks.get((vlan, switch), []))]
        untagged = [("output", port) for port in sorted(edges.get((vlan, switch), []))]
        strip = [("pop_vlan", 0)] if untagged else []
        match = (("dl_vlan", int(vlans.vlan_ids[vlan])),)
        rules.append(Rule(switch, FORWARDING.number, Priority.FLOOD, match, (*tagged, *strip, *untagged)))
    return rules


def entry_rules(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    """A rule for each entry: the port that leads to a host in a VLAN; without the tag, unless the host takes tags."""
    macs = [host_mac(host) for host in range(topology.host_count)]
    strips = {
        (int(topology.host_switch[host]), int(topology.host_port[host]))
        for host in range(topology.host_count)
        if not vlans.takes_tags(host)
    }
    rules = []
    entries = entries_of(topology, vlans)
    columns = (vlans.vlan_ids[entries.vlan], entries.switch, entries.host, entries.port)
    for vlan_id, switch, host, port in zip(*(column.tolist() for column in columns), strict=True):
        send: tuple[tuple[str, int], ...] = (("output", port),)
        if (switch, port) in strips:
            send = (("pop_vlan", 0), *send)
        match = (("dl_vlan", vlan_id), ("dl_dst", macs[host]))
        rules.append(Rule(switch, FORWARDING.number, Priority.STATIC_ENTRY, match, send))
    return rules


def flooding_rules(topology: Topology) -> list[Rule]:
    """One rule a switch; with a loop among the links a broadcast never ends. Only `testbed storm` installs them."""
    ports: list[list[int]] = [[] for _ in range(topology.switch_count)]
    for switch, port in zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True):
        ports[switch].append(port)
    for switch, port in zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True):
        ports[switch].append(port)
    return [
        Rule(switch, INGRESS.number, Priority.FLOOD, (), tuple(("output", port) for port in sorted(its)))
        for switch, its in enumerate(ports)
    ]


def learning_rules(topology: Topology, vlans: LearningPlan, arriving: Iterable[Rule]) -> list[Rule]:
    """The rules that take frames in, made to learn, and those for tagged frames of hosts.

    A host's port is a member of every VLAN, and so takes in a frame that the host itself has tagged with any of them:
    that is how switches learn the host in VLANs that are not its PVID.
    """
    rules = [*arriving]
    members = np.broadcast_to(vlans.untagged_hosts, (vlans.vlan_count, topology.host_count))
    for vlan, host in zip(*members.nonzero(), strict=True):
        match = (("in_port", int(topology.host_port[host])), ("dl_vlan", int(vlans.vlan_ids[vlan])))
        to = (("goto_table", FORWARDING.number),)
        rules.append(Rule(int(topology.host_switch[host]), INGRESS.number, Priority.ADMIT, match, to))
    hosts = set(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True))
    return [_learning(rule, vlans.ageing, hosts) for rule in rules]


def _learning(rule: Rule, ageing: int, hosts: set[tuple[int, int]]) -> Rule:
    action = LEARN_AT_HOST if (rule.switch, dict(rule.match)["in_port"]) in hosts else LEARN_AT_TRUNK
    *before, last = rule.actions
    return replace(rule, actions=(*before, (action, ageing), last))


class LearningOracle(Oracle):
    """An oracle whose switches learn from every frame that it follows, and forget nothing."""

    def _learn(self, switch: int, action: str, frame: Frame) -> None:
        send: tuple[tuple[str, int], ...] = (("output", frame.in_port),)
        if action == LEARN_AT_BUNDLE:
            send = (("set_bundle", frame.in_port),)
        elif action == LEARN_AT_HOST:
            send = (("pop_vlan", 0), *send)
        match = (("dl_vlan", frame.tag[0]), ("dl_dst", frame.source_mac))
        self.add(Rule(switch, FORWARDING.number, Priority.STATIC_ENTRY, match, send))


# Layers 2, 3 and 4, as far as a frame has them. No PVID: it is the same for all frames of a host.
HASH_FIELDS = ("eth_src", "eth_dst", "ip_src", "ip_dst", "tcp_src", "tcp_dst", "udp_src", "udp_dst")


def compile_groups(bundles: Bundles | None) -> tuple[Group, ...]:
    """The group of each bundle at both of its switches, by switch and number; a single link needs none."""
    if bundles is None:
        return ()
    groups = (Group(switch, ports[0], ports) for switch, ports in _ends(bundles))
    return tuple(sorted(groups, key=lambda group: (group.switch, group.number)))


def groups_without(bundles: Bundles, off: Collection[int]) -> tuple[Group, ...]:
    """As compile_groups(), without buckets of the physical links `off`; the others keep their numbers."""
    wiring = bundles.wiring
    gone = {
        (int(wiring.channel_source[channel]), int(wiring.out_port[channel]))
        for link in off
        for channel in (2 * link, 2 * link + 1)
    }
    found = []
    for group in compile_groups(bundles):
        left = [(n, port) for n, port in enumerate(group.ports) if (group.switch, port) not in gone]
        numbers = tuple(number for number, _ in left)
        usual = numbers == tuple(range(len(left)))
        found.append(replace(group, ports=tuple(port for _, port in left), numbers=() if usual else numbers))
    return tuple(found)


def bundle_rules(bundles: Bundles) -> list[Rule]:
    """The rules that stand beside those of the plan: arrival by further members, and the way out of each bundle."""
    rules = []
    for switch, (first, *others) in _ends(bundles):
        for port in others:
            actions = (("set_in_port", first), ("resubmit", INGRESS.number))
            rules.append(Rule(switch, INGRESS.number, Priority.MEMBER, (("in_port", port),), actions))
        out = ("bundle", first)
        rules.append(Rule(switch, EGRESS.number, Priority.SAME_BUNDLE, (out, ("in_port", first)), ()))
        rules.append(Rule(switch, EGRESS.number, Priority.BUNDLE, (out,), (("group", first),)))
    return rules


def through_bundles(rules: Iterable[Rule], bundles: Bundles) -> Iterator[Rule]:
    """The rules of a plan, with the logical ports that are bundles in place of output ports."""
    ends = {(switch, ports[0]) for switch, ports in _ends(bundles)}
    for rule in rules:
        actions: list[tuple[str, int]] = []
        for action, value in rule.actions:
            if action == "output" and (rule.switch, value) in ends:
                actions += [("set_bundle", value), ("resubmit", EGRESS.number)]
            else:
                actions.append((action, value))
        yield replace(rule, actions=tuple(actions))


def to_learn_bundles(rules: Iterable[Rule], bundles: Bundles) -> list[Rule]:
    """The rules of switches that learn, as those do that have bundles.

    What they learn of a bundle names it, and the rule that took the frame in sends it on to the table of bundles once
    the forwarding table is through. A flood, which has served each bundle by then, leaves that nothing to do.
    """
    ends = {(switch, ports[0]) for switch, ports in _ends(bundles)}
    switches = {switch for switch, _ in ends}
    made = []
    for rule in rules:
        actions = rule.actions
        if rule.switch in switches and rule.table == INGRESS.number:
            *before, (learn, ageing), _ = actions
            kind = LEARN_AT_BUNDLE if (rule.switch, dict(rule.match)["in_port"]) in ends else learn
            actions = (*before, (kind, ageing), ("resubmit", FORWARDING.number), ("goto_table", EGRESS.number))
        elif any(action == "output" and (rule.switch, value) in ends for action, value in actions):
            actions = (*actions, ("set_bundle", 0))
        made.append(replace(rule, actions=actions))
    return made


def learned_rules(topology: Topology, vlans: LearningPlan, bundles: Bundles | None = None) -> list[Rule]:
    """What switches have learned once they know every host in every VLAN."""
    ends = set() if bundles is None else {(switch, ports[0]) for switch, ports in _ends(bundles)}
    return [
        replace(rule, actions=(("set_bundle", rule.actions[-1][1]),))
        if (rule.switch, rule.actions[-1][1]) in ends
        else rule
        for rule in entry_rules(topology, vlans)
    ]


def count_bundle_rules(bundles: Bundles | None) -> int:
    """Number of bundle_rules(), without making them."""
    if bundles is None:
        return 0
    members = bundles.sizes[bundles.sizes > 1]
    return 2 * int((members - 1 + 2).sum())


def _ends(bundles: Bundles) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Switch and ports of both ends of every bundle of two links or more, first member first."""
    wiring = bundles.wiring
    for link, size in enumerate(bundles.sizes.tolist()):
        if size < 2:
            continue
        for channel in (2 * link, 2 * link + 1):
            members = bundles.channels(channel)
            yield int(wiring.channel_source[members[0]]), tuple(int(wiring.out_port[c]) for c in members)
