"""Topology files of netlab (`topology.yml`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testbed.base.errors import InputError, Problem
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.fabric_files.listing import PASSED, READ, Link, Listing, Node
from testbed.scenario.read_blocks import read_value

_FORM = "should have nodes: or groups: and links:, such as {nodes: [s1, s2], links: [s1-s2]}"
HOST_DEVICES = ("linux",)
_NOT_READ = "may change which nodes and links there are, and cannot be read; write out what it makes"
_TOP_PASSED = (
    "message", "defaults", "vlans", "vrfs", "validate", "module", "provider", "addressing", "name", "version", "stp",
    "vlan", "bgp", "ospf", "isis", "lag", "gateway", "tools", "routing", "prefix", "files", "plugin",
)  # fmt: skip
_LINK_PASSED = (
    "prefix", "vlan", "vlan.trunk", "vlan.access", "vlan.native", "vlan.mode", "bandwidth", "mtu", "name", "role",
    "bridge", "type", "pool", "dhcp", "ospf", "bgp", "isis", "stp", "gateway", "linkindex", "mlag", "ra", "vrf", "tag",
)  # fmt: skip
CONSTRUCTS = {
    "nodes": READ,
    "node: device": READ,
    "node: role": READ,
    "node: other keys": PASSED,
    "groups: members, device, role, _auto_create": READ,
    "groups: other keys": PASSED,
    "links: a-b": READ,
    "link: interfaces": READ,
    "link: lag": READ,
    "link: lag.members": READ,
    "vlans: links": READ,
    "vrfs: links": READ,
    "a link of one node": PASSED,
    **{f"top: {key}": PASSED for key in _TOP_PASSED},
    "top: nodes": READ,
    "top: links": READ,
    "top: groups": READ,
    "top: components": _NOT_READ,
    "top: include": _NOT_READ,
    **{f"link: {key}": PASSED for key in _LINK_PASSED},
    "link: group": _NOT_READ,
    "link: count": _NOT_READ,
    "link: include": _NOT_READ,
}


def read_netlab(text: str) -> Listing:
    """Read nodes, groups and links; nodes of the device linux or the role host are hosts.

    A link of three or more nodes is a bridge in netlab, and a switch here. VLANs are passed over: the links that they
    list are read.

    Raises:
        InputError: the text is not YAML, or of another form.
    """
    raw = read_value(text, "")
    if not isinstance(raw, dict) or not {"nodes", "groups"} & {*raw} or not {"links", "vlans", "vrfs"} & {*raw}:
        raise InputError.one("", _FORM)
    found = Listing()
    found.sort_keys([key.partition(".")[0] for key in raw], "top", CONSTRUCTS, "")
    if "plugin" in raw:
        found.notes.append("plugin: may change the topology when netlab runs; nothing of it runs here")
    nodes, devices = _list_nodes(raw, found)
    for name, place in nodes.items():
        found.nodes.append(Node(place, name, devices.get(name) in (*HOST_DEVICES, "host")))
    for place, link in _list_links(raw, found):
        _read_link(link, place, set(nodes), found)
    return found


def _list_nodes(raw: dict[str, Any], found: Listing) -> tuple[dict[str, str], dict[str, object]]:
    """Node → place; node → its role or device, where these are known."""
    nodes: dict[str, str] = {}
    told: dict[str, object] = {}
    said = raw.get("nodes") or {}
    entries = said.items() if isinstance(said, dict) else enumerate(said if isinstance(said, list) else [said])
    for key, block in entries:
        place = f"nodes.{key}"
        name = (
            block if isinstance(block, str) and not isinstance(said, dict) else key if isinstance(said, dict) else None
        )
        if name is None and isinstance(block, dict):
            name = block.get("name")
        if not isinstance(name, str) or not isinstance(block, dict | str | None):
            found.problems.append(Problem(place, "should be a node's name, or a block with its name"))
            continue
        nodes[name] = place
        if isinstance(block, dict):
            told[name] = block.get("role", block.get("device"))
            found.passed.update(f"node: {inner}" for inner in block if inner not in ("device", "role", "name"))
    groups = raw.get("groups") or {}
    if not isinstance(groups, dict):
        found.problems.append(Problem("groups", "should be a block of groups"))
        return nodes, told
    every = bool(groups.get("_auto_create"))
    for group, block in groups.items():
        if not isinstance(block, dict):
            continue
        members = block.get("members") or []
        if not isinstance(members, list) or not all(isinstance(one, str) for one in members):
            found.problems.append(Problem(f"groups.{group}.members", "should be a list of nodes"))
            continue
        for name in members:
            if every or block.get("_auto_create"):
                nodes.setdefault(name, f"groups.{group}.members")
            if told.get(name) is None:
                told[name] = block.get("role", block.get("device"))
    defaults = raw.get("defaults")
    usual = defaults.get("device") if isinstance(defaults, dict) else raw.get("defaults.device")
    return nodes, {name: told.get(name) if told.get(name) is not None else usual for name in nodes}


def _list_links(raw: dict[str, Any], found: Listing) -> Iterator[tuple[str, Any]]:
    """Every link, with its place: the list of links, then those that VLANs and VRFs list."""
    lists = [("links", raw.get("links") or [])]
    for kind in ("vlans", "vrfs"):
        blocks = raw.get(kind) or {}
        if isinstance(blocks, dict):
            lists += [
                (f"{kind}.{name}.links", block.get("links") or [])
                for name, block in blocks.items()
                if isinstance(block, dict)
            ]
    for place, links in lists:
        if not isinstance(links, list):
            found.problems.append(Problem(place, "should be a list such as [s1-s2]"))
            continue
        yield from ((f"{place}.{number}", link) for number, link in enumerate(links))


def _read_link(link: Any, place: str, nodes: set[str], found: Listing) -> None:
    names: list[str] = []
    if isinstance(link, str):
        names = link.split("-")
    elif isinstance(link, list):
        names = [name for name in link if isinstance(name, str)]
    elif isinstance(link, dict):
        members = link.get("lag.members") or (link["lag"].get("members") if isinstance(link.get("lag"), dict) else None)
        rest = [key for key in link if key not in nodes]
        found.sort_keys([key for key in rest if key.partition(".")[0] not in _LINK_PASSED], "link", CONSTRUCTS, place)
        found.passed.update(f"link: {key}" for key in rest if key.partition(".")[0] in _LINK_PASSED)
        if members is not None:
            for number, member in enumerate(members if isinstance(members, list) else [members]):
                _read_link(member, f"{place}.lag.members.{number}", nodes, found)
            return
        names = [key for key in link if key in nodes]
        inner = link.get("interfaces")
        for end in inner if isinstance(inner, list) else []:
            name = end.get("node") if isinstance(end, dict) else end
            names += [name] if isinstance(name, str) else []
    if not names:
        found.problems.append(Problem(place, f"names no node; {_FORM}"))
    elif len(names) == 1:
        _require_node(names[0], place, nodes, found)
        found.passed["a link of one node"] += 1
    elif len(names) == 2:
        found.links.append(Link(place, (names[0], names[1])))
    else:
        bridge = f"bridge of {place}"
        found.nodes.append(Node(place, bridge, is_host=False))
        found.links.extend(Link(place, (bridge, name)) for name in names)
        found.notes.append(f"{place} joins {len(names)} nodes: a switch, {quote_name(bridge)}")


def _require_node(name: str, place: str, nodes: set[str], found: Listing) -> None:
    if name not in nodes:
        found.problems.append(Problem(place, f"there is no node {quote_name(name)}"))
