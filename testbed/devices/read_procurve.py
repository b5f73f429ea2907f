"""Read what `show running-config` of HP ProCurve and ArubaOS-Switch prints: VLANs with lists of their ports.

By the ArubaOS-Switch Advanced Traffic Management Guide, chapters on static VLANs, port trunks and spanning tree: each
port is an untagged member of VLAN 1 until it is moved, of one VLAN at most, and the spanning tree protocol is off.
"""

from __future__ import annotations

import re
from dataclasses import replace

from testbed.devices.command_rules import NOT_UNDERSTOOD, Commands, Rule, Section, set_field, set_speed
from testbed.devices.read_lines import LineError, PortLines, SwitchLines, UnclearLineError, vlans_of
from testbed.devices.stp_keywords import add_instance, number_of
from testbed.devices.stp_settings import ANY
from testbed.devices.switchport_rules import pass_over, stop_stp
from testbed.devices.vlan_set import VlanSet

_PORT = re.compile(r"(?:(\d+)/)?(trk|dyn|[a-z]?)(\d+)", re.IGNORECASE)


def procurve_ports(text: str) -> list[str]:
    """Ports of `1-10,A1-A4,Trk1,2/5`.

    Raises:
        LineError: it is no list of ports.
    """
    found = []
    for part in text.replace("ethernet", "").strip().split(","):
        first, _, last = part.strip().partition("-")
        one, end = _PORT.fullmatch(first), _PORT.fullmatch(last or first)
        if one is None or end is None or one[2].lower() != end[2].lower() or (end[1] or one[1]) != one[1]:
            raise LineError(f'"{part.strip()}" is not a port or range of ports, such as 1-10, A1 or Trk1')
        if not int(one[3]) <= int(end[3]) < int(one[3]) + 1000:
            raise LineError(f'"{part.strip()}" is not a range of ports, such as 1-10')
        letter = one[2].capitalize()
        before = f"{one[1]}/{letter}" if one[1] else letter
        found += [f"{before}{number}" for number in range(int(one[3]), int(end[3]) + 1)]
    return found


def procurve_port(text: str) -> str:
    """One port by its whole name; see Dialect.port_called."""
    return procurve_ports(text)[0]


def _ports(section: Section, names: list[str]) -> list[PortLines]:
    ports = [section.switch.port(name) for name in names]
    for port in ports:
        port.mode, port.said = "general", True
        port.lines.append(f"{section.switch.file}: VLAN {', '.join(map(str, section.vlans))}")
    return ports


def _put(port: PortLines, untagged: VlanSet, tagged: VlanSet) -> None:
    port.untagged, port.tagged = untagged, tagged
    port.tagged_only = not untagged
    port.pvid = min(untagged, default=1)


def _untag(section: Section, names: list[str]) -> None:
    for port in _ports(section, names):
        _put(port, section.vlans, port.tagged - section.vlans)


def _tag(section: Section, names: list[str]) -> None:
    for port in _ports(section, names):
        _put(port, port.untagged - section.vlans, port.tagged | section.vlans)


def _leave(section: Section, names: list[str]) -> None:
    for port in _ports(section, names):
        _put(port, port.untagged - section.vlans, port.tagged - section.vlans)


def _remove(section: Section, vlans: VlanSet) -> None:
    """VLANs are not there any more; ports that were untagged in them return to VLAN 1."""
    section.switch.vlans -= vlans
    for port in section.switch.ports.values():
        untagged = port.untagged - vlans
        _put(port, untagged or (VlanSet.from_ids({1}) if port.untagged else untagged), port.tagged - vlans)


def _join(section: Section, names: list[str], trunk: str, rest: object = ()) -> None:
    del rest
    (channel,) = procurve_ports(trunk)
    section.switch.port(channel)
    for name in names:
        section.switch.port(name)
        section.switch.channels[name] = channel


def _start_stp(section: Section) -> None:
    section.switch.stp = True


def _set_tree(section: Section, words: list[str]) -> None:
    """`spanning-tree …`, of the switch or of some ports: priorities in steps of 4,096 and of 16."""
    switch = section.switch
    match words:
        case ["priority", step]:
            switch.tree = replace(switch.tree, priorities={**switch.tree.priorities, ANY: 4096 * number_of(step, 15)})
        case ["instance", number, "vlan", *vlans] if number.isdigit():
            add_instance(switch, number_of(number, 16), vlans_of(",".join(vlans)))
        case ["instance", number, "priority", step] if number.isdigit():
            said = {**switch.tree.priorities, number_of(number, 16): 4096 * number_of(step, 15)}
            switch.tree = replace(switch.tree, priorities=said)
        case ["config-name", name]:
            switch.tree = replace(switch.tree, region=(name.strip('"'), switch.tree.region[1]))
        case ["config-revision", number]:
            switch.tree = replace(switch.tree, region=(switch.tree.region[0], number_of(number, 65535)))
        case ["mode", "mstp"] | ["force-version", "mstp-operation"]:
            switch.tree = replace(switch.tree, protocol="mstp")
        case ["force-version", ("rstp-operation" | "stp-compatible")]:
            switch.tree = replace(switch.tree, protocol="rstp", instances={})
        case ["mode", "rapid-pvst"]:
            switch.tree = replace(switch.tree, protocol="pvst")
        case [("hello-time" | "forward-delay" | "maximum-age" | "max-hops" | "trap" | "bpdu-protection-timeout"), *_]:
            pass
        case [ports, *said]:
            _set_tree_of_ports(section, ports, said)
        case _:
            raise UnclearLineError('"spanning-tree" with nothing is understood alone')


