"""Dimension order round dead links: north last in a mesh, the other way round the ring in a torus.

x is the first dimension and y the second; south is towards y = 0, north away from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Bools, Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import (
    OTHERWISE,
    host_switches,
    parallel_of_pair,
    refuse_topology,
    source_trees,
)
from testbed.fabric.routing.cut_rings import route_cut_rings
from testbed.fabric.routing.dimension_order import entering_channels


@dataclass(frozen=True, slots=True)
class NorthLastOptions:
    """The way round follows from what is dead; a torus has rings without dead links beside it."""

    # how those are gone along: `auto` as by `dor` without options, or by the `two_trees` of `dor`, which keeps the
    # number of VLANs within 2k^(n-1) for every k with paths a little longer
    ring: Literal["auto", "two_trees"] = "auto"


def route_north_last(topology: Topology, options: NorthLastOptions) -> Routes:
    """Route a grid some of whose links are dead by dimension order with as few exceptions as that takes.

    Mesh (Koibuchi et al. 2011, section 4.1, with the north-last turn model of Glass and Ni 1994): x, then y, then the
    other dimensions. Where the way along x would cross a dead link, the path steps south at that link's near end, as
    far as the first row whose link lives, crosses there and goes on along x in that row. After a hop north there is
    none along x, so no cycle is left. Where a dead link has no living one south of it, as in row 0, south and north
    change places for all paths (south last). Without dead links this is dimension order.

    Torus: a ring with a dead link is a line; see route_cut_rings().

    Raises:
        InputError: not a grid, or dead links that cannot be gone round like this (names one).
    """
    if not topology.sizes:
        raise refuse_topology("north_last", "a mesh, torus, hypercube or ring", topology.kind)
    if topology.switch_count != math.prod(topology.sizes):
        dead = next((fault for fault in topology.faults if fault.startswith("switch")), "a switch")
        raise _make_error(f"goes round dead links and here {dead} is dead")
    if topology.kind in ("torus", "ring"):
        return route_cut_rings(topology, two_trees=options.ring == "two_trees")
    if options.ring == "two_trees":
        raise InputError.one("routing.ring", f'"two_trees" is for the rings of a torus, not for a {topology.kind}')
    return _route_mesh(topology)


def _make_error(reason: str) -> InputError:
    return InputError.one("routing.kind", f'"north_last" {reason}; {OTHERWISE}')


def _route_mesh(topology: Topology) -> Routes:
    arrive = entering_channels(topology)
    coordinates = topology.coordinates
    for dimension in range(1, len(topology.sizes)):
        missing = np.flatnonzero((coordinates[:, dimension] > 0) & (arrive[dimension, 1] < 0))
        if len(missing):
            link = _link_name(topology, int(missing[0]), dimension)
            raise _make_error(
                f"goes round dead links of dimension 1 and here {link}, of dimension {dimension + 1}, is dead"
            )
    crossing, south_last = _crossing_rows(topology, arrive)
    roots = host_switches(topology)
    row = _rows_along_x(topology, crossing, roots)

    own, other = coordinates[roots][:, None], coordinates[None]
    every = np.arange(topology.switch_count)
    parent = np.where(own[..., 0] == other[..., 0], -1, arrive[0, (other[..., 0] > own[..., 0]).astype(int), every])
    if len(topology.sizes) > 1:
        arrival = row[:, coordinates[:, 0]]  # row in which a path reaches the column of each switch
        along_y = arrive[1, (other[..., 1] > arrival).astype(int), every]
        parent = np.where(other[..., 1] == arrival, parent, along_y)
    for dimension in range(2, len(topology.sizes)):
        start, end = own[..., dimension], other[..., dimension]
        parent = np.where(start == end, parent, arrive[dimension, (end > start).astype(int), every])
    plane = roots[:, None] % parallel_of_pair(topology)[parent]
    trees = np.where(parent < 0, -1, parent + 2 * plane).astype(np.int32)
    notes = ("dead links are passed on their north side, with hops south last",) if south_last else ()
    return source_trees(topology, trees, roots, notes)


def _crossing_rows(topology: Topology, arrive: Ints) -> tuple[Ints, bool]:
    """(rest, rows, columns - 1) row in which a path in a row of a plane crosses to the next column, and whether north.

    Raises:
        InputError: no side suits all dead links.
    """
    columns, rows = (*topology.sizes, 1)[:2]
    number = np.lexsort(topology.coordinates.T)  # switches, x fastest
    grid = number.reshape(-1, rows, columns)
    alive: Bools = arrive[0, 1][grid[..., 1:]] >= 0
    at = np.arange(rows)[None, :, None]
    south = np.maximum.accumulate(np.where(alive, at, -1), axis=1)
    north = np.minimum.accumulate(np.where(alive, at, rows)[:, ::-1], axis=1)[:, ::-1]
    no_south, no_north = grid[..., 1:][south < 0], grid[..., 1:][north == rows]
    if not len(no_south):
        return south.astype(np.int32), False
    if not len(no_north):
        return north.astype(np.int32), True
    one, other = _link_name(topology, int(no_south[0]), 0), _link_name(topology, int(no_north[0]), 0)
    if np.isin(no_south, no_north).any():
        one = _link_name(topology, int(no_south[np.isin(no_south, no_north)][0]), 0)
        raise _make_error(f"finds no living link along dimension 1 beside {one}, which is dead")
    raise _make_error(f"passes all dead links on one side; {one} has no living link south of it, {other} none north")


def _rows_along_x(topology: Topology, crossing: Ints, roots: Ints) -> Ints:
    """(E, columns) row in which a path from each root reaches each column."""
    columns, rows = (*topology.sizes, 1)[:2]
    number = np.lexsort(topology.coordinates.T)
    place = np.empty(topology.switch_count, dtype=np.int32)
    place[number] = np.arange(topology.switch_count)
    column, line = place[roots] % columns, place[roots] // columns
    start, rest = line % rows, line // rows
    row = np.repeat(start[:, None], columns, axis=1).astype(np.int32)
    for x in range(columns - 1):
        east = column <= x
        row[east, x + 1] = crossing[rest[east], row[east, x], x]
    for x in range(columns - 1, 0, -1):
        west = column >= x
        row[west, x - 1] = crossing[rest[west], row[west, x], x - 1]
    return row


def _link_name(topology: Topology, switch: int, dimension: int) -> str:
    """Name of the link that leads up to a switch along a dimension, whether it lives or not."""
    below = topology.coordinates[switch].copy()
    below[dimension] -= 1
    other = int(np.flatnonzero((topology.coordinates == below).all(axis=1))[0])
    return f"link {topology.switch_name(other)}–{topology.switch_name(switch)}"
