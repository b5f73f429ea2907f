"""Dragonfly: completely connected groups, which are themselves completely connected (Kim et al. 2008)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal

from annotated_types import Ge

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, count_pairs, make_topology, on_nested_circles


class LinkedGroups(ABC):
    """Groups every two of which have as many links as every two can have; global ports left over stay unused."""

    __slots__ = ()
    groups: int | None

    @property
    @abstractmethod
    def max_groups(self) -> int:
        """One more than the global links of a group."""

    @property
    def group_count(self) -> int:
        """Groups there are: the most there can be unless the scenario says less."""
        return self.max_groups if self.groups is None else self.groups

    @property
    def links_between_groups(self) -> int:
        """Links of every two groups."""
        return (self.max_groups - 1) // (self.group_count - 1)

    def check_groups(self, global_links: str) -> list[Problem]:
        """Name more groups than each can be linked to; `global_links`: those of a group, in words."""
        if self.group_count <= self.max_groups:
            return []
        sentence = f"should be {self.max_groups} or less, as a group has {global_links} global links, not {self.groups}"
        return [Problem("groups", sentence)]


@dataclass(frozen=True, slots=True)
class Dragonfly(LinkedGroups):
    """a routers a group, h global links a router, p hosts a router, g groups (Kim et al. 2008, section 3)."""

    routers: Annotated[int, Ge(1)]  # a
    global_links: Annotated[int, Ge(1)]  # h
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # p
    # g; without it the most there can be, a·h + 1. With fewer, every two groups have as many links as every two can
    # have, a·h // (g - 1), and global ports that are left over stay unused.
    groups: Annotated[int, Ge(2)] | None = None
    # which router of a group has its link to which other group (Camarero et al. 2014, section 3). Router r has the
    # global ports r·h to r·h + h - 1. `palm_tree`: port k of group i leads to group i - k - 1, round all groups.
    # `consecutive`: the ports lead to the other groups in their order.
    arrangement: Literal["palm_tree", "consecutive"] = "palm_tree"
    parallel_links: Annotated[int, Ge(1)] = 1  # physical links for each of these

    @property
    def max_groups(self) -> int:
        """a·h + 1."""
        return self.routers * self.global_links + 1

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        routers, groups = self.routers, self.group_count
        local = groups * (routers * (routers - 1) // 2)
        between = groups * (groups - 1) // 2 * self.links_between_groups
        return Extent(
            routers * groups, (local + between) * self.parallel_links, routers * groups * self.hosts_per_switch
        )


def check_dragonfly(spec: Dragonfly) -> list[Problem]:
    """Name more groups than each can be linked to."""
    return spec.check_groups(f"{spec.routers} × {spec.global_links}")


def dragonfly(spec: Dragonfly) -> Topology:
    """Build the groups, then the links between them; switch = a · group + router."""
    routers, groups = spec.routers, spec.group_count
    pairs = [
        (group * routers + a, group * routers + b)
        for group in range(groups)
        for a, b in combinations(range(routers), 2)
    ]
    for turn in range(spec.links_between_groups):
        for one, other in combinations(range(groups), 2):
            ends = []
            for group, far in ((one, other), (other, one)):
                palm = (group - far - 1) % groups
                port = palm if spec.arrangement == "palm_tree" else far - (far > group)
                ends.append(group * routers + (turn * (groups - 1) + port) // spec.global_links)
            pairs.append((ends[0], ends[1]))
    neighbours, count = count_pairs(pairs)
    return make_topology(
        "dragonfly",
        neighbours,
        [spec.hosts_per_switch] * (routers * groups),
        on_nested_circles((routers, groups)),
        parallel_links=[links * spec.parallel_links for links in count],
    )
