"""The topologies there are, as one table that can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies import (
    any_graph,
    dragonfly,
    dragonfly_plus,
    fat_tree,
    fat_tree_pods,
    grid,
    hyperx,
    irregular,
    leaf_spine,
    polarfly,
    slim_fly,
    tree,
    twisted_torus,
    xpander,
)
from testbed.fabric.topologies.build_topology import Extent

MAX_EXTENT = Extent(switches=32_768, links=1_048_576, hosts=131_072)


def no_problem(spec: Any) -> list[Problem]:
    """Find nothing: the parameters are right together whenever each is right alone."""
    del spec
    return []


@dataclass(frozen=True, slots=True)
class TopologyKind:
    """One entry of the table."""

    spec: type[Any]  # dataclass of its parameters, with a method extent()
    build: Callable[[Any], Topology]  # makes the topology from parameters that are not too large and pass the check
    routing: str  # the routing used where a scenario names none
    summary: str  # one line for `testbed list`
    # finds what is wrong with parameters that are right one by one; places are their names
    check: Callable[[Any], list[Problem]] = no_problem


TOPOLOGIES: dict[str, TopologyKind] = {
    "mesh": TopologyKind(grid.Mesh, grid.mesh, "dor", "grid of any dimensions and sizes"),
    "torus": TopologyKind(grid.Torus, grid.torus, "dor", "grid with wrap links"),
    "hypercube": TopologyKind(grid.Hypercube, grid.hypercube, "dor", "two switches in each dimension"),
    "ring": TopologyKind(grid.Ring, grid.ring, "dor", "torus of one dimension"),
    "fat_tree": TopologyKind(fat_tree.FatTree, fat_tree.fat_tree, "fat_tree", "fat tree (up, down, rounds)"),
    "fat_tree_14": TopologyKind(fat_tree.FatTree14, fat_tree.fat_tree_14, "fat_tree", "the papers' 14 switches"),
    "myrinet_clos": TopologyKind(
        fat_tree.MyrinetClos, fat_tree.myrinet_clos, "fat_tree", "every leaf linked to every root"
    ),
    "tree": TopologyKind(tree.Tree, tree.tree, "tree", "complete tree, hosts on every switch"),
    "m_tree": TopologyKind(tree.MTree, tree.m_tree, "tree", "one VLAN of a mesh: spine row and columns"),
    "complete": TopologyKind(hyperx.Complete, hyperx.complete, "direct", "a link between every two switches"),
    "flat": TopologyKind(tree.Flat, tree.flat, "tree", "one switch, the papers' ideal"),
    "random": TopologyKind(
        irregular.RandomRegular,
        irregular.random_regular,
        "updown",
        "irregular: links drawn at random, the same number at every switch",
        irregular.check_random,
    ),
    "jellyfish": TopologyKind(
        irregular.Jellyfish,
        irregular.jellyfish,
        "updown",
        "random, given the ports of a switch",
        irregular.check_jellyfish,
    ),
    "dragonfly": TopologyKind(
        dragonfly.Dragonfly,
        dragonfly.dragonfly,
        "updown",
        "completely connected groups, completely connected",
        dragonfly.check_dragonfly,
    ),
    "hyperx": TopologyKind(hyperx.HyperX, hyperx.hyperx, "updown", "grid with completely connected rows"),
    "slim_fly": TopologyKind(
        slim_fly.SlimFly, slim_fly.slim_fly, "updown", "McKay-Miller-Širáň graph of diameter 2", slim_fly.check_slim_fly
    ),
    "leaf_spine": TopologyKind(
        leaf_spine.LeafSpine,
        leaf_spine.leaf_spine,
        "fat_tree",
        "every leaf linked to every spine, with its oversubscription",
        leaf_spine.check_leaf_spine,
    ),
    "rail_optimised": TopologyKind(
        leaf_spine.RailOptimised, leaf_spine.rail_optimised, "fat_tree", "the GPUs of a server on as many leaves"
    ),
    "fat_tree_pods": TopologyKind(
        fat_tree_pods.FatTreePods,
        fat_tree_pods.fat_tree_pods,
        "fat_tree",
        "three levels of switches of k ports, by pods",
        fat_tree_pods.check_fat_tree_pods,
    ),
    "dragonfly_plus": TopologyKind(
        dragonfly_plus.DragonflyPlus,
        dragonfly_plus.dragonfly_plus,
        "updown",
        "groups of leaves and spines, completely connected",
        dragonfly_plus.check_dragonfly_plus,
    ),
    "xpander": TopologyKind(xpander.Xpander, xpander.xpander, "updown", "lift of a complete graph, drawn at random"),
    "polarfly": TopologyKind(
        polarfly.PolarFly, polarfly.polarfly, "updown", "polarity graph of diameter 2", polarfly.check_polarfly
    ),
    "twisted_torus": TopologyKind(
        twisted_torus.TwistedTorus,
        twisted_torus.twisted_torus,
        "updown",
        "torus whose wrap links are shifted",
        twisted_torus.check_twisted_torus,
    ),
    "graph": TopologyKind(
        any_graph.Graph, any_graph.graph, "updown", "any switches and links, by name", any_graph.check_graph
    ),
}


def size_problem(spec: Any) -> str | None:
    """Say by how much a topology is too large to be planned, or None; looks at its parameters only."""
    extent: Extent = spec.extent()
    too_large = [
        f"{_count(getattr(extent, field.name))} {field.name} (at most {_count(getattr(MAX_EXTENT, field.name))})"
        for field in fields(Extent)
        if getattr(extent, field.name) > getattr(MAX_EXTENT, field.name)
    ]
    return f"is too large: {', '.join(too_large)}" if too_large else None


def _count(number: int) -> str:
    digits = 12
    return f"{number:,}" if number < 10**digits else f"more than {10**digits:,}"
