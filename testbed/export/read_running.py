"""Read what runs: a Linux bridge as iproute2 6.1 shows it in JSON.

A switch's folder holds the output of four commands: `bridge -j vlan show` (vlan.json), `bridge -j fdb show` (fdb.json),
`bridge -j -d link show` (link.json) and `ip -j -d link show type bridge` (bridge.json).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from testbed.errors import Problem
from testbed.export.bridge import Bridge, BridgePort, Entry

COMMANDS = {
    "vlan.json": "bridge -j vlan show",
    "fdb.json": "bridge -j fdb show",
    "link.json": "bridge -j -d link show",
    "bridge.json": "ip -j -d link show type bridge",
}


def read_running(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the folder of one switch; see Dialect.read. Addresses that were learned and those of ports are left out."""
    problems: list[Problem] = []
    said: dict[str, list[dict[str, Any]]] = {}
    for file, command in COMMANDS.items():
        path = f"{name}/{file}"
        try:
            said[file] = json.loads(files[path])
        except KeyError:
            problems.append(Problem(path, f"is not there; it is the output of {command}"))
        except ValueError as error:
            problems.append(Problem(path, f"is not what {command} prints: {error}"))
    nothing = Bridge(name, vlan_filtering=False, stp=False, ports={}, fdb={})
    if problems:
        return nothing, problems
    bridges = [link for link in said["bridge.json"] if "ifname" in link]
    if len(bridges) != 1:
        sentence = f"shows {len(bridges)} bridges and one is expected"
        return nothing, [Problem(f"{name}/bridge.json", sentence)]
    device, about = bridges[0]["ifname"], bridges[0]["linkinfo"]["info_data"]
    links = {link["ifname"]: link for link in said["link.json"] if link.get("master") == device}
    vlans = {port["ifname"]: port["vlans"] for port in said["vlan.json"] if "ifname" in port}
    ports = {port: _port(link, vlans.get(port, [])) for port, link in links.items()}
    fdb: dict[Entry, str] = {
        (entry["vlan"], entry["mac"]): entry["ifname"]
        for entry in said["fdb.json"]
        if entry.get("state") == "static" and "vlan" in entry and entry["ifname"] in ports
    }
    return Bridge(name, bool(about["vlan_filtering"]), bool(about["stp_state"]), ports, fdb), []


def _port(link: Mapping[str, Any], vlans: list[dict[str, Any]]) -> BridgePort:
    members: set[int] = set()
    untagged: set[int] = set()
    pvid = None
    for vlan in vlans:
        span = range(vlan["vlan"], vlan.get("vlanEnd", vlan["vlan"]) + 1)
        flags = vlan.get("flags", [])
        members.update(span)
        if "Egress Untagged" in flags:
            untagged.update(span)
        if "PVID" in flags:
            pvid = vlan["vlan"]
    flags_of_port = {flag: bool(link[flag]) for flag in ("learning", "flood", "bcast_flood", "mcast_flood")}
    return BridgePort(pvid, frozenset(members), frozenset(untagged), **flags_of_port)
