"""Fixed VLAN assignment: Steps 1-6 of Koibuchi et al. 2011, section 3.2.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.base.errors import InputError
from testbed.base.model import Bools, Ints, LearningPlan, Routes, Topology, VlanPlan
from testbed.fabric.routing.relation import Conflict, as_source_trees, refusal, refuse_layers

LAST_VLAN_ID = 4094
# s: minimum of 802.1Q (8.8.3), maximum of Open vSwitch.
_MIN_AGEING, _MAX_AGEING = 10, 65535
_REMEDY = (
    'Use a routing whose next hop depends on the source, such as "dor" with planes "node" or "link", '
    'selection "tree" where the routing has it, or another assignment'
)


@dataclass(frozen=True, slots=True)
class FixedOptions:
    """One VLAN a distinct source tree."""

    # identifier of the first VLAN; the paper's figures start at 10
    first_vlan: Annotated[int, Ge(1), Le(LAST_VLAN_ID)] = 10
    # static MAC entries for the switches a path `used`, or for `all` switches of a VLAN's tree
    entries: Literal["used", "all"] = "used"
    # whether MAC addresses are `static` entries, or switches learn them in each VLAN (`learning`)
    registration: Literal["static", "learning"] = "static"
    # seconds of the lab after which a switch forgets an address that has sent nothing; 0 = never
    ageing: Annotated[int, Ge(0), Le(_MAX_AGEING)] = 0
    # how hosts teach switches that learn; `quick`: a frame of no protocol in each VLAN; `paper`: an interface a VLAN
    # with an address of its own network, and a UDP broadcast from each (section 3.3)
    procedure: Literal["quick", "paper"] = "quick"


def assign_fixed(topology: Topology, routes: Routes, options: FixedOptions) -> VlanPlan:
    """Give every distinct source tree a VLAN and every host the VLAN of its tree as PVID.

    Raises:
        InputError: the paths of a source are not one tree (names switch, in-port and destination), or more
            VLANs are needed than identifiers are left, or the routes have layers, or the ageing time has no meaning.
    """
    _check_learning(options)
    refuse_layers("fixed", routes)
    trees = as_source_trees(topology, routes)
    if isinstance(trees, Conflict):
        raise refusal("fixed", topology, trees, _REMEDY)
    vlan_links, vlan_of_tree = merge_trees(tree_links(topology, trees))
    count = len(vlan_links)
    vlan_ids = vlan_identifiers(count, options.first_vlan)
    pvid = vlan_of_tree[trees.host_tree].astype(np.int32)
    untagged_hosts = np.ones((count, topology.host_count), dtype=bool)  # Step 6
    if options.registration == "learning":
        return LearningPlan(vlan_ids, pvid, vlan_links, untagged_hosts, "all", ageing=options.ageing)
    return VlanPlan(vlan_ids, pvid, vlan_links, untagged_hosts, options.entries)  # vlan_links: Step 4


def vlan_identifiers(count: int, first: int) -> Ints:
    """(count,) identifiers of VLANs of the whole fabric, from `first` on.

    Raises:
        InputError: 802.1Q has not so many.
    """
    if count > LAST_VLAN_ID:
        raise InputError.one(
            "topology",
            f"needs {count} VLANs with this routing and 802.1Q has {LAST_VLAN_ID}; make it smaller, or for a torus set "
            "parallel_links: 2 and routing.ring: two_trees",
        )
    last = first + count - 1
    if last > LAST_VLAN_ID:
        raise InputError.one(
            "assignment.first_vlan",
            f"{count} VLANs from {first} on end at {last}; 802.1Q has identifiers up to "
            f"{LAST_VLAN_ID}, so start at {LAST_VLAN_ID - count + 1} or lower",
        )
    return np.arange(first, first + count, dtype=np.int32)


def _check_learning(options: FixedOptions) -> None:
    if options.procedure != "quick" and options.registration == "static":
        sentence = "static entries are not learned; leave it out, or use registration: learning"
        raise InputError.one("assignment.procedure", sentence)
    if options.ageing and options.registration == "static":
        sentence = "static entries do not age; leave it out, or use registration: learning"
        raise InputError.one("assignment.ageing", sentence)
    if 0 < options.ageing < _MIN_AGEING:
        sentence = f"should be 0 for never, or {_MIN_AGEING} s or more as in 802.1Q, not {options.ageing}"
        raise InputError.one("assignment.ageing", sentence)


def tree_links(topology: Topology, routes: Routes) -> Bools:
    """(T, L) links of each tree of routes (Step 1)."""
    links = np.zeros((len(routes.tree_channel), topology.link_count), dtype=bool)
    for tree, channel in enumerate(routes.tree_channel):
        links[tree, channel[channel >= 0] // 2] = True
    return links


def merge_trees(trees: Bools) -> tuple[Bools, Ints]:
    """Steps 2 and 3: (V, L) links of each VLAN, (T,) VLAN of each tree; a tree joins one that includes it."""
    packed = np.packbits(trees, axis=1)  # eight links a byte compare faster
    index_of: dict[bytes, int] = {}
    inverse = np.array([index_of.setdefault(row.tobytes(), len(index_of)) for row in packed], dtype=np.int32)
    first = np.unique(inverse, return_index=True)[1]
    distinct = trees[first]
    size = distinct.sum(axis=1)
    vlans: list[int] = []
    vlan_of_distinct = np.empty(len(distinct), dtype=np.int32)
    size_of_vlan = np.zeros(len(distinct), dtype=np.int64)
    for index in range(len(distinct)):
        # Only a larger tree can include a distinct one; where all span the fabric none is compared.
        for vlan in np.flatnonzero(size_of_vlan[: len(vlans)] > size[index]).tolist():
            if not (distinct[index] & ~distinct[vlans[vlan]]).any():
                vlan_of_distinct[index] = vlan
                break
        else:
            vlan_of_distinct[index] = len(vlans)
            size_of_vlan[len(vlans)] = size[index]
            vlans.append(index)
    return distinct[vlans], vlan_of_distinct[inverse]
