"""Static MAC entries as rules; a switch that has learned all it can has the same."""

from __future__ import annotations

from testbed.model import Rule, Topology, VlanPlan, host_mac
from testbed.pipeline.tables import FORWARDING, Priority
from testbed.vlans.entries import entries_of


def entry_rules(topology: Topology, vlans: VlanPlan) -> list[Rule]:
    """A rule for each entry: the port that leads to a host in a VLAN; a host port sends untagged."""
    macs = [host_mac(host) for host in range(topology.host_count)]
    host_ports = set(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True))
    rules = []
    entries = entries_of(topology, vlans)
    columns = (vlans.vlan_ids[entries.vlan], entries.switch, entries.host, entries.port)
    for vlan_id, switch, host, port in zip(*(column.tolist() for column in columns), strict=True):
        send: tuple[tuple[str, int], ...] = (("output", port),)
        if (switch, port) in host_ports:
            send = (("pop_vlan", 0), *send)
        match = (("dl_vlan", vlan_id), ("dl_dst", macs[host]))
        rules.append(Rule(switch, FORWARDING.number, Priority.STATIC_ENTRY, match, send))
    return rules
