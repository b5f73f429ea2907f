"""The fewest VLANs that any assignment could do with for the same paths, beside what the papers' procedures need.

Fixed: a VLAN is free of loops and holds whole source trees. Where every source tree leads to all switches with hosts
and ends at such switches, merging trees can never beat one VLAN a distinct tree: in a union without loops there is one
way between two switches, so each of its source trees is that union's one smallest tree over these switches, and they
are all the same. Only for sets of paths that leave pairs out is it a question of graphs.

Renamed: two ports of arrival may share a local VLAN exactly if they agree on every destination that both see, so the
fewest local VLANs of a switch colour the graph of ports that disagree. Member sets, which only scope flooding, are not
looked at (the procedure of Koibuchi et al. 2011, section 3.2.2, keeps them apart).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Ints, Routes, Topology
from testbed.fabric.routing.paths import key_switches
from testbed.fabric.routing.relation import Conflict, as_source_trees, forwarding_table

_MAX_STEPS = 20_000  # of an exact search: some tenths of a second
_MAX_COMPARED = 256  # trees compared pairwise for the lower bound
_MAX_STARTS = 64  # items from which a large set of items all apart is grown


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of a smallest number: it is `lower` or more, and `upper` is enough."""

    lower: int
    upper: int

    @property
    def exact(self) -> bool:
        """Whether both are the same."""
        return self.lower == self.upper


