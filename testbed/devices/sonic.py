"""JSON for SONiC: part of config_db.json, and static MAC entries for swssconfig.

SONiC's model has VLAN_MEMBER with a tagging mode and no PVID: the PVID of a port is the last VLAN it joined untagged
(sonic-swss, orchagent/portsorch.cpp, addVlanMember), and its own tools refuse a second untagged VLAN (sonic-buildimage
issue 6271, sonic-utilities issue 803). So what fits are plans in which a port's untagged VLANs are its PVID. CONFIG_DB
has a table FDB that nothing reads; static entries go to APPL_DB by swssconfig (SONiC issue 249).
"""

from __future__ import annotations

import json

from testbed.base.errors import Problem, argument
from testbed.devices.dialect import AGEING, Dialect, Writing, one_untagged_vlan
from testbed.devices.read_tables import read_sonic
from testbed.devices.settings import SwitchSettings


def _refusals(writing: Writing) -> list[Problem]:
    found = one_untagged_vlan(writing, "SONiC has no PVID of its own, a port's one untagged VLAN is its PVID")
    if writing.flow_control != "keep":
        sentence = (
            f'"{writing.flow_control}" cannot be expressed: SONiC\'s configuration has priority flow control (PFC) '
            "and no 802.3x pauses; use keep"
        )
        found.append(Problem(argument("flow_control"), sentence))
    return found


def _write(writing: Writing) -> dict[str, str]:
    files = {}
    for switch in writing.switches:
        files[f"{switch.name}/config_db.json"] = _json(_config(writing, switch))
        files[f"{switch.name}/fdb.json"] = _json(_entries(writing, switch))
    return files


def _config(writing: Writing, switch: SwitchSettings) -> dict[str, dict[str, dict[str, str]]]:
    members: dict[str, dict[str, str]] = {}
    for port in switch.ports:
        name = writing.ports.name_port(port.number)
        members |= {f"Vlan{vlan}|{name}": {"tagging_mode": "tagged"} for vlan in port.tagged}
        members |= {f"Vlan{vlan}|{name}": {"tagging_mode": "untagged"} for vlan in port.untagged}
    return {
        "PORT": {
            writing.ports.name_port(port.number): {
                "admin_status": "up" if port.used else "down",
                "description": port.peer,
            }
            for port in switch.ports
        },
        "VLAN": {f"Vlan{vlan}": {"vlanid": str(vlan)} for vlan in switch.vlans},
        "VLAN_MEMBER": members,
    }


def _entries(writing: Writing, switch: SwitchSettings) -> list[dict[str, object]]:
    ageing: dict[str, object] = {"SWITCH_TABLE:switch": {"fdb_aging_time": str(AGEING)}, "OP": "SET"}
    entries: list[dict[str, object]] = [
        {
            f"FDB_TABLE:Vlan{vlan}:{writing.macs[host].replace(':', '-')}": {
                "port": writing.ports.name_port(port),
                "type": "static",
            },
            "OP": "SET",
        }
        for vlan, host, port in switch.table.rows()
    ]
    return [ageing, *entries]


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"


SONIC = Dialect(
    summary="JSON for SONiC; plans whose ports have one untagged VLAN at most",
    ports="Ethernet{0+4}",
    floods_by_port=False,
    refusals=_refusals,
    write=_write,
    read=read_sonic,
    learns=True,
    apply=(
        "on the switch: config load s1/config_db.json; docker cp s1/fdb.json swss:/; docker exec swss swssconfig "
        "/fdb.json"
    ),
    notes=(
        "SONiC runs no spanning tree protocol unless one was added; if it was, switch it off.",
        "config load adds to what is there: ports must not be routed, nor in another VLAN.",
        "Static MAC entries are lost when the switch restarts; load fdb.json again.",
    ),
)
