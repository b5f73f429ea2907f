"""Addresses of hosts in networks of VLANs, where a host has an interface in each."""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv4Network

from testbed.base.errors import LabError

# Of no one's own network (RFC 6598), so none that hosts have.
VLAN_NETWORKS = IPv4Network("100.64.0.0/10")


def vlan_address(place: int, number: int, hosts: int) -> IPv4Interface:
    """Address of a host on its interface of a VLAN, in a network that only this VLAN has.

    Args:
        place: of the VLAN, from 0.
        number: of the host, from 0.
        hosts: how many there are.

    Raises:
        LabError: the networks of all VLANs do not fit into the block of addresses.
    """
    length = 32 - (hosts + 1).bit_length()
    first = int(VLAN_NETWORKS.network_address) + (place << (32 - length))
    if first + (1 << (32 - length)) > int(VLAN_NETWORKS.broadcast_address) + 1:
        raise LabError(
            f"{VLAN_NETWORKS} has no room for networks of {hosts} hosts for so many VLANs; use fewer of either, or "
            "assignment.procedure: quick where switches learn"
        )
    return IPv4Interface((first + 1 + number, length))