def fewest_fixed(topology: Topology, routes: Routes) -> Bounds | Conflict:
    """Bounds of the number of VLANs under the fixed assignment, or why no VLAN can hold the paths of a source.

    Raises:
        ValueError: the routes have layers, which no VLAN carries.
    """
    _single_layer(routes)
    trees = as_source_trees(topology, routes)
    if isinstance(trees, Conflict):
        return trees
    channel = _prune_trees(topology, trees)
    reached = channel[:, trees.ends] >= 0
    reached |= trees.ends[None, :] == trees.tree_root[:, None]
    links = np.zeros((len(channel), topology.link_count), dtype=bool)
    for tree, row in enumerate(channel):
        links[tree, row[row >= 0] // 2] = True
    if reached.all():
        count = len(_drop_duplicates(links))
        return Bounds(count, count)
    return fewest_of_trees(links, topology.links, topology.switch_count)


def _prune_trees(topology: Topology, routes: Routes) -> Ints:
    """(T, S) the trees without branches that lead to no switch with hosts."""
    count = topology.switch_count
    if len(routes.ends) == count:
        return routes.tree_channel
    needed = np.zeros(routes.tree_channel.shape, dtype=bool)
    needed[:, routes.ends] = True
    while True:
        tree, switch = np.nonzero(needed & (routes.tree_channel >= 0))
        above = topology.channel_source[routes.tree_channel[tree, switch]]
        if needed[tree, above].all():
            return np.where(needed, routes.tree_channel, -1).astype(np.int32)
        needed[tree, above] = True


def _drop_duplicates(trees: Bools) -> Bools:
    """Different rows, in the order of their first occurrence."""
    packed = np.packbits(trees, axis=1)
    first: dict[bytes, int] = {}
    for index, row in enumerate(packed):
        first.setdefault(row.tobytes(), index)
    return trees[list(first.values())]


def fewest_of_trees(trees: Bools, links: Ints, switches: int) -> Bounds:
    """Bounds of the number of VLANs free of loops such that each tree lies in one of them.

    Exact where a search of limited length ends, or where a set of trees no two of which fit together is as large as
    the first fit needs.

    `trees`: (T, L) links of each; `links`: (L, 2).
    """
    distinct = _drop_duplicates(trees)
    distinct = distinct[np.argsort(-distinct.sum(axis=1), kind="stable")]
    kept: list[int] = []
    for index, tree in enumerate(distinct):
        if not any(not (tree & ~distinct[other]).any() for other in kept):
            kept.append(index)
    largest = distinct[kept]
    groups: list[Bools] = []
    for tree in largest:
        for number, group in enumerate(groups):
            if not _loops((group | tree)[None, :], links, switches)[0]:
                groups[number] = group | tree
                break
        else:
            groups.append(tree)
    compared = largest[:_MAX_COMPARED]
    apart = np.array([_loops(compared | tree, links, switches) for tree in compared], dtype=bool)
    bounds = Bounds(len(_clique(apart)), len(groups))

    def fits(members: tuple[int, ...], item: int) -> bool:
        if any(apart[item, member] for member in members):
            return False
        union = np.logical_or.reduce(largest[[*members, item]], axis=0, keepdims=True)
        return not _loops(union, links, switches)[0]

    if bounds.exact or len(largest) > _MAX_COMPARED:
        return bounds
    return _search(len(largest), fits, bounds, _MAX_STEPS)[0]


def _loops(tagged: Bools, links: Ints, switches: int) -> Bools:
    from testbed.fabric.kernels.vlans import loops_and_parts

    return loops_and_parts(tagged, links, switches, 0)[0]


def fewest_renamed(topology: Topology, routes: Routes) -> Bounds | Conflict:
    """Bounds of the most local VLANs a switch needs, by forwarding entries alone, or why none can carry the paths.

    Raises:
        ValueError: the routes have layers, which a port of arrival does not show.
    """
    _single_layer(routes)
    table = forwarding_table(topology, routes, by_arrival=True)
    return table if isinstance(table, Conflict) else fewest_of_table(topology, routes, table)


def fewest_of_table(topology: Topology, routes: Routes, table: Ints) -> Bounds:
    """As fewest_renamed(), from a table that forwarding_table() has made for ports of arrival."""
    from testbed.fabric.kernels import forwarding
    from testbed.fabric.kernels.forwarding import conflicts

    used = np.flatnonzero((table != forwarding.NEVER).any(axis=1)).astype(np.int32)
    at = np.concatenate([topology.channel_target, key_switches(routes)[0]])[used]
    order = np.argsort(at, kind="stable")
    of_switch = np.split(used[order], np.flatnonzero(np.diff(at[order])) + 1)
    apart = [conflicts(table, rows, forwarding.NEVER) for rows in of_switch]
    bounds = [Bounds(len(_clique(graph)), int(_first_fit(graph).max(initial=-1)) + 1) for graph in apart]
    steps = _MAX_STEPS
    for index in sorted(range(len(bounds)), key=lambda switch: -bounds[switch].upper):
        # A switch whose upper bound another is known to need cannot change the maximum.
        if bounds[index].upper > max(known.lower for known in bounds):
            bounds[index], steps = _colour_graph(apart[index], bounds[index], steps)
    return Bounds(max((b.lower for b in bounds), default=0), max((b.upper for b in bounds), default=0))


def fewest_colours(apart: Bools) -> Bounds:
    """Bounds of the number of groups without two items that are apart; (n, n) symmetric, False on the diagonal."""
    bounds = Bounds(len(_clique(apart)), int(_first_fit(apart).max(initial=-1)) + 1)
    return _colour_graph(apart, bounds, _MAX_STEPS)[0]


def _colour_graph(apart: Bools, bounds: Bounds, steps: int) -> tuple[Bounds, int]:
    order = np.argsort(-apart.sum(axis=1), kind="stable")
    sorted_apart = apart[np.ix_(order, order)].tolist()

    def fits(members: tuple[int, ...], item: int) -> bool:
        return not any(sorted_apart[item][member] for member in members)

    return _search(len(apart), fits, bounds, steps)


def _clique(apart: Bools) -> list[int]:
    """Items all apart from each other: the largest set found by adding, each time, the one in most conflicts."""
    degree = apart.sum(axis=1)
    best: list[int] = []
    for start in np.argsort(-degree, kind="stable")[:_MAX_STARTS].tolist():
        if degree[start] + 1 <= len(best):
            break
        members, candidates = [start], apart[start].copy()
        while candidates.any():
            chosen = int(np.argmax(np.where(candidates, (apart & candidates).sum(axis=1), -1)))
            members.append(chosen)
            candidates &= apart[chosen]
        if len(members) > len(best):
            best = members
    return best


def _first_fit(apart: Bools) -> Ints:
    """(n,) group of each item: the first that has none it is apart from, those in most conflicts first."""
    group = np.full(len(apart), -1, dtype=np.int32)
    for item in np.argsort(-apart.sum(axis=1), kind="stable").tolist():
        taken = set(group[apart[item]].tolist())
        group[item] = next(number for number in range(len(apart)) if number not in taken)
    return group


def _search(count: int, fits: Callable[[tuple[int, ...], int], bool], bounds: Bounds, steps: int) -> tuple[Bounds, int]:
    """Narrow bounds by trying every partition, branch and bound; gives up after a number of steps.

    Returns:
        bounds, exact where the search ended, and the steps left.
    """
    best, left = bounds.upper, steps
    groups: list[tuple[int, ...]] = []

    def place(item: int) -> None:
        nonlocal best, left
        left -= 1
        if left < 0 or best == bounds.lower or len(groups) >= best:
            return
        if item == count:
            best = len(groups)
            return
        for number, members in enumerate(groups):
            if fits(members, item):
                groups[number] = (*members, item)
                place(item + 1)
                groups[number] = members
        if len(groups) + 1 < best:
            groups.append((item,))
            place(item + 1)
            groups.pop()

    place(0)
    return Bounds(bounds.lower if left < 0 else best, best), max(left, 0)


def _single_layer(routes: Routes) -> None:
    if routes.layers > 1:
        raise ValueError("routes with layers fit neither assignment")
