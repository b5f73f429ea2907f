"""VLANs that hosts choose among by tagging their frames, the method that switch tagging replaces.

Kudoh et al. 2004, and Koibuchi et al. 2011, section 2: each VLAN is a tree, each host has an 802.1Q interface in every
VLAN, and a pair of hosts uses the VLAN that holds its path. A host may then send by several trees, which a PVID does
not allow, so this carries every routing without layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.base.errors import InputError, did_you_mean
from testbed.base.model import Bools, HostTaggedPlan, Ints, Routes, Topology
from testbed.fabric.routing.paths import all_paths, end_index
from testbed.fabric.routing.relation import Conflict, as_source_trees, refuse_layers
from testbed.fabric.vlans.fixed import LAST_VLAN_ID, merge_trees, tree_links, vlan_identifiers

MAX_HOSTS = 1024  # a VLAN is chosen, and walked, for each of their pairs
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class HostTaggedOptions:
    """One VLAN a tree; hosts tag what they send with the VLAN of its destination."""

    # identifier of the first VLAN; the paper's figures start at 10
    first_vlan: Annotated[int, Ge(1), Le(LAST_VLAN_ID)] = 10
    # static MAC entries for the switches a path `used`, or for `all` switches of a VLAN's tree
    entries: Literal["used", "all"] = "used"
    # names of hosts that do not tag: their port has a PVID and is an untagged member, as in the assignment fixed
    untagged: tuple[str, ...] = ()


def assign_host_tagged(topology: Topology, routes: Routes, options: HostTaggedOptions) -> HostTaggedPlan:
    """Divide the paths of all pairs among trees, and give every tree a VLAN.

    Raises:
        InputError: the routes have layers, there are too many hosts, more VLANs are needed than identifiers are left,
            or a host that does not tag is none of the fabric's or needs more than one VLAN.
    """
    refuse_layers("host_tagged", routes)
    if topology.host_count > MAX_HOSTS:
        raise InputError.one(
            "assignment.kind",
            f'"host_tagged" chooses a VLAN for each pair of hosts, of {MAX_HOSTS:,} hosts at most, and there are '
            f"{topology.host_count:,}; make the fabric smaller, or use the assignment fixed or renamed",
        )
    links, pair_vlan = _divide_pairs(topology, routes)
    vlan_ids = vlan_identifiers(len(links), options.first_vlan)
    tags = _find_tagging(topology, options.untagged)
    pvid = _most_used(pair_vlan)
    _check_untagged(topology, pair_vlan, vlan_ids, tags)
    everywhere = np.ones((len(links), 1), dtype=bool)
    return HostTaggedPlan(
        vlan_ids, pvid, links, everywhere & ~tags, options.entries, pair_vlan=pair_vlan, tagged_hosts=everywhere & tags
    )


def _divide_pairs(topology: Topology, routes: Routes) -> tuple[Bools, Ints]:
    """(V, L) links of the trees, and (H, H) the tree of each pair of hosts."""
    hosts = topology.host_count
    if routes.trees is not None:
        ends = end_index(topology, routes)
        return routes.trees.links, _ascending(routes.trees.of_pair[ends[:, None], ends[None, :]])
    by_source = as_source_trees(topology, routes)
    if not isinstance(by_source, Conflict):
        links, of_tree = merge_trees(tree_links(topology, by_source))
        tree = of_tree[by_source.host_tree]
        return links, _ascending(np.broadcast_to(tree[:, None], (hosts, hosts)))
    if routes.relation == "destination_trees":
        links, of_tree = merge_trees(tree_links(topology, routes))
        tree = of_tree[routes.host_tree]
        return links, _ascending(np.broadcast_to(tree[None, :], (hosts, hosts)))
    return _fit_paths(topology, routes)


def _ascending(pairs: Ints) -> Ints:
    return np.ascontiguousarray(pairs, dtype=np.int32)


def _fit_paths(topology: Topology, routes: Routes) -> tuple[Bools, Ints]:
    """Put each path into the first tree in which it makes no loop, and complete what is no tree yet."""
    from testbed.fabric.kernels.pair_trees import fit_paths

    paths, ends = all_paths(topology, routes), end_index(topology, routes)
    links, of_pair = fit_paths(
        paths.start, paths.hop, topology.links, routes.ends, topology.switch_count, LAST_VLAN_ID + 1
    )
    of_hosts = of_pair.reshape(len(routes.ends), len(routes.ends))[ends[:, None], ends[None, :]]
    return links, _ascending(of_hosts)


def _find_tagging(topology: Topology, untagged: tuple[str, ...]) -> Bools:
    """(H,) True for hosts that tag."""
    names = [topology.host_name(host) for host in range(topology.host_count)]
    tags = np.ones(len(names), dtype=bool)
    for name in untagged:
        if name not in names:
            raise InputError.one(
                "assignment.untagged",
                f'names "{name}", which is no host of this fabric; they are {names[0]} to {names[-1]}.'
                f"{did_you_mean(name, names)}",
            )
        tags[names.index(name)] = False
    return tags


def _most_used(pair_vlan: Ints) -> Ints:
    """(H,) the VLAN that each host sends in to most others."""
    found = np.zeros(len(pair_vlan), dtype=np.int32)
    for host, row in enumerate(pair_vlan):
        others = np.delete(row, host)
        found[host] = np.bincount(others).argmax() if len(others) else 0
    return found


def _check_untagged(topology: Topology, pair_vlan: Ints, vlan_ids: Ints, tags: Bools) -> None:
    for host in np.flatnonzero(~tags).tolist():
        used = np.unique(np.delete(pair_vlan[host], host))
        if len(used) > 1:
            shown = ", ".join(str(vlan) for vlan in vlan_ids[used[:_SHOWN]].tolist())
            name = topology.host_name(host)
            raise InputError.one(
                "assignment.untagged",
                f"names {name}, whose paths are in {len(used)} VLANs ({shown}{', …' * (len(used) > _SHOWN)}), and a "
                f"port has one PVID; let {name} tag, or use a routing whose paths from a source are one tree, such as "
                "dor on a mesh",
            )
