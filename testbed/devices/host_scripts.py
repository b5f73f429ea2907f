"""What hosts that tag are given: a script each, with an 802.1Q interface a VLAN, addresses, routes and neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.base.model import HostTaggedPlan, host_ip
from testbed.base.vlan_networks import vlan_address
from testbed.planning import Plan

HOST_SCRIPTS = "hosts"  # folder of them, beside the switches' files


def host_scripts(plan: Plan, macs: Sequence[str]) -> dict[str, str]:
    """A shell script for each host that tags, by the name of its file; none where switches tag.

    `macs`: address of each host.
    """
    vlans = plan.vlans
    if not isinstance(vlans, HostTaggedPlan):
        return {}
    tagging = vlans.tagging.tolist()
    return {
        f"{HOST_SCRIPTS}/{plan.topology.host_name(host)}.sh": _script(plan, vlans, host, macs)
        for host, tags in enumerate(tagging)
        if tags
    }


def _script(plan: Plan, vlans: HostTaggedPlan, host: int, macs: Sequence[str]) -> str:
    topology = plan.topology
    hosts = topology.host_count
    identifiers = vlans.vlan_ids.tolist()
    lines = [
        "#!/bin/sh",
        f"# {topology.host_name(host)} of {plan.scenario.name}, plan {plan.digest}: run as root with the name of its",
        "# card, such as eth0. The card gets no address but the host's own, and every frame leaves with a tag.",
        "set -e",
        "card=${1:?the name of the network card}",
        "modprobe 8021q",
        "ip link set $card up",
        f"ip address replace {host_ip(host)}/32 dev $card",
        "# A reply may come by another interface than the one its request left by.",
        "sysctl -q -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.$card.rp_filter=0",
    ]
    own = [place for place in range(vlans.vlan_count) if vlans.tagged_hosts[place, host]]
    for place in own:
        vlan = identifiers[place]
        lines += [
            f"ip link show $card.{vlan} >/dev/null 2>&1 ||",
            f"    ip link add link $card name $card.{vlan} type vlan id {vlan}",
            f"ip link set $card.{vlan} up",
            f"ip address replace {vlan_address(place, host, hosts)} dev $card.{vlan}",
        ]
    for other in range(hosts):
        if other == host:
            continue
        chosen = identifiers[vlans.vlan_between(host, other)]
        lines += [
            f"# {topology.host_name(other)}, by the VLAN that holds the path to it",
            f"ip route replace {host_ip(other)}/32 dev $card.{chosen} src {host_ip(host)}",
            f"ip neighbour replace {host_ip(other)} lladdr {macs[other]} dev $card.{chosen} nud permanent",
        ]
        lines += [
            f"ip neighbour replace {vlan_address(place, other, hosts).ip} lladdr {macs[other]} "
            f"dev $card.{identifiers[place]} nud permanent"
            for place in own
            if vlans.tagged_hosts[place, other]
        ]
    return "\n".join(lines) + "\n"
