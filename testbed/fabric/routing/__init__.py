"""The routings there are, as one table that can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.base.model import Routes, Topology
from testbed.fabric.routing import (
    dl,
    dor,
    fat_tree,
    layers,
    listed,
    lturn,
    north_last,
    nue,
    simple,
    sr,
    stp,
    tbtp,
    updown,
)


@dataclass(frozen=True, slots=True)
class RoutingKind:
    """One entry of the table."""

    options: type[Any]  # dataclass of its options
    route: Callable[[Topology, Any], Routes]  # makes the routes of a topology
    summary: str  # one line for `testbed list`
    any_topology: bool = False  # True for a routing that takes every connected fabric, broken or irregular
    assignment: str = "fixed"  # the assignment used where a scenario names none


ROUTINGS: dict[str, RoutingKind] = {
    "dor": RoutingKind(dor.DorOptions, dor.route_dor, "dimension order; mesh, torus, hypercube, ring"),
    "fat_tree": RoutingKind(
        fat_tree.FatTreeOptions, fat_tree.route_fat_tree, "up and down, keyed by source, in-port or destination"
    ),
    "tree": RoutingKind(simple.TreeOptions, simple.route_tree, "the only path; networks without loops"),
    "direct": RoutingKind(simple.DirectOptions, simple.route_direct, "one hop; completely connected switches"),
    "updown": RoutingKind(
        updown.UpDownOptions, updown.route_updown, "up*/down*, by turns; any topology", True, "renamed"
    ),
    "stp": RoutingKind(stp.StpOptions, stp.route_stp, "the links of one spanning tree; any topology", True),
    "tbtp": RoutingKind(
        tbtp.TbtpOptions, tbtp.route_tbtp, "tree-based turn prohibition; any topology", True, "renamed"
    ),
    "sr": RoutingKind(sr.SrOptions, sr.route_sr, "segment-based, with backup paths; any topology", True, "renamed"),
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
        dl.DlOptions, dl.route_dl, "descending layers, from 1 to 8 of them; any topology", True, "openflow"
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
        listed.ListedOptions,
        listed.route_listed,
        "paths computed elsewhere, listed or in a file",
        assignment="openflow",
    ),
    "nue": RoutingKind(
        nue.NueOptions, nue.route_nue, "on the dependency graph, in 1 to 8 layers; any topology", True, "openflow"
    ),
}
