"""VlanPlan → OpenFlow 1.3 rules. OpenFlow never sends a frame back by its in-port, which bounds flooding."""

from __future__ import annotations

from collections import defaultdict

from testbed.model import Rule, Topology, VlanPlan, host_mac
from testbed.pipeline.tables import FORWARDING, INGRESS, UNTAGGED, Priority


def compile_rules(topology: Topology, vlans: VlanPlan) -> tuple[Rule, ...]:
    """Compile the rules of all switches, ordered by switch, table, priority."""
    rules: list[Rule] = []
    rules += _host_ports(topology, vlans)
    rules += _trunk_ports(topology, vlans)
    rules += _static_entries(topology, vlans)
    rules += _floods(topology, vlans)
    return tuple(sorted(rules, key=lambda rule: (rule.switch, rule.table, -rule.priority, str(rule.match))))


def _host_ports(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    return [
        Rule(
            int(topology.host_switch[host]),
            INGRESS.number,
            Priority.ADMIT,
            (("in_port", int(topology.host_port[host])), ("dl_vlan", UNTAGGED)),
            (("push_vlan", int(vlans.vlan_ids[vlans.pvid[host]])), ("goto_table", FORWARDING.number)),
        )
        for host in range(topology.host_count)
    ]


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


def _static_entries(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    macs = [host_mac(host) for host in range(topology.host_count)]
    host_ports = set(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True))
    rules = []
    columns = (vlans.vlan_ids[vlans.entry_vlan], vlans.entry_switch, vlans.entry_host, vlans.entry_port)
    for vlan_id, switch, host, port in zip(*(column.tolist() for column in columns), strict=True):
        send: tuple[tuple[str, int], ...] = (("output", port),)
        if (switch, port) in host_ports:
            send = (("pop_vlan", 0), *send)
        match = (("dl_vlan", vlan_id), ("dl_dst", macs[host]))
        rules.append(Rule(switch, FORWARDING.number, Priority.STATIC_ENTRY, match, send))
    return rules


def _floods(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    trunks: dict[tuple[int, int], list[int]] = defaultdict(list)
    for vlan, link in zip(*vlans.tagged_links.nonzero(), strict=True):
        for channel in (2 * int(link), 2 * int(link) + 1):
            trunks[int(vlan), int(topology.channel_source[channel])].append(int(topology.out_port[channel]))
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
