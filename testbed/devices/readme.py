"""README.md and cabling.csv of an export: what is plugged in where, and how switches are given their files."""

from __future__ import annotations

from testbed.base.model import IP_PREFIX, HostTaggedPlan, SwitchModel, host_ip
from testbed.base.untrusted_text import csv_text
from testbed.devices.dialect import DEFAULT_VLAN, Dialect, Writing
from testbed.devices.settings import SwitchSettings
from testbed.planning import Plan

CABLE_COLUMNS = ("switch", "port", "peer", "peer_port", "used")


def cabling_csv(writing: Writing) -> str:
    """Every cable once."""
    return csv_text(CABLE_COLUMNS, _cables(writing))


def _cables(writing: Writing) -> list[tuple[str, str, str, str, str]]:
    rows = []
    done = set()
    for switch in writing.switches:
        for port in switch.ports:
            name = writing.ports.name_port(port.number)
            far = writing.ports.name_port(port.peer_port) if port.peer_port else ""
            if (port.peer, far, switch.name, name) in done:
                continue
            done.add((switch.name, name, port.peer, far))
            rows.append((switch.name, name, port.peer, far, "yes" if port.used else "no"))
    return rows


def readme(plan: Plan, dialect: Dialect, dialect_name: str, writing: Writing, model: SwitchModel | None) -> str:
    """Text of README.md."""
    scenario = plan.scenario
    cables = _cables(writing)
    between = [row for row in cables if row[3]]
    lines = [
        f"# {scenario.name} for real switches",
        "",
        f"Plan {plan.digest} ({scenario.topology_kind}, {scenario.routing_kind}, {scenario.assignment_kind}) in the "
        f"dialect {dialect_name}: {dialect.summary}.",
        f"{len(writing.switches)} switches, {len(between)} links between them, {len(writing.hosts)} hosts"
        + (f", for a {model.name}." if model is not None else "."),
        "",
        f"To apply it: {dialect.apply}.",
        "",
        "- The spanning tree protocol is off on every switch. Plug the cables in when all switches have their files.",
        "- Every address is registered; a host must have the address that is listed here.",
        *(f"- {note}" for note in dialect.notes),
        *_about_hosts(plan),
        f"- Flow control (802.3x): {_FLOW[writing.flow_control]}",
        f"- {_management(writing, model)}",
        "",
        "## Hosts",
        "",
        "| host | MAC address | IP address in the lab | switch | port |",
        "| --- | --- | --- | --- | --- |",
        *_hosts(writing),
        "",
        "## Cables between switches",
        "",
        "| switch | port | switch | port | |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {one} | {port} | {other} | {far} | {'' if used == 'yes' else 'no path uses it'} |"
            for one, port, other, far, used in between
        ),
        "",
    ]
    return "\n".join(lines)


def _about_hosts(plan: Plan) -> list[str]:
    """What hosts that tag are to be given."""
    if not isinstance(plan.vlans, HostTaggedPlan):
        return []
    return [
        "- Hosts tag their frames: each runs its own script in hosts/, such as `h1.sh eth0`, which makes an "
        "802.1Q interface a VLAN and a route to each other host by the VLAN of their path. Their ports take no frame "
        "without a tag."
    ]


_FLOW = {
    "on": "on at every port. The plan's channel dependencies have no cycle, so pauses cannot deadlock.",
    "off": "off at every port.",
    "keep": "as the switches have it.",
}


def _hosts(writing: Writing) -> list[str]:
    place = {
        port.peer: (switch.name, writing.ports.name_port(port.number))
        for switch in writing.switches
        for port in switch.ports
        if not port.peer_port
    }
    return [
        f"| {name} | {writing.macs[host]} | {host_ip(host)}/{IP_PREFIX} | {place[name][0]} | {place[name][1]} |"
        for host, name in enumerate(writing.hosts)
    ]


def _management(writing: Writing, model: SwitchModel | None) -> str:
    """Where a switch can still be reached."""
    if model is None:
        return "Ports that are not named here are left as they are; manage the switches through one of them."
    full = [switch.name for switch in writing.switches if _find_highest_port(switch) >= model.ports]
    free = (
        f"Ports above those named here are left as they are, in VLAN {DEFAULT_VLAN}: manage the switches through "
        f"{writing.ports.name_port(model.ports)}"
    )
    if len(full) == len(writing.switches):
        return f"All {model.ports} ports are taken: manage the switches through their serial consoles."
    return f"{free}, but {', '.join(full)} through the serial console." if full else f"{free}."


def _find_highest_port(switch: SwitchSettings) -> int:
    return max((port.number for port in switch.ports), default=0)
