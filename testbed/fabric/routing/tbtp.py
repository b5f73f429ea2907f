"""Tree-based turn prohibition (Pellegrini et al. 2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import AllowedTurns, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, leaving_channels, switch_named
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.stp import spanning_tree
from testbed.fabric.routing.turns import allow_all_but


@dataclass(frozen=True, slots=True)
class TbtpOptions(SelectionOptions):
    """All turns between links of the spanning tree are allowed, and at least half of all turns."""

    root: str | None = None  # of the spanning tree, a switch such as s5; without one the first, as in `stp`


def route_tbtp(topology: Topology, options: TbtpOptions) -> Routes:
    """Shortest paths that take no prohibited turn.

    Raises:
        InputError: the root is not a switch of the fabric.
    """
    turns = tree_based_turns(topology, switch_named(topology, options.root, "root"))
    return explicit_routes(topology, select_paths(topology, turns, options), turns)


def tree_based_turns(topology: Topology, root: int) -> AllowedTurns:
    """Take switches one by one until no link outside the spanning tree is left.

    At a switch with c such links and t links of the tree the A = c(c-1)/2 + c·t turns that involve one of the c are
    prohibited; the P turns that involve them at their far ends are allowed, P being the sum of (degree - 1) there.
    Then the c links are taken away. The switch with the largest P - A comes first, of several that with the lowest
    number. Over all switches P sums up to at least A, so the largest difference is never negative and at most half of
    all turns are prohibited.

    A cycle of allowed turns would have to leave the tree; the switch of it that comes first would prohibit its turn.
    """
    from testbed.fabric.kernels import turn_prohibition

    tree = np.zeros(topology.link_count, dtype=bool)
    entering = spanning_tree(topology, root)
    tree[entering[entering >= 0] // 2] = True
    prohibited = turn_prohibition.prohibit(*leaving_channels(topology), topology.channel_target, tree)
    return allow_all_but(topology, prohibited)
