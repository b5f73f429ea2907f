"""Leaf and spine, with its oversubscription, and rail-optimised: the GPUs of a server on as many leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, in_rows, make_topology


@dataclass(frozen=True, slots=True)
class LeafSpine:
    """Every leaf linked to every spine; hosts on leaves alone."""

    leaves: Annotated[int, Ge(1)] = 4  # switches with hosts
    spines: Annotated[int, Ge(1)] = 2  # switches that join them
    # hosts on each leaf; without it as many as `oversubscription` says, and without that as many as links up
    hosts_per_leaf: Annotated[int, Ge(0)] | None = None
    oversubscription: Annotated[float, Gt(0)] | None = None  # hosts by links up of a leaf, such as 3 for 3:1
    parallel_links: Annotated[int, Ge(1)] = 1  # links between a leaf and a spine

    @property
    def leaf_hosts(self) -> int:
        """Hosts on a leaf."""
        if self.hosts_per_leaf is not None:
            return self.hosts_per_leaf
        return round((self.oversubscription or 1) * self.spines * self.parallel_links)

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        links = self.leaves * self.spines * self.parallel_links
        return Extent(self.leaves + self.spines, links, self.leaves * self.leaf_hosts)


@dataclass(frozen=True, slots=True)
class RailOptimised:
    """Units of as many leaves as a server has GPUs: leaf r of a unit, a rail, has GPU r of each of the unit's servers.

    A GPU with its port is a host. Hosts are numbered leaf by leaf: GPU r of server n in unit u is number
    (u · rails + r) · servers + n, counted from 0. What joins the GPUs inside of a server is not modelled.
    """

    rails: Annotated[int, Ge(1)] = 4  # GPUs of a server, and leaves of a unit
    servers: Annotated[int, Ge(1)] = 2  # of a unit
    units: Annotated[int, Ge(1)] = 2  # scalable units
    spines: Annotated[int, Ge(1)] = 2  # each linked to every leaf
    parallel_links: Annotated[int, Ge(1)] = 1  # links between a leaf and a spine

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        leaves = self.units * self.rails
        return Extent(leaves + self.spines, leaves * self.spines * self.parallel_links, leaves * self.servers)


def check_leaf_spine(spec: LeafSpine) -> list[Problem]:
    """Name an oversubscription that is said twice, or that leaves part of a host."""
    if spec.oversubscription is None:
        return []
    if spec.hosts_per_leaf is not None:
        return [Problem("oversubscription", "says what hosts_per_leaf says too; remove one of them")]
    up = spec.spines * spec.parallel_links
    if spec.oversubscription * up != round(spec.oversubscription * up):
        least = f"{round(spec.oversubscription * up)} / {up}"
        sentence = f"should give whole hosts with {up} links up; {least} is the nearest, or say hosts_per_leaf"
        return [Problem("oversubscription", sentence)]
    return []


def leaf_spine(spec: LeafSpine) -> Topology:
    """Build leaves, then spines."""
    return _join_leaves("leaf_spine", spec.leaves, spec.spines, spec.leaf_hosts, spec.parallel_links)


def rail_optimised(spec: RailOptimised) -> Topology:
    """Build leaves, unit by unit and rail by rail, then spines."""
    return _join_leaves("rail_optimised", spec.units * spec.rails, spec.spines, spec.servers, spec.parallel_links)


def _join_leaves(kind: str, leaves: int, spines: int, hosts: int, parallel_links: int) -> Topology:
    above = range(leaves, leaves + spines)
    pairs = [(leaf, spine) for leaf in range(leaves) for spine in above]
    hosts_on = [hosts] * leaves + [0] * spines
    levels = [0] * leaves + [1] * spines
    rows = in_rows([list(range(leaves)), list(above)])
    return make_topology(kind, pairs, hosts_on, rows, parallel_links=parallel_links, levels=levels)
