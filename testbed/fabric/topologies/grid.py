"""Mesh, torus, hypercube and ring: grids of any number of dimensions and any sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le, MinLen

from testbed.base.model import Floats, Ints, Topology
from testbed.fabric.topologies.build_topology import Extent, make_topology, on_circle

Sizes = Annotated[tuple[Annotated[int, Ge(1)], ...], MinLen(1)]


@dataclass(frozen=True, slots=True)
class Mesh:
    """Grid without wrap links. Switch number = x + size_x * (y + size_y * ...); x is routed first."""

    sizes: Sizes  # switches along each dimension
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return _extent(self.sizes, False, self.hosts_per_switch, self.parallel_links)


@dataclass(frozen=True, slots=True)
class Torus:
    """Grid with wrap links; a dimension of size 2 has one link and no wrap."""

    sizes: Sizes  # switches along each dimension
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return _extent(self.sizes, True, self.hosts_per_switch, self.parallel_links)


@dataclass(frozen=True, slots=True)
class Hypercube:
    """Mesh of size 2 in each dimension."""

    dimensions: Annotated[int, Ge(1), Le(14)]  # of two switches each
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return _extent((2,) * self.dimensions, False, self.hosts_per_switch, self.parallel_links)


@dataclass(frozen=True, slots=True)
class Ring:
    """Torus of one dimension."""

    switches: Annotated[int, Ge(3)]  # number of switches
    hosts_per_switch: Annotated[int, Ge(0)] = 1  # hosts on each switch
    parallel_links: Annotated[int, Ge(1)] = 1  # links between two neighbours

    def extent(self) -> Extent:
        """Count switches, links and hosts."""
        return _extent((self.switches,), True, self.hosts_per_switch, self.parallel_links)


def mesh(spec: Mesh) -> Topology:
    """Build a mesh."""
    return _grid("mesh", spec.sizes, False, spec.hosts_per_switch, spec.parallel_links)


def torus(spec: Torus) -> Topology:
    """Build a torus."""
    return _grid("torus", spec.sizes, True, spec.hosts_per_switch, spec.parallel_links)


def hypercube(spec: Hypercube) -> Topology:
    """Build a hypercube."""
    return _grid("hypercube", (2,) * spec.dimensions, False, spec.hosts_per_switch, spec.parallel_links)


def ring(spec: Ring) -> Topology:
    """Build a ring."""
    return _grid("ring", (spec.switches,), True, spec.hosts_per_switch, spec.parallel_links)


def _extent(sizes: tuple[int, ...], wraps: bool, hosts: int, parallel_links: int) -> Extent:
    count = math.prod(sizes)
    return Extent(count, pair_count(sizes, wraps) * parallel_links, count * hosts)


def pair_count(sizes: Sequence[int], wraps: bool) -> int:
    """Pairs of neighbours; a dimension of size 2 has no wrap link."""
    count = math.prod(sizes)
    return sum(count if wraps and size > 2 else count // size * (size - 1) for size in sizes)


def _grid(kind: str, sizes: tuple[int, ...], wraps: bool, hosts: int, parallel_links: int) -> Topology:
    count = math.prod(sizes)
    number = np.arange(count)
    columns = []
    rest = number
    for size in sizes:
        columns.append(rest % size)
        rest = rest // size
    coordinates = np.stack(columns, axis=1).astype(np.int32)
    strides = np.concatenate([[1], np.cumprod(sizes)[:-1]])
    pairs: list[tuple[int, int]] = []
    for switch in range(count):
        for dimension, size in enumerate(sizes):
            at, stride = int(coordinates[switch, dimension]), int(strides[dimension])
            if at + 1 < size:
                pairs.append((switch, switch + stride))
            elif wraps and size > 2:
                pairs.append((switch, switch - (size - 1) * stride))
    return make_topology(
        kind,
        pairs,
        [hosts] * count,
        on_circle(count) if kind == "ring" else _spread(coordinates, sizes),
        parallel_links=parallel_links,
        sizes=sizes,
        coordinates=coordinates,
    )


def _spread(coordinates: Ints, sizes: tuple[int, ...]) -> Floats:
    """Draw even dimensions across and odd ones down; higher dimensions as blocks beside each other."""
    place = np.zeros((len(coordinates), 2))
    step = [1.0, 1.0]
    for dimension, size in enumerate(sizes):
        axis = dimension % 2
        place[:, axis] += step[axis] * coordinates[:, dimension]
        step[axis] *= size + 0.6
    place[:, 1] *= -1
    return place
