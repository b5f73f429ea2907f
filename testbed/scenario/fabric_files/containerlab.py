"""Topology files of containerlab (`*.clab.yml`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testbed.base.errors import InputError, Problem
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.fabric_files.listing import PASSED, READ, Link, Listing, Node
from testbed.scenario.read_blocks import read_value

# Kinds of nodes that are hosts; every other one is a switch.
HOST_KINDS = ("linux", "ext-container", "generic_vm")
# Ends that are no nodes: https://containerlab.dev/manual/topo-def-file/ and /manual/network/
_OUTSIDE = ("host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch")
_LINK_TYPES = ("veth", "bridge", "ovs-bridge")  # others lead out of the lab
CONSTRUCTS = {
    "topology.nodes": READ,
    "node: kind": READ,
    "node: group": READ,
    "topology.defaults.kind, topology.groups: kind": READ,
    "node: other keys": PASSED,
    "link: endpoints": READ,
    "link: endpoint": PASSED,
    "link: type": READ,
    "link: mtu": PASSED,
    "link: labels": PASSED,
    "link: vars": PASSED,
    "link: host-interface": PASSED,
    "link: mode": PASSED,
    "link: remote": PASSED,
    "link: vni": PASSED,
    "link: dst-port": PASSED,
    "link: src-port": PASSED,
    "links of the types host, mgmt-net, macvlan, dummy, vxlan": PASSED,
    "topology.kinds, name, prefix, mgmt, settings": PASSED,
}
_FORM = 'should look like {topology: {nodes: {a: {kind: …}}, links: [{endpoints: ["a:eth1", "b:eth1"]}]}}'


def read_containerlab(text: str) -> Listing:
    """Read nodes and their links; nodes of the kinds linux, ext-container and generic_vm are hosts.

    Raises:
        InputError: the text is not YAML, or of another form.
    """
    raw = read_value(text, "")
    topology = raw.get("topology") if isinstance(raw, dict) else None
    nodes = topology.get("nodes") if isinstance(topology, dict) else None
    if not isinstance(topology, dict) or not isinstance(nodes, dict):
        raise InputError.one("", _FORM)
    found = Listing()
    for name, node in nodes.items():
        place = f"topology.nodes.{name}"
        if node is not None and not isinstance(node, dict):
            found.problems.append(Problem(place, "should be a block such as {kind: linux}"))
            continue
        found.nodes.append(Node(place, name, _kind(node or {}, topology) in HOST_KINDS))
        found.passed.update(f"node: {key}" for key in node or {} if key not in ("kind", "group"))
    links = topology.get("links") or []
    if not isinstance(links, list):
        found.problems.append(Problem("topology.links", "should be a list"))
        return found
    for number, link in enumerate(links):
        place = f"topology.links.{number}"
        if not isinstance(link, dict):
            found.problems.append(Problem(place, 'should be a block such as {endpoints: ["a:eth1", "b:eth1"]}'))
            continue
        found.sort_keys([*link], "link", CONSTRUCTS, place)
        _read_link(link, place, found)
    return found


def _kind(node: dict[str, Any], topology: dict[str, Any]) -> object:
    """The kind of a node: its own, its group's, or the default."""
    groups, defaults = topology.get("groups"), topology.get("defaults")
    group = groups.get(node.get("group")) if isinstance(groups, dict) and isinstance(node.get("group"), str) else None
    for block in (node, group, defaults):
        if isinstance(block, dict) and "kind" in block:
            return block["kind"]
    return None


def _read_link(link: dict[str, Any], place: str, found: Listing) -> None:
    kind = link.get("type", "veth")
    if kind not in _LINK_TYPES:
        found.passed[f"links of the type {kind}"] += 1
        return
    ends = link.get("endpoints")
    if not isinstance(ends, list) or len(ends) != 2:
        found.problems.append(Problem(f"{place}.endpoints", 'should be two ends such as ["a:eth1", "b:eth1"]'))
        return
    names = list(_end_names(ends, f"{place}.endpoints", found))
    if len(names) < 2:
        return
    if outside := [name for name in names if name in _OUTSIDE]:
        found.passed[f"links to {outside[0]}"] += 1
        return
    found.links.append(Link(place, (names[0], names[1])))


def _end_names(ends: list[object], place: str, found: Listing) -> Iterator[str]:
    for number, end in enumerate(ends):
        node = end.get("node") if isinstance(end, dict) else end.partition(":")[0] if isinstance(end, str) else None
        if isinstance(node, str) and (isinstance(end, dict) or ":" in str(end)):
            yield node
        else:
            shown = quote_name(end) if isinstance(end, str) else "this"
            found.problems.append(Problem(f"{place}.{number}", f"should be a node and its interface, not {shown}"))