def _set_tree_of_ports(section: Section, ports: str, said: list[str]) -> None:
    switch = section.switch
    text = f"spanning-tree {ports} {' '.join(said)}"[:80]
    try:
        names = procurve_ports(ports.removeprefix("ethernet"))
    except LineError as error:
        raise UnclearLineError(f'"{text}" may decide what is blocked, and is not understood') from error
    for name in names:
        match said:
            case ["path-cost", cost]:
                switch.tree = switch.tree.with_port(name, cost=None if cost == "auto" else number_of(cost))
            case ["priority", step]:
                switch.tree = switch.tree.with_port(name, priority=16 * number_of(step, 15))
            case ["admin-edge-port"]:
                switch.tree = switch.tree.with_port(name, edge=True)
            case ["bpdu-filter"]:
                switch.tree = switch.tree.with_port(name, filters=True)
            case ["bpdu-protection"]:
                switch.tree = switch.tree.with_port(name, guards=True)
            case ["root-guard"]:
                switch.tree = switch.tree.with_port(name, guards_root=True)
            case ["auto-edge-port"] | ["point-to-point-mac", *_] | ["mcheck"] | ["hello-time", *_] | ["tcn-guard"] | [
                "loop-guard"
            ]:  # fmt: skip
                pass
            case _:
                raise UnclearLineError(f'"{text}" may decide what is blocked, and is not understood')


_RULES = (
    Rule("vlan", "untagged PORTS", _untag),
    Rule("vlan", "tagged PORTS", _tag),
    Rule("vlan", "no untagged PORTS", _leave),
    Rule("vlan", "no tagged PORTS", _leave),
    Rule("vlan", "forbid PORTS", NOT_UNDERSTOOD),
    Rule("vlan", "protocol REST", NOT_UNDERSTOOD),
    *pass_over("vlan", "name", "ip", "no ip", "voice", "qos", "exit", "jumbo", "ipv6", "management"),
    Rule("port", "speed-duplex REST", set_speed),
    Rule("port", "disable", set_field("shut", True)),
    Rule("port", "enable", set_field("shut", False)),
    *pass_over(
        "port", "name", "exit", "flow-control", "broadcast-limit", "lacp", "no lacp", "mdix-mode",
        "power-over-ethernet", "no power-over-ethernet", "unknown-vlans", "qos", "rate-limit", "poe-allocate-by",
        "bandwidth-min", "loop-protect",
    ),
    Rule("port", "untagged vlan N", lambda section, name, port, vlan: _put(
        port, VlanSet.from_ids({vlan}), port.tagged - VlanSet.from_ids({vlan}))),
    Rule("port", "tagged vlan VLANS", lambda section, name, port, vlans: _put(
        port, port.untagged - vlans, port.tagged | vlans)),
    Rule("switch", "trunk PORTS WORD", _join),
    Rule("switch", "trunk PORTS WORD REST", _join),
    Rule("switch", "spanning-tree", _start_stp),
    Rule("switch", "spanning-tree enable", _start_stp),
    Rule("switch", "no spanning-tree", stop_stp),
    Rule("switch", "spanning-tree REST", _set_tree),
    Rule("switch", "no spanning-tree REST", NOT_UNDERSTOOD),
    Rule("switch", "no vlan VLANS", _remove),
    Rule("switch", "static-mac REST", NOT_UNDERSTOOD),
    Rule("switch", "mirror-port REST", NOT_UNDERSTOOD),
    Rule("switch", "gvrp", NOT_UNDERSTOOD),
    Rule("switch", "aaa port-access REST", NOT_UNDERSTOOD),
    Rule("switch", "filter REST", NOT_UNDERSTOOD),
)  # fmt: skip


def _settle(switch: SwitchLines, text: str) -> None:
    """Each port is in general mode: in VLAN 1 alone until a VLAN has it."""
    del text
    for port in switch.ports.values():
        port.mode = "general"


PROCURVE = Commands("procurve", _RULES, procurve_ports, r"(loopback|oobm|vlan)", stp=False, comment=";", settle=_settle)
