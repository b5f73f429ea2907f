"""Minimal paths in layers: LASH (Skeie, Lysne, Theiss 2002) and DFSSSP (Domke, Hoefler, Nagel 2011).

Both put whole paths into layers until none has a cycle of dependencies; they differ in which path goes where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from testbed.base.errors import InputError
from testbed.base.model import Ints, Longs, Paths, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, host_switches, leaving_channels
from testbed.fabric.routing.turns import all_turns, by_switch, no_path

# 802.1Q has eight priorities, and a layer is a priority.
MAX_LAYERS = 8


def minimal_paths(topology: Topology, *, balanced: bool = True) -> Paths:
    """A path of fewest hops for each pair of switches with hosts, as one tree a destination, in one layer.

    Balanced is SSSP routing (Hoefler, Schneider, Lumsdaine 2009): of the paths of fewest hops the one with the least
    sum of load so far, destination by destination. Else it is the one by the lowest ports. Dependencies may form
    cycles.

    Raises:
        InputError: a pair has no path (names it).
    """
    from testbed.fabric.kernels import sssp

    ends = host_switches(topology)
    hosts = np.bincount(topology.host_switch, minlength=topology.switch_count)[ends].astype(np.int32)
    tree = sssp.shortest_trees(
        ends, hosts, topology.channel_source, topology.channel_target, *leaving_channels(topology),
        *by_switch(topology.channel_target, topology.switch_count), balanced,
    )  # fmt: skip
    return paths_to(topology, tree)


def paths_to(topology: Topology, tree: Ints) -> Paths:
    """Write out destination trees.

    `tree`: (E, S) channel by which a frame for each end switch leaves each switch, -1 at the end.

    Raises:
        InputError: a pair has no path (names it).
    """
    from testbed.fabric.kernels import trees

    ends = host_switches(topology)
    depth = trees.depths(tree, topology.channel_target, ends)
    lost = np.argwhere(depth[:, ends] < 0)
    if len(lost):
        raise no_path(topology, int(ends[lost[0, 1]]), int(ends[lost[0, 0]]))
    start, hop = trees.explicit(tree, topology.channel_target, depth, ends, False, False)
    return Paths(start, hop)


def turns_on(topology: Topology, paths: Paths) -> tuple[Longs, Ints, Ints, Ints]:
    """The turns of each path: (P + 1,) offsets and (M,) numbers; and the (A,) channels before and after each turn."""
    from testbed.fabric.kernels import layers

    before, after = all_turns(topology)
    turn_start = np.searchsorted(before, np.arange(len(topology.channel_source) + 1))
    offset, turns = layers.turns_of_paths(paths.start, paths.hop, turn_start.astype(np.int64), after)
    return offset, turns, before, after


def routes_in_layers(topology: Topology, paths: Paths, layer: Ints, layers: int, notes: tuple[str, ...] = ()) -> Routes:
    """Routes of paths each of which stays in one layer. `layer`: (E·E,) of each path."""
    first = layer.astype(np.int32) * np.int32(len(topology.channel_source))
    hop = paths.hop + np.repeat(first, np.diff(paths.start))
    return explicit_routes(topology, Paths(paths.start, hop.astype(np.int32)), None, layers, notes)


def check_need(routing: str, needed: int, allowed: int, remedy: str = "") -> None:
    """Refuse a routing that takes more layers than may be used.

    `remedy` is what else might help, beside more layers.

    Raises:
        InputError: says how many are needed.
    """
    if needed <= allowed:
        return
    more = f"set layers: {needed} or more" if needed <= MAX_LAYERS else ""
    ways = [way for way in (more, remedy, '"dl" and "nue" work with any number of layers') if way]
    raise InputError.one(
        "routing.layers",
        f'"{routing}" needs {needed} layers on this fabric and may use {allowed}; {"; ".join(ways)}',
    )


@dataclass(frozen=True, slots=True)
class LashOptions:
    """How many layers there may be, and which minimal paths are put into them."""

    # the most that may be used, each an 802.1Q priority; no more are taken than needed
    layers: Annotated[int, Ge(1), Le(MAX_LAYERS)] = MAX_LAYERS
    # `balanced`: those of SSSP routing. `low_port`: the lowest port at every switch; loads are higher, and of parallel
    # links only the first is used, but grids then need far fewer layers.
    paths: Literal["balanced", "low_port"] = "balanced"


def route_lash(topology: Topology, options: LashOptions) -> Routes:
    """Minimal paths, each put whole into the first layer in which it closes no cycle.

    Ordered pairs of switches are taken by source, then destination. LASH leaves the choice among minimal paths open;
    here they are one tree a destination, so the next hop depends on destination and layer alone. What LASH may do at
    the end, moving paths until the layers are equally full, is left out.

    Raises:
        InputError: more layers are needed than may be used.
    """
    from testbed.fabric.kernels import layers

    balanced = options.paths == "balanced"
    paths = minimal_paths(topology, balanced=balanced)
    offset, turns, before, after = turns_on(topology, paths)
    layer = layers.first_fit(offset, turns, len(topology.channel_source), before, after)
    needed = int(layer.max(initial=0)) + 1
    check_need("lash", needed, options.layers, "paths: low_port may need fewer" if balanced else "")
    note = f"minimal paths without a cycle took {needed} of {options.layers} layers"
    return routes_in_layers(topology, paths, layer, needed, (note,))


@dataclass(frozen=True, slots=True)
class DfssspOptions:
    """How many layers there may be, and whether to use those that are not needed."""

    layers: Annotated[int, Ge(1), Le(MAX_LAYERS)] = MAX_LAYERS  # the most that may be used, each an 802.1Q priority
    balance: bool = False  # spread the paths over all layers that may be used, also where fewer are needed


def route_dfsssp(topology: Topology, options: DfssspOptions) -> Routes:
    """Minimal balanced paths; the paths of the weakest turn of each cycle move to the next layer.

    Cycles are broken at the turn that the fewest paths of the layer take, the paper's best rule. Loads are counted
    in pairs of hosts.

    Raises:
        InputError: more layers are needed than may be used.
    """
    from testbed.fabric.kernels import layers

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
    """Give each unused layer half the paths of the largest one; part of an acyclic layer is acyclic."""
    spread = layer.copy()
    for empty in range(int(layer.max(initial=0)) + 1, layers):
        largest = np.argmax(np.bincount(spread[hops > 0], minlength=1))
        paths = np.flatnonzero((spread == largest) & (hops > 0))
        spread[paths[(len(paths) + 1) // 2 :]] = empty
    return spread
