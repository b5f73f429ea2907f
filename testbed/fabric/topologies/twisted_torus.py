"""Torus with a twist: wrap links come back shifted along the longest dimension (Cámara et al. 2010)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from annotated_types import Ge, MinLen

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.fabric.topologies.build_topology import Extent, make_topology, on_nested_circles


@dataclass(frozen=True, slots=True)
class TwistedTorus:
    """A torus whose wrap links of all dimensions but the longest lead `twist` switches further along that one.

    With sizes k, k, 2k and twist k it is the k×k×2k torus of TPU v4, of which the longest ways are shorter.
    """

    # extents, first dimension first, each 3 or more
    sizes: Annotated[tuple[Annotated[int, Ge(3)], ...], MinLen(2)] = field(
        metadata={"wanted": "a list of sizes such as [4, 4, 8]"}
    )
    twist: Annotated[int, Ge(0)] | None = None  # half of the longest dimension where nothing is said
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        switches = math.prod(self.sizes)
        return Extent(switches, switches * len(self.sizes) * self.parallel_links, switches * self.hosts_per_switch)


def check_twisted_torus(spec: TwistedTorus) -> list[Problem]:
    """Name a twist that goes once round and more."""
    longest = max(spec.sizes)
    if spec.twist is None or spec.twist < longest:
        return []
    return [Problem("twist", f"should be {longest - 1} or less, as the longest dimension has {longest} switches")]


def twisted_torus(spec: TwistedTorus) -> Topology:
    """Number switches as in a torus, the first dimension fastest.

    The fabric has no sizes: routings and patterns of grids would take its wrap links for those of a torus.
    """
    sizes = spec.sizes
    longest = int(np.argmax(sizes))
    twist = sizes[longest] // 2 if spec.twist is None else spec.twist
    strides = [math.prod(sizes[:axis]) for axis in range(len(sizes))]
    pairs = []
    for switch in range(math.prod(sizes)):
        at = [switch // stride % size for stride, size in zip(strides, sizes, strict=True)]
        for axis, size in enumerate(sizes):
            to = [*at]
            to[axis] = (at[axis] + 1) % size
            if to[axis] == 0 and axis != longest:
                to[longest] = (to[longest] + twist) % sizes[longest]
            pairs.append((switch, sum(place * stride for place, stride in zip(to, strides, strict=True))))
    return make_topology(
        "twisted_torus",
        pairs,
        [spec.hosts_per_switch] * math.prod(sizes),
        on_nested_circles(sizes),
        parallel_links=spec.parallel_links,
    )
