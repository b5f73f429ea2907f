"""Read what running Linux bridges show: their ports, VLANs, states and entries as iproute2 prints them in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.base.errors import Problem
from testbed.base.limits import parse_json
from testbed.devices.bridge import IN_NO_VLAN, Bridge, BridgePort, Entry, Reading
from testbed.devices.stp_settings import ANY, StpSettings
from testbed.devices.vlan_set import VlanSet
from testbed.fabric.vlans.fixed import LAST_VLAN_ID

# Files of a switch's folder, each the output of a command of iproute2.
COMMANDS = {
    "vlan.json": "bridge -j vlan show",
    "fdb.json": "bridge -j fdb show",
    "link.json": "bridge -j -d link show",
    "bridge.json": "ip -j -d link show type bridge",
}
_FLAGS = ("learning", "flood", "bcast_flood", "mcast_flood")
# Flags of a port that change which frames pass in a way that is not modelled.
_NOT_UNDERSTOOD = ("hairpin", "isolated", "locked", "vlan_tunnel", "proxy_arp", "proxy_arp_wifi", "neigh_suppress")
_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)


def read_running(name: str, files: Mapping[str, str]) -> tuple[Bridge, list[Problem]]:
    """Read the folder of one switch; see Dialect.read. Addresses that were learned are left out."""
    problems: list[Problem] = []
    said: dict[str, Any] = {}
    for file, command in COMMANDS.items():
        path = f"{name}/{file}"
        try:
            said[file] = parse_json(files[path])
            if not isinstance(said[file], list) and file != "vlan.json":
                raise ValueError("it is no list")
        except KeyError:
            problems.append(Problem(path, f"is not there; it is the output of {command}"))
        except (ValueError, RecursionError) as error:
            problems.append(Problem(path, f"is not what {command} prints: {error}"))
    nothing = Bridge(name, vlan_filtering=False, stp=False, ports={}, fdb={})
    if problems:
        return nothing, problems
    file = "bridge.json"
    try:
        bridges = [link for link in said["bridge.json"] if "ifname" in link]
        if len(bridges) != 1:
            sentence = f"shows {len(bridges)} bridges and one is expected"
            return nothing, [Problem(f"{name}/bridge.json", sentence)]
        device, about = bridges[0]["ifname"], bridges[0]["linkinfo"]["info_data"]
        filtering, stp = bool(about["vlan_filtering"]), bool(about["stp_state"])
        protocol = str(about.get("vlan_protocol", "802.1Q"))
        file = "link.json"
        links = {str(link["ifname"]): link for link in said["link.json"] if link.get("master") == device}
        file = "vlan.json"
        vlans = dict(_vlans(said["vlan.json"]))
        ports = {port: _port(links[port], vlans.get(port, [])) for port in links}
        file = "fdb.json"
        fdb: dict[Entry, str] = {
            (int(entry["vlan"]), str(entry["mac"]).lower()): str(entry["ifname"])
            for entry in said["fdb.json"]
            if entry.get("state") == "static" and "vlan" in entry and entry["ifname"] in ports
        }
        addresses = {
            str(entry["mac"]).lower(): str(entry["ifname"])
            for entry in said["fdb.json"]
            if entry.get("state") == "permanent" and entry["ifname"] in ports and not int(entry["mac"][:2], 16) & 1
        }
        addresses |= {str(link["address"]).lower(): port for port, link in links.items() if "address" in link}
    except _DAMAGE as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        return nothing, [Problem(f"{name}/{file}", f"is not what {COMMANDS[file]} prints: {what}")]
    down = dict(_find_down_ports(links, ports))
    unclear = list(_find_unclear_flags(f"{name}/link.json", links))
    if protocol.lower() != "802.1q":
        unclear.append(Problem(f"{name}/bridge.json", f"vlan_protocol {protocol} is not understood, only 802.1Q"))
    reading = Reading(
        down=down,
        unclear=tuple(unclear),
        origins={port: (f"{name}/link.json and vlan.json: {_describe_flags(links[port])}",) for port in links},
        defaults={port: ("linux-floods",) for port, link in links.items() if any(flag not in link for flag in _FLAGS)},
        addresses=addresses,
        shows_states=True,
        spanning_tree=_read_tree(about, links) if stp else None,
        blocked={port: ports[port] for port in links if down.get(port) == _state_sentence("blocking")},
    )
    ports = {port: settings for port, settings in ports.items() if port not in down or settings.members == set()}
    return Bridge(name, filtering, stp, ports, fdb, reading=reading), []


def _vlans(said: Any) -> Iterator[tuple[str, Any]]:
    """Port → its VLANs: a list of ports, or, as older iproute2 prints it, an object by port."""
    if isinstance(said, dict):
        yield from said.items()
        return
    for port in said:
        if "ifname" in port:
            yield port["ifname"], port["vlans"]


def _port(link: Mapping[str, Any], vlans: list[dict[str, Any]]) -> BridgePort:
    members, untagged = VlanSet(), VlanSet()
    pvid = None
    for vlan in vlans:
        first, last = int(vlan["vlan"]), int(vlan.get("vlanEnd", vlan["vlan"]))
        if not 1 <= first <= last <= LAST_VLAN_ID:
            raise ValueError(f"{first}-{last} is not a range of VLANs from 1 to {LAST_VLAN_ID}")
        span = VlanSet.span(first, last)
        flags = vlan.get("flags", [])
        members |= span
        if "Egress Untagged" in flags:
            untagged |= span
        if "PVID" in flags:
            pvid = first
    return BridgePort(pvid, members, untagged, **{flag: bool(link.get(flag, True)) for flag in _FLAGS})


def _find_down_ports(
    links: Mapping[str, Mapping[str, Any]], ports: Mapping[str, BridgePort]
) -> Iterator[tuple[str, str]]:
    """Ports that carry nothing, and why: they are down, or the spanning tree protocol keeps them so."""
    for port, link in links.items():
        flags, state = link.get("flags"), str(link.get("state", "forwarding")).lower()
        off = isinstance(flags, list) and ("UP" not in flags or "NO-CARRIER" in flags)
        if off or link.get("operstate") in ("DOWN", "LOWERLAYERDOWN", "NOTPRESENT"):
            yield port, "is down"
        elif state != "forwarding":
            yield port, _state_sentence(state)
        elif not ports[port].members:
            yield port, IN_NO_VLAN


def _state_sentence(state: str) -> str:
    return f"is {state}, by its state in link.json"


def _read_tree(bridge: Mapping[str, Any], links: Mapping[str, Mapping[str, Any]]) -> StpSettings | None:
    """What decides the tree, where all of it is shown; None where something is missing."""
    identity = re.fullmatch(
        r"[0-9a-f]{1,4}\.((?:[0-9a-f]{1,2}:){5}[0-9a-f]{1,2})", str(bridge.get("bridge_id", "")).lower()
    )
    shown = all({"cost", "priority"} <= link.keys() for link in links.values())
    if identity is None or not shown or "priority" not in bridge:
        return None
    mac = ":".join(part.zfill(2) for part in identity[1].split(":"))
    found = StpSettings(mac=mac, priorities={ANY: int(bridge["priority"])}, long_costs=False)
    for number, (port, link) in enumerate(links.items()):
        order = int(str(link.get("no", number)), 0)
        found = found.with_port(port, cost=int(link["cost"]), priority=int(link["priority"]), number=order)
    return found


def _find_unclear_flags(file: str, links: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    for port, link in links.items():
        for flag in _NOT_UNDERSTOOD:
            if link.get(flag):
                yield Problem(file, f"{port}: {flag} decides which frames the port carries, and is not understood")
        if link.get("backup_port"):
            yield Problem(file, f"{port}: backup_port sends frames another way, and is not understood")


def _describe_flags(link: Mapping[str, Any]) -> str:
    flags = ", ".join(f"{flag} {'on' if link[flag] else 'off'}" for flag in _FLAGS if flag in link)
    return f"state {link.get('state', 'not said')}, {flags}"
