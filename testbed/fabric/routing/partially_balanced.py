"""Minimal paths in partially balanced sets of trees: k^(n-1)/2 + 1 on a k-ary n-cube mesh, k^(n-1) + 2 on a torus.

Otsuka et al. 2005 (ICPP, pp. 567-576) give the numbers; these are sets that have them. A balanced set has a tree for
each line of switches along the first dimension: that line, and from its switches all lines of the other dimensions. It
carries dimension order, k^(n-1) trees in all. Half of the lines will do if of any two neighbouring lines one is among
them: the box between two switches on different lines contains two neighbours, so one of its lines has a tree. A pair on
one line that has none takes one more tree, with all lines of the first dimension. On a torus each ring is cut once for
the other dimensions, opposite the line, and twice for the first one, in trees of their own.

What is lost is balance: paths leave their line for that of a tree, and its links carry those of two lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Bools, Ints, PairTrees, Routes, Topology
from testbed.fabric.routing.channel_lookup import (
    explicit_routes,
    host_switches,
    refuse_topology,
    require_every_pair,
    require_whole,
)
from testbed.fabric.routing.dimension_order import entering_channels
from testbed.fabric.routing.given_paths import paths_of
from testbed.fabric.topologies.grid import pair_count

Line = tuple[int, ...]  # coordinates beside the first one


@dataclass(frozen=True, slots=True)
class PartiallyBalancedOptions:
    """There are none."""


def route_partially_balanced(topology: Topology, options: PartiallyBalancedOptions) -> Routes:
    """Route every pair by a shortest path in one of the trees.

    Raises:
        InputError: not a whole mesh or torus of two dimensions or more with single links, or a ring of odd length.
    """
    del options
    if topology.kind not in ("mesh", "torus") or len(topology.sizes) < 2:
        raise refuse_topology("partially_balanced", "a mesh or torus of two dimensions or more", topology.kind)
    wraps = topology.kind == "torus"
    require_every_pair("partially_balanced", topology, math.prod(topology.sizes), pair_count(topology.sizes, wraps))
    require_whole("partially_balanced", topology)
    if wraps and any(size % 2 or size < 4 for size in topology.sizes):
        raise InputError.one(
            "topology.sizes",
            f'"partially_balanced" cuts each ring at two opposite links, so it needs even rings of 4 or more, not '
            f"{'×'.join(map(str, topology.sizes))}; use routing.kind: dor",
        )
    return _Grid(topology, wraps).route()


class _Grid:
    """A mesh or torus, its lines with a tree, and the paths."""

    def __init__(self, topology: Topology, wraps: bool) -> None:
        self.topology, self.wraps, self.sizes = topology, wraps, topology.sizes
        self.enters = entering_channels(topology)
        self.at = {tuple(place): switch for switch, place in enumerate(topology.coordinates.tolist())}
        self.cuts = 2 if wraps else 1
        self.lines = _covering_lines(self.sizes[1:], wraps)
        self.tree_of_line = {line: self.cuts * number for number, line in enumerate(self.lines)}

    def route(self) -> Routes:
        """The paths of all pairs, and the trees that hold them."""
        topology, ends = self.topology, host_switches(self.topology)
        links = [self._tree(line, cut) for line in self.lines for cut in range(self.cuts)]
        links += [self._tree_of_lines(cut) for cut in range(self.cuts)]
        chosen: dict[tuple[int, int], int] = {}

        def way(source: int, goal: int) -> list[int]:
            taken, chosen[source, goal] = self._path(source, goal)
            return taken

        routes = explicit_routes(topology, paths_of(topology, way), None, 1, ())
        of_pair: Ints = np.array([[chosen.get((a, b), 0) for b in ends.tolist()] for a in ends.tolist()], np.int32)
        used = np.unique(of_pair[~np.eye(len(ends), dtype=bool)])
        number = np.zeros(len(links), dtype=np.int32)
        number[used] = np.arange(len(used))
        trees = PairTrees(np.array(links)[used], number[of_pair])
        note = f"{len(used)} trees in place of the {self.cuts * math.prod(self.sizes[1:])} of a balanced set"
        return Routes(
            routes.relation, routes.ends, routes.tree_channel, routes.tree_root, routes.host_tree, paths=routes.paths,
            trees=trees, notes=(f"{note}: paths of two lines share the links of one",),
        )  # fmt: skip

    def _path(self, source: int, goal: int) -> tuple[list[int], int]:
        """Channels from one switch to another, and their tree."""
        start, end = (self.topology.coordinates[switch].tolist() for switch in (source, goal))
        moves = [self._moves(dimension, start[dimension], end[dimension]) for dimension in range(len(self.sizes))]
        cut = self._cut_of(start[0], moves[0])
        if start[1:] == end[1:]:
            return self._walk(source, [(0, moves[0])]), self.cuts * len(self.lines) + cut
        line = self._nearest_line(start, moves)
        before = [(line[d - 1] - start[d]) % self.sizes[d] if self.wraps else line[d - 1] - start[d]
                  for d in range(1, len(self.sizes))]  # fmt: skip
        steps = []
        for dimension in reversed(range(1, len(self.sizes))):
            part = _signed(before[dimension - 1], moves[dimension], self.sizes[dimension] if self.wraps else 0)
            # Without a step along the line a path need not come to it: it turns where the trees branch.
            inner_differs = any(moves[d] for d in range(dimension))
            steps.append((dimension, part if inner_differs else moves[dimension]))
        steps.append((0, moves[0]))
        for dimension in range(1, len(self.sizes)):
            done = sum(step for d, step in steps if d == dimension)
            steps.append((dimension, moves[dimension] - done))
        return self._walk(source, steps), self.tree_of_line[line] + cut

    def _moves(self, dimension: int, start: int, end: int) -> int:
        """Steps from one coordinate to another the shorter way, negative down; half a ring up from odd places."""
        size = self.sizes[dimension]
        if not self.wraps:
            return end - start
        ahead = (end - start) % size
        if 2 * ahead == size:
            return ahead if start % 2 else -ahead
        return ahead if 2 * ahead < size else ahead - size

    def _cut_of(self, start: int, move: int) -> int:
        """Which of the two cuts of the first dimension's rings a way along one does not cross."""
        if not self.wraps:
            return 0
        size = self.sizes[0]
        crossed = {(start + step) % size for step in (range(move) if move > 0 else range(move, 0))}
        return 1 if size - 1 in crossed else 0

    def _nearest_line(self, start: list[int], moves: list[int]) -> Line:
        """The line with a tree that is nearest to a switch in the box of a pair."""
        ways = [range(move + 1) if move >= 0 else range(0, move - 1, -1) for move in moves[1:]]
        found = min(
            (sum(map(abs, steps)), steps) for steps in product(*ways) if self._line(start, steps) in self.tree_of_line
        )
        return self._line(start, found[1])

    def _line(self, start: list[int], steps: tuple[int, ...]) -> Line:
        return tuple((place + step) % size for place, step, size in zip(start[1:], steps, self.sizes[1:], strict=True))

    def _walk(self, switch: int, steps: list[tuple[int, int]]) -> list[int]:
        """Channels of so many steps in each dimension, one after the other."""
        taken: list[int] = []
        for dimension, count in steps:
            for _ in range(abs(count)):
                place = self.topology.coordinates[switch].tolist()
                place[dimension] = (place[dimension] + (1 if count > 0 else -1)) % self.sizes[dimension]
                switch = self.at[tuple(place)]
                taken.append(int(self.enters[dimension, int(count > 0), switch]))
        return taken

    def _tree(self, line: Line, cut: int) -> Bools:
        """(L,) links of a line, of those that cross it in the second dimension, and so on."""
        found = np.zeros(self.topology.link_count, dtype=bool)
        for dimension in range(len(self.sizes)):
            fixed = {d: line[d - 1] for d in range(dimension + 1, len(self.sizes))}
            gap = self._gap(0, cut) if dimension == 0 else self._gap(dimension, 0, line[dimension - 1])
            self._add_lines(found, dimension, fixed, gap)
        return found

    def _tree_of_lines(self, cut: int) -> Bools:
        """(L,) links of all lines of the first dimension, and of what joins them."""
        found = np.zeros(self.topology.link_count, dtype=bool)
        for dimension in range(len(self.sizes)):
            fixed = {d: self.sizes[d] // 2 for d in range(dimension)}
            self._add_lines(found, dimension, fixed, self._gap(dimension, cut if dimension == 0 else 0))
        return found

    def _gap(self, dimension: int, cut: int, opposite: int | None = None) -> int:
        """Coordinate above which the rings of a dimension are cut; below 0 where there are none."""
        size = self.sizes[dimension]
        if not self.wraps:
            return size - 1
        if opposite is not None:
            return (opposite + size // 2) % size if self._up_at(opposite) else (opposite + size // 2 - 1) % size
        return (size - 1 + cut * (size // 2)) % size

    def _up_at(self, place: int) -> bool:
        """Whether paths of half a ring go up from a place."""
        return place % 2 == 1

    def _add_lines(self, found: Bools, dimension: int, fixed: dict[int, int], gap: int) -> None:
        """Add the links of all lines of a dimension that have fixed coordinates, but for those above `gap`."""
        for place, switch in self.at.items():
            if (
                all(place[d] == value for d, value in fixed.items())
                and (place[dimension] - 1) % self.sizes[dimension] != gap
            ):
                channel = int(self.enters[dimension, 1, switch])
                if channel >= 0:
                    found[channel // 2] = True


def _signed(ahead: int, move: int, ring: int) -> int:
    """Steps to a place on the way of `move` steps, which `ahead` steps up a ring lead to."""
    if not ring:
        return ahead
    return ahead if move > 0 or ahead == 0 else ahead - ring


def _covering_lines(sizes: tuple[int, ...], wraps: bool) -> list[Line]:
    """Every second line, so that of two neighbours one is there.

    Of four lines side by side the two in the middle will do as well, and only with them turns make no cycle.
    """
    if not wraps and sizes == (4,):
        return [(1,), (2,)]
    return [line for line in product(*map(range, sizes)) if sum(line) % 2]
