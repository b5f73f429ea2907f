"""What a switch does about what its configuration does not say. Audits name each of these that they relied on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Default:
    """One setting that configurations leave out."""

    setting: str  # what is not said, in the words of the switch
    value: str  # what holds then
    source: str  # where its maker says so


_CATALYST = "Catalyst 2960-X and 9300 command references"
_DELL = "Dell PowerConnect user's guides, default VLAN behavior"
_EOS = "Arista EOS user manual, VLANs"
_NEXUS = "Nexus 3000 and 9000 Layer 2 switching configuration guides"
_PROCURVE = "ArubaOS-Switch 16.09 Advanced Traffic Management Guide"
_JUNOS = "Junos Ethernet Switching User Guide"
_KERNEL = "ip-link(8) and bridge(8)"
_MIKROTIK = "MikroTik documentation, Bridging and Switching"
_TREE = "priority 32768"
DEFAULTS: dict[str, Default] = {
    "ios-port": Default(
        "interface section", "VLAN 1, mode dynamic auto", f"{_CATALYST}, switchport mode and switchport access"
    ),
    "ios-mode": Default(
        "switchport mode",
        "dynamic auto: a trunk if the other end asks for one by DTP, otherwise an access port",
        f"{_CATALYST}, switchport mode",
    ),
    "ios-access-vlan": Default("switchport access vlan", "VLAN 1", f"{_CATALYST}, switchport access"),
    "ios-native-vlan": Default("switchport trunk native vlan", "VLAN 1, untagged", f"{_CATALYST}, switchport trunk"),
    "ios-allowed-vlans": Default(
        "switchport trunk allowed vlan", "every VLAN of the switch", f"{_CATALYST}, switchport trunk"
    ),
    "ios-vlans": Default(
        "vlan N, for any VLAN",
        "every VLAN is taken as made, since a VTP server or client keeps its VLANs in vlan.dat",
        f"{_CATALYST}, vtp mode",
    ),
    "powerconnect-port": Default("interface section", "an untagged member of VLAN 1 alone, mode access", _DELL),
    "powerconnect-mode": Default("switchport mode", "access", _DELL),
    "powerconnect-access-vlan": Default("switchport access vlan", "VLAN 1", _DELL),
    "powerconnect-vlans": Default("vlan database", "VLAN 1 alone", _DELL),
    "eos-port": Default("interface section", "an access port of VLAN 1", _EOS),
    "eos-mode": Default("switchport mode", "access", _EOS),
    "eos-access-vlan": Default("switchport access vlan", "VLAN 1", _EOS),
    "eos-native-vlan": Default("switchport trunk native vlan", "VLAN 1, untagged", _EOS),
    "eos-allowed-vlans": Default("switchport trunk allowed vlan", "every VLAN of the switch", _EOS),
    "eos-vlans": Default("vlan N, for any VLAN", "VLAN 1 alone", _EOS),
    "nxos-port": Default("interface section", "an access port of VLAN 1", _NEXUS),
    "nxos-mode": Default("switchport mode", "access", _NEXUS),
    "nxos-access-vlan": Default("switchport access vlan", "VLAN 1", _NEXUS),
    "nxos-native-vlan": Default("switchport trunk native vlan", "VLAN 1, untagged", _NEXUS),
    "nxos-allowed-vlans": Default("switchport trunk allowed vlan", "every VLAN of the switch", _NEXUS),
    "nxos-vlans": Default("vlan N, for any VLAN", "VLAN 1 alone", _NEXUS),
    "procurve-port": Default("the port in any VLAN", "an untagged member of VLAN 1 alone", _PROCURVE),
    "procurve-vlans": Default("vlan N, for any VLAN", "VLAN 1 alone", _PROCURVE),
    "junos-port": Default("the interface", "no port of any VLAN", _JUNOS),
    "junos-vlans": Default("vlans", "the VLAN default, 1, alone", _JUNOS),
    "ios-spanning-tree": Default("spanning-tree mode", f"PVST+ in every VLAN, {_TREE}, short path costs", _CATALYST),
    "nxos-spanning-tree": Default(
        "spanning-tree mode", f"Rapid PVST+ in every VLAN, {_TREE}, short path costs", _NEXUS
    ),
    "eos-spanning-tree": Default("spanning-tree mode", f"MSTP, all VLANs in instance 0, {_TREE}", _EOS),
    "powerconnect-spanning-tree": Default("spanning-tree mode", f"RSTP, {_TREE}, long path costs", _DELL),
    "procurve-spanning-tree": Default(
        "spanning-tree mode, where it is on", f"MSTP, all VLANs in instance 0, {_TREE}", _PROCURVE
    ),
    "mikrotik-spanning-tree": Default(
        "protocol-mode", f"RSTP, {_TREE}, path cost 10 before RouterOS 7.13, later the long table", _MIKROTIK
    ),
    "mikrotik-pvid": Default("pvid", "VLAN 1, untagged", _MIKROTIK),
    "sonic-admin-status": Default("admin_status", "down", "SONiC, sonic-swss, cfgmgr/portmgr.h"),
    "linux-default-pvid": Default("vlan_default_pvid", "VLAN 1, untagged, on every port that joins", _KERNEL),
    "linux-state": Default(
        "ip link set up or down", "up, as if it was so before the script ran", "none: the kernel's own default is down"
    ),
    "linux-floods": Default("flood, mcast_flood and bcast_flood", "on", _KERNEL),
    "ovs-vlan-mode": Default(
        "vlan_mode, which ovs-vsctl show leaves out",
        "access with a tag, trunk without; the spanning tree protocol off",
        "ovs-vsctl(8) and ovs-vswitchd.conf.db(5)",
    ),
    "networkd-default-pvid": Default(
        "DefaultPVID=", "VLAN 1, untagged, on every port that joins", "systemd.netdev(5), and ip-link(8)"
    ),
    "ifupdown2-pvid": Default("bridge-pvid", "VLAN 1, untagged", "ifupdown-addons-interfaces(5)"),
}
