"""The routings there are, as one table that can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.model import Routes, Topology
from testbed.routing import dor, fat_tree, simple


@dataclass(frozen=True, slots=True)
class RoutingKind:
    """One entry of the table.

    Attributes:
        options: dataclass of its options.
        route: makes the routes of a topology.
        summary: one line for `testbed list`.
    """

    options: type[Any]
    route: Callable[[Topology, Any], Routes]
    summary: str


ROUTINGS: dict[str, RoutingKind] = {
    "dor": RoutingKind(dor.DorOptions, dor.route_dor, "dimension order; mesh, torus, hypercube, ring"),
    "fat_tree": RoutingKind(
        fat_tree.FatTreeOptions, fat_tree.route_fat_tree, "up and down, keyed by source; fat tree, Clos"
    ),
    "tree": RoutingKind(simple.TreeOptions, simple.route_tree, "the only path; networks without loops"),
    "direct": RoutingKind(simple.DirectOptions, simple.route_direct, "one hop; completely connected switches"),
}
