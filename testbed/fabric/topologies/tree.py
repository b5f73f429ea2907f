"""Networks without loops: tree, m-tree and flat (one switch); the papers' baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, in_rows, make_topology


@dataclass(frozen=True, slots=True)
class Tree:
    """Complete tree of `switches` switches, filled level by level, hosts on every switch."""

    switches: Annotated[int, Ge(1)]  # number of switches
    arity: Annotated[int, Ge(1)] = 2  # switches below each
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        links = (self.switches - 1) * self.parallel_links
        return Extent(self.switches, links, self.switches * self.hosts_per_switch)


@dataclass(frozen=True, slots=True)
class MTree:
    """What one VLAN of dimension-order routing uses of a mesh: an outer row as spine, all columns."""

    columns: Annotated[int, Ge(1)]  # of the mesh
    rows: Annotated[int, Ge(1)]  # of the mesh
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        count = self.columns * self.rows
        return Extent(count, (count - 1) * self.parallel_links, count * self.hosts_per_switch)


@dataclass(frozen=True, slots=True)
class Flat:
    """One switch with all hosts: the ideal the papers compare with."""

    hosts: Annotated[int, Ge(1)]  # on the one switch

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return Extent(1, 0, self.hosts)


def tree(spec: Tree) -> Topology:
    """Build the tree; switch i hangs on switch (i - 1) // arity."""
    pairs = [((switch - 1) // spec.arity, switch) for switch in range(1, spec.switches)]
    depth = [0] * spec.switches
    for parent, child in pairs:
        depth[child] = depth[parent] + 1
    deepest = max(depth)
    rows = [[switch for switch in range(spec.switches) if depth[switch] == level] for level in range(deepest, -1, -1)]
    return make_topology(
        "tree",
        pairs,
        [spec.hosts_per_switch] * spec.switches,
        in_rows(rows),
        parallel_links=spec.parallel_links,
    )


def m_tree(spec: MTree) -> Topology:
    """Build the spine in row 0 and a column down from each of its switches."""
    count = spec.columns * spec.rows
    pairs = [(x, x + 1) for x in range(spec.columns - 1)]
    pairs += [(switch - spec.columns, switch) for switch in range(spec.columns, count)]
    rows = [list(range(y * spec.columns, (y + 1) * spec.columns)) for y in reversed(range(spec.rows))]
    return make_topology(
        "m_tree", pairs, [spec.hosts_per_switch] * count, in_rows(rows), parallel_links=spec.parallel_links
    )


def flat(spec: Flat) -> Topology:
    """Build one switch."""
    return make_topology("flat", [], [spec.hosts], in_rows([[0]]))
