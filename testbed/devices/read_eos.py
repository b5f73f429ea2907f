"""Read what `show running-config` of Arista EOS prints.

By Arista's user manual, chapters "VLANs", "Port Channels and LACP" and "Spanning Tree Protocol".
"""

from __future__ import annotations

import re

from testbed.devices.command_rules import NOT_UNDERSTOOD, SPANNING_TREE, Commands, Rule, set_speed
from testbed.devices.read_lines import LineError
from testbed.devices.switchport_rules import (
    SWITCHPORT,
    activate_vlans,
    pass_over,
    register_address,
    remove_vlans,
    stop_stp_in,
    suspend_vlans,
)

_PORT = re.compile(
    r"(et(?:h|hernet)?|po(?:rt-channel)?)\s*((?:\d{1,4}/){0,2})(\d{1,4})(?:-((?:\d{1,4}/){0,2})(\d{1,4}))?",
    re.IGNORECASE | re.ASCII,
)


def eos_ports(text: str) -> list[str]:
    """Ports of `Ethernet1`, `Et3/1`, `Ethernet1-4,7`.

    Raises:
        LineError: it is no list of ports.
    """
    kind, found = "", []
    for part in text.split(","):
        said = part.strip()
        one = _PORT.fullmatch(f"{kind}{said}" if said[:1].isdigit() else said)
        if one is None:
            raise LineError(f'"{text}" is not the name of a port, such as Ethernet1')
        kind = "Port-Channel" if one[1].lower().startswith("po") else "Ethernet"
        slot, number, end = one[2], int(one[3]), int(one[5] or one[3])
        if (one[4] or slot) != slot or not number <= end < number + 1000:
            raise LineError(f'"{said}" is not a range of ports, such as Ethernet1-4')
        found += [f"{kind}{slot}{place}" for place in range(number, end + 1)]
    return found


def eos_port(text: str) -> str:
    """One port by its whole name; see Dialect.port_called."""
    return eos_ports(text)[0]


_RULES = (
    *SWITCHPORT,
    Rule("port", "switchport trunk group REST", NOT_UNDERSTOOD),
    *pass_over(
        "port", "description", "no description", "no speed", "mtu", "no mtu", "load-interval", "lacp", "lldp",
        "no lldp", "flowcontrol", "ip address", "ipv6 enable",
        "storm-control", "logging", "no logging", "snmp", "sflow", "poe", "error-correction", "ptp", "mlag",
        "priority-flow-control", "qos", "transceiver", "phone", "udld", "unsupported", "no ip", "link-debounce",
    ),
    Rule("vlan", "state suspend", suspend_vlans),
    Rule("vlan", "state active", activate_vlans),
    *pass_over("vlan", "name"),
    Rule("vlan", "trunk group REST", NOT_UNDERSTOOD),
    Rule("vlan", "private-vlan REST", NOT_UNDERSTOOD),
    Rule("switch", "no vlan VLANS", remove_vlans),
    Rule("switch", "no spanning-tree vlan-id VLANS", stop_stp_in),
    Rule("switch", "no spanning-tree vlan VLANS", stop_stp_in),
    *SPANNING_TREE,
    Rule("port", "speed REST", set_speed),
    Rule("switch", "mac address-table static MAC vlan N interface PORTS", register_address),
    Rule("switch", "mac address-table static REST", NOT_UNDERSTOOD),
    Rule("switch", "switchport default mode routed", NOT_UNDERSTOOD),
    Rule("switch", "mlag configuration", NOT_UNDERSTOOD),
    Rule("switch", "monitor session WORD destination REST", NOT_UNDERSTOOD),
)  # fmt: skip
EOS = Commands("eos", _RULES, eos_ports, r"(vlan|loopback|management|vxlan|tunnel|\S+\d\.\d)")
