"""The routings there are, as one table that can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.base.model import Routes, Topology
from testbed.fabric.routing import (
    descending_layers,
    dimension_order,
    ecmp,
    fat_tree,
    given_paths,
    layers,
    lturn,
    north_last,
    nue,
    partially_balanced,
    segment_based,
    shortest_trees,
    spb,
    stp,
    tbtp,
    updown,
    valiant,
)


@dataclass(frozen=True, slots=True)
class RoutingKind:
    """One entry of the table."""

    options: type[Any]  # dataclass of its options
    route: Callable[[Topology, Any], Routes]  # makes the routes of a topology
    summary: str  # one line for `testbed list`
    any_topology: bool = False  # True for a routing that takes every connected fabric, broken or irregular
    assignment: str = "fixed"  # the assignment used where a scenario names none
    # False where on some fabrics its dependencies have a cycle: such plans are refused, with the channels of one
    deadlock_free: bool = True


ROUTINGS: dict[str, RoutingKind] = {
    "dor": RoutingKind(
        dimension_order.DorOptions, dimension_order.route_dor, "dimension order; mesh, torus, hypercube, ring"
    ),
    "partially_balanced": RoutingKind(
        partially_balanced.PartiallyBalancedOptions,
        partially_balanced.route_partially_balanced,
        "shortest paths in half as many trees; mesh, torus",
        assignment="host_tagged",
        deadlock_free=False,
    ),
    "fat_tree": RoutingKind(
        fat_tree.FatTreeOptions, fat_tree.route_fat_tree, "up and down, keyed by source, in-port or destination"
    ),
    "tree": RoutingKind(shortest_trees.TreeOptions, shortest_trees.route_tree, "the only path; networks without loops"),
    "direct": RoutingKind(
        shortest_trees.DirectOptions, shortest_trees.route_direct, "one hop; completely connected switches"
    ),
    "updown": RoutingKind(
        updown.UpDownOptions, updown.route_updown, "up*/down*, by turns; any topology", True, "renamed"
    ),
    "stp": RoutingKind(stp.StpOptions, stp.route_stp, "the links of one spanning tree; any topology", True),
    "tbtp": RoutingKind(
        tbtp.TbtpOptions, tbtp.route_tbtp, "tree-based turn prohibition; any topology", True, "renamed"
    ),
    "sr": RoutingKind(
        segment_based.SrOptions,
        segment_based.route_sr,
        "segment-based, with backup paths; any topology",
        True,
        "renamed",
    ),
    "lturn": RoutingKind(
        lturn.LturnOptions,
        lturn.route_lturn,
        "L-turn style (reconstruction, not verified); any topology",
        True,
        "renamed",
    ),
    "north_last": RoutingKind(
        north_last.NorthLastOptions, north_last.route_north_last, "dimension order round dead links of a mesh or torus"
    ),
    "dl": RoutingKind(
        descending_layers.DlOptions,
        descending_layers.route_dl,
        "descending layers, from 1 to 8 of them; any topology",
        True,
        "openflow",
    ),
    "lash": RoutingKind(
        layers.LashOptions,
        layers.route_lash,
        "minimal paths, each in the first layer that has room; any topology",
        True,
        "openflow",
    ),
    "dfsssp": RoutingKind(
        layers.DfssspOptions,
        layers.route_dfsssp,
        "minimal paths, a cycle moved to further layers; any topology",
        True,
        "openflow",
    ),
    "paths": RoutingKind(
        given_paths.ListedOptions,
        given_paths.route_listed,
        "paths computed elsewhere, listed or in a file",
        assignment="openflow",
    ),
    "ecmp": RoutingKind(
        ecmp.EcmpOptions,
        ecmp.route_ecmp,
        "equal-cost multipath: shortest paths by a hash of the flow; any topology",
        True,
        "model",
        deadlock_free=False,
    ),
    "spb": RoutingKind(
        spb.SpbOptions,
        spb.route_spb,
        "shortest-path bridging, 802.1aq with its 16 equal-cost algorithms; any topology",
        True,
        deadlock_free=False,
    ),
    "valiant": RoutingKind(
        valiant.ValiantOptions,
        valiant.route_valiant,
        "by way of a drawn switch, in two layers; any topology",
        True,
        "openflow",
    ),
    "nue": RoutingKind(
        nue.NueOptions, nue.route_nue, "on the dependency graph, in 1 to 8 layers; any topology", True, "openflow"
    ),
}
