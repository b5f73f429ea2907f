"""Words of Cisco IOS: kinds of interfaces, and which lines of an interface move no frame between VLANs or ports."""

from __future__ import annotations

import re

from testbed.devices.read_lines import LineError

# Ports of a switch by their whole names, each with the short form that IOS itself prints.
KINDS = {
    "Ethernet": "et", "FastEthernet": "fa", "GigabitEthernet": "gi", "TwoGigabitEthernet": "tw",
    "FiveGigabitEthernet": "fi", "TenGigabitEthernet": "te", "TwentyFiveGigE": "twe",
    "TwentyFiveGigabitEthernet": "twe", "FortyGigabitEthernet": "fo", "FiftyGigE": "fif", "HundredGigE": "hu",
    "HundredGigabitEthernet": "hu", "TwoHundredGigE": "twoh", "FourHundredGigE": "fou", "AppGigabitEthernet": "ap",
}  # fmt: skip
_PORT = re.compile(r"([A-Za-z]+)\s*(\d+(?:/\d+)*)")
_CHANNEL = re.compile(r"po(?:rt-channel)?\s*(\d+)", re.IGNORECASE)
# Interfaces that are no ports of the bridge.
_OTHERS = re.compile(
    r"(vlan|loopback|null|mgmt|tunnel|bdi|bvi|serial|cellular|dialer|async|group-async|bluetooth|nve|cpu|control-plane|"
    r"virtual-template|embedded-service-engine|service-engine|wlan|pos|atm|(fast|gigabit)ethernet\s*0$|"
    r"\S+\d+\.\d+$)",
    re.IGNORECASE,
)


def is_other(name: str) -> bool:
    """Whether an interface is known not to be a port of the bridge: VLAN interfaces, those for management, parts."""
    return bool(_OTHERS.match(name.strip()))


def port_of(text: str) -> str:
    """A port by its whole name: GigabitEthernet1/0/1 for Gi1/0/1 or gi1/0/1.

    Raises:
        LineError: it is no port of a switch.
    """
    channel = _CHANNEL.fullmatch(text.strip())
    if channel:
        return f"Port-channel{channel[1]}"
    found = _PORT.fullmatch(text.strip())
    if found is None:
        raise LineError(f'"{text}" is not the name of a port, such as GigabitEthernet1/0/1')
    word = found[1].lower()
    exact = [whole for whole, short in KINDS.items() if word in (short, whole.lower())]
    longer = [whole for whole in KINDS if len(word) >= 2 and whole.lower().startswith(word)]
    for whole in (*exact, *longer):
        return f"{whole}{found[2]}"
    raise LineError(f'"{text}" is not the name of a port, such as GigabitEthernet1/0/1')


_LONG_KINDS = {whole: short.capitalize() for whole, short in KINDS.items() if len(whole) > 9} | {"Port-channel": "Po"}
_LONG = re.compile(rf"\b({'|'.join(sorted(_LONG_KINDS, key=len, reverse=True))})(?=\d)")


def abbreviate_ports(text: str) -> str:
    """A text with names of ports as IOS itself abbreviates them: Gi1/0/1 for GigabitEthernet1/0/1."""
    return _LONG.sub(lambda found: _LONG_KINDS[found[1]], text)


# First words of lines of an interface that move no frame.
PASSED = frozenset({
    "arp", "bandwidth", "beacon", "bfd", "carrier-delay", "cdp", "dampening", "delay", "description",
    "device-tracking", "duplex", "energywise", "errdisable", "flowcontrol", "hold-queue", "hw-module", "ipv6", "isis",
    "keepalive", "l2protocol", "lacp", "link", "lldp", "load-interval", "location", "logging", "macro", "macsec",
    "mdix", "media-type", "mka", "mls", "mtu", "mvr", "nmsp", "ntp", "ospfv3", "pagp", "platform", "power",
    "priority-queue", "ptp", "qos", "queue-set", "rmon", "routing", "service", "service-policy", "snmp", "source",
    "srr-queue", "standby", "storm-control", "synchronous", "trust", "udld", "uplink", "vtp",
    "wrr-queue", "ip", "auto", "negotiation", "cts", "datalink", "et-analytics", "fec", "transceiver", "mac",
    "channel-protocol", "authentication", "dot1x", "mab", "access-session", "rep", "xconnect", "bridge-group", "vrf",
    "ethernet", "encapsulation", "subscriber", "template", "port-type", "private-vlan", "lan", "no-op", "stack-mac",
    "tx-queue", "rcv-queue", "inline", "ignore",
})  # fmt: skip
# Of these, beginnings of lines that do decide which frames pass.
FILTERS = (
    "ip access-group", "ipv6 traffic-filter", "mac access-group", "ip verify", "ipv6 source-guard", "authentication",
    "dot1x", "mab", "access-session", "rep ", "xconnect", "bridge-group", "ethernet", "encapsulation", "subscriber",
    "source template", "private-vlan", "template", "cts role-based", "l2protocol-tunnel point-to-point", "macsec",
    "uplink",
)  # fmt: skip
# Lines that make an interface a routed one.
ROUTED = ("ip address", "ipv6 address", "vrf forwarding", "ip vrf forwarding", "ip unnumbered")
# Beginnings of lines that are known, and whose effect is not.
SWITCHPORT_UNCLEAR = (
    "switchport mode dot1q-tunnel", "switchport mode private-vlan", "switchport access vlan dynamic",
    "switchport access vlan name", "switchport trunk encapsulation isl",
)  # fmt: skip
# Second words of `switchport` that move no frame.
SWITCHPORT_PASSED = frozenset({"port-security", "priority", "autostate", "host"})
