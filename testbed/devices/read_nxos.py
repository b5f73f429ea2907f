"""Read what `show running-config` of Cisco NX-OS (Nexus) prints.

By the Nexus 9000 Layer 2 switching and interfaces configuration guides. Whether a port of which nothing is said is
switched or routed depends on the model, unless `system default switchport` says it, so that is told.
"""

from __future__ import annotations

import re

from testbed.base.errors import Problem
from testbed.devices.command_rules import NOT_UNDERSTOOD, SPANNING_TREE, Commands, Rule, Section, set_speed
from testbed.devices.read_eos import eos_ports
from testbed.devices.read_lines import LineError, PortLines, SwitchLines
from testbed.devices.switchport_rules import (
    SWITCHPORT,
    activate_vlans,
    pass_over,
    register_address,
    remove_vlans,
    stop_stp_in,
    suspend_vlans,
)


def nxos_ports(text: str) -> list[str]:
    """Ports of `Ethernet1/1`, `Eth1/1-4`, `port-channel10`.

    Raises:
        LineError: it is no list of ports.
    """
    return [name.replace("Port-Channel", "port-channel") for name in eos_ports(text)]


def nxos_port(text: str) -> str:
    """One port by its whole name; see Dialect.port_called."""
    return nxos_ports(text)[0]


def _join(section: Section, name: str, port: PortLines, number: str, rest: object = ()) -> None:
    del port, rest
    if not number.isdigit():
        raise LineError(f'"channel-group {number}" should have a number')
    section.switch.channels[name] = f"port-channel{number}"


_RULES = (
    Rule("port", "channel-group WORD", _join),
    Rule("port", "channel-group WORD REST", _join),
    Rule("port", "switchport mode fex-fabric", NOT_UNDERSTOOD),
    Rule("port", "switchport mode dot1q-tunnel", NOT_UNDERSTOOD),
    Rule("port", "switchport monitor", NOT_UNDERSTOOD),
    Rule("port", "vpc REST", NOT_UNDERSTOOD),
    *(rule for rule in SWITCHPORT if not rule.says.startswith("channel-group")),
    *pass_over(
        "port", "description", "no description", "no speed", "mtu", "no mtu", "duplex", "load-interval",
        "lacp", "lldp", "no lldp", "cdp", "no cdp", "flowcontrol", "ip address", "no ip", "storm-control",
        "logging", "snmp", "negotiate", "no negotiate", "udld", "fec",
        "priority-flow-control", "service-policy", "link", "vrf", "delay", "bandwidth",
    ),
    Rule("vlan", "state suspend", suspend_vlans),
    Rule("vlan", "shutdown", suspend_vlans),
    Rule("vlan", "state active", activate_vlans),
    Rule("vlan", "no shutdown", activate_vlans),
    *pass_over("vlan", "name"),
    Rule("vlan", "private-vlan REST", NOT_UNDERSTOOD),
    Rule("switch", "no vlan VLANS", remove_vlans),
    Rule("switch", "no spanning-tree vlan VLANS", stop_stp_in),
    *SPANNING_TREE,
    Rule("port", "speed REST", set_speed),
    Rule("switch", "mac address-table static MAC vlan N interface PORTS", register_address),
    Rule("switch", "mac address-table static REST", NOT_UNDERSTOOD),
    Rule("switch", "vpc domain REST", NOT_UNDERSTOOD),
    Rule("switch", "monitor session REST", NOT_UNDERSTOOD),
)  # fmt: skip


_DEFAULT = re.compile(r"^(no )?system default switchport[ \t]*$", re.MULTILINE)
_SHUT = re.compile(r"^system default switchport shutdown[ \t]*$", re.MULTILINE)


def _settle(switch: SwitchLines, text: str) -> None:
    """Ports that say nothing of it are switched or routed, up or down, as the others show.

    NX-OS writes a line only where a port differs from what is usual: `switchport` alone where ports are routed
    otherwise, `no switchport` where they are switched.
    """
    said = _DEFAULT.findall(text)
    words = {line.rpartition(": ")[2] for port in switch.ports.values() for line in port.lines}
    if said:
        routed: bool | None = bool(said[-1])
    elif "switchport" in words:
        routed = True
    else:
        routed = False if any("switchport" in one for one in words) else None
    silent = [name for name, port in switch.ports.items() if not port.said and not port.shut]
    silent = [name for name in silent if name.startswith("Ethernet") and name not in switch.channels]
    for name in silent if routed else ():
        switch.ports[name].outside = "is a routed port"
    if silent and routed is None:
        sentence = (
            f"{', '.join(silent[:6])} say neither switchport nor no switchport, and which holds depends on the model; "
            'save it with "show running-config all", or add the line "system default switchport"'
        )
        switch.unclear.append(Problem(switch.file, sentence))
    if _SHUT.search(text):
        for port in switch.ports.values():
            port.shut = port.shut or not any(line.endswith(": no shutdown") for line in port.lines)


NXOS = Commands("nxos", _RULES, nxos_ports, r"(vlan|loopback|mgmt|nve|tunnel|bdi|\S+\d\.\d)", settle=_settle)
