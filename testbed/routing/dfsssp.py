"""DFSSSP, deadlock-free single-source-shortest-path routing (Domke, Hoefler, Nagel 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge, Le

from testbed.model import Ints, Longs, Routes, Topology
from testbed.routing.layers import MOST_LAYERS, check_need, minimal_paths, routes_in_layers, turns_on


@dataclass(frozen=True, slots=True)
class DfssspOptions:
    """How many layers there may be, and whether to use those that are not needed.

    Attributes:
        layers: the most that may be used, each an 802.1Q priority.
        balance: spread the paths over all layers that may be used, also where fewer are needed.
    """

    layers: Annotated[int, Ge(1), Le(MOST_LAYERS)] = MOST_LAYERS
    balance: bool = False


def route_dfsssp(topology: Topology, options: DfssspOptions) -> Routes:
    """Minimal balanced paths; the paths of the weakest turn of each cycle move to the next layer.

    Cycles are broken at the turn that the fewest paths of the layer take, the paper's best rule. Loads are counted
    in pairs of hosts.

    Raises:
        InputError: more layers are needed than may be used.
    """
    from testbed.kernels import layers

    paths = minimal_paths(topology)
    offset, turns, before, after = turns_on(topology, paths)
    layer = layers.break_cycles(offset, turns, len(topology.channel_source), before, after)
    needed = int(layer.max(initial=0)) + 1
    check_need("dfsssp", needed, options.layers)
    notes = (f"minimal paths without a cycle took {needed} of {options.layers} layers",)
    if options.balance:
        layer = _spread(layer, np.diff(paths.start), options.layers)
        needed = int(layer.max(initial=0)) + 1
    return routes_in_layers(topology, paths, layer, needed, notes)


def _spread(layer: Ints, hops: Longs, layers: int) -> Ints:
    """Give each unused layer half the paths of the fullest one; part of an acyclic layer is acyclic."""
    spread = layer.copy()
    for empty in range(int(layer.max(initial=0)) + 1, layers):
        fullest = np.argmax(np.bincount(spread[hops > 0], minlength=1))
        paths = np.flatnonzero((spread == fullest) & (hops > 0))
        spread[paths[(len(paths) + 1) // 2 :]] = empty
    return spread
