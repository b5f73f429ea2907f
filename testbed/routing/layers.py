"""What the routings in layers share: minimal balanced paths, and routes made of paths and the layer of each."""

from __future__ import annotations

import numpy as np

from testbed.errors import InputError
from testbed.model import Ints, Longs, Paths, Routes, Topology
from testbed.routing.adjacency import leaving_channels
from testbed.routing.trees import explicit_routes, host_switches
from testbed.routing.turns import all_turns, by_switch, no_path

# 802.1Q has eight priorities, and a layer is a priority.
MOST_LAYERS = 8


def minimal_paths(topology: Topology, *, balanced: bool = True) -> Paths:
    """A path of fewest hops for each pair of switches with hosts, as one tree a destination, in one layer.

    Balanced is SSSP routing (Hoefler, Schneider, Lumsdaine 2009): of the paths of fewest hops the one with the least
    sum of load so far, destination by destination. Else it is the one by the lowest ports. Dependencies may form
    cycles.

    Raises:
        InputError: a pair has no path (names it).
    """
    from testbed.kernels import sssp

    ends = host_switches(topology)
    hosts = np.bincount(topology.host_switch, minlength=topology.switch_count)[ends].astype(np.int32)
    tree = sssp.shortest_trees(
        ends, hosts, topology.channel_source, topology.channel_target, *leaving_channels(topology),
        *by_switch(topology.channel_target, topology.switch_count), balanced,
    )  # fmt: skip
    return paths_to(topology, tree)


def paths_to(topology: Topology, tree: Ints) -> Paths:
    """Write out destination trees.

    Args:
        topology: the network.
        tree: (E, S) channel by which a frame for each end switch leaves each switch, -1 at the end.

    Raises:
        InputError: a pair has no path (names it).
    """
    from testbed.kernels import trees

    ends = host_switches(topology)
    depth = trees.depths(tree, topology.channel_target, ends)
    lost = np.argwhere(depth[:, ends] < 0)
    if len(lost):
        raise no_path(topology, int(ends[lost[0, 1]]), int(ends[lost[0, 0]]))
    start, hop = trees.explicit(tree, topology.channel_target, depth, ends, False, False)
    return Paths(start, hop)


def turns_on(topology: Topology, paths: Paths) -> tuple[Longs, Ints, Ints, Ints]:
    """The turns of each path: (P + 1,) offsets and (M,) numbers; and the (A,) channels before and after each turn."""
    from testbed.kernels import layers

    before, after = all_turns(topology)
    turn_start = np.searchsorted(before, np.arange(len(topology.channel_source) + 1))
    offset, turns = layers.turns_of_paths(paths.start, paths.hop, turn_start.astype(np.int64), after)
    return offset, turns, before, after


def routes_in_layers(topology: Topology, paths: Paths, layer: Ints, layers: int, notes: tuple[str, ...] = ()) -> Routes:
    """Routes of paths each of which stays in one layer.

    Args:
        topology: the network.
        paths: their channels, without layers.
        layer: (E·E,) layer of each path.
        layers: number of layers.
        notes: what the user should know.
    """
    first = layer.astype(np.int32) * np.int32(len(topology.channel_source))
    hop = paths.hop + np.repeat(first, np.diff(paths.start))
    return explicit_routes(topology, Paths(paths.start, hop.astype(np.int32)), None, layers, notes)


def check_need(routing: str, needed: int, allowed: int, remedy: str = "") -> None:
    """Refuse a routing that takes more layers than may be used.

    Args:
        routing: its name.
        needed: layers that it takes.
        allowed: the most that may be used.
        remedy: what else might help, beside more layers.

    Raises:
        InputError: says how many are needed.
    """
    if needed <= allowed:
        return
    more = f"set layers: {needed} or more" if needed <= MOST_LAYERS else ""
    ways = [way for way in (more, remedy, '"dl" and "nue" do with any number of layers') if way]
    raise InputError.one(
        "routing.layers",
        f'"{routing}" needs {needed} layers on this fabric and may use {allowed}; {"; ".join(ways)}',
    )
