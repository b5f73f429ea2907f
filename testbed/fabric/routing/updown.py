"""Up*/down* routing (Schroeder et al. 1991; Koibuchi et al. 2003, section 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import AllowedTurns, Bools, Ints, Routes, Topology
from testbed.fabric.routing.channel_lookup import explicit_routes, host_switches, leaving_channels, switch_named
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.routing.turns import all_turns, allow, breadth_first_levels, no_path


@dataclass(frozen=True, slots=True)
class UpDownOptions(SelectionOptions):
    """Up is toward the root: a lower level of the breadth-first tree, or a lower number on the same level."""

    root: str | None = None  # a switch such as s5; without one the first, whose number is the lowest (Autonet)
    # what the next hop depends on. `arrival`: on the port of arrival, too, and paths are shortest legal ones, chosen by
    # `selection`. `destination`: on switch and destination alone (N×N→C), so that one table a switch carries it: down
    # where a way down is left, else up, toward the least loaded channels; paths may be longer
    next_hop: Literal["arrival", "destination"] = "arrival"


def upward_channels(topology: Topology, root: int = 0) -> Bools:
    """(C,) True for channels that go up, levels being hops from the root; the lower number breaks ties."""
    level = breadth_first_levels(topology, root)
    source, target = topology.channel_source, topology.channel_target
    nearer = level[target] < level[source]
    up: Bools = nearer | ((level[target] == level[source]) & (target < source))
    return up


def route_updown(topology: Topology, options: UpDownOptions) -> Routes:
    """Shortest paths that never turn from down to up.

    Raises:
        InputError: the root is not a switch of the fabric.
    """
    root = switch_named(topology, options.root, "root")
    up = upward_channels(topology, root)
    before, after = all_turns(topology)
    turns = allow(topology, ~(~up[before] & up[after]), before, after)
    if options.next_hop == "destination":
        downward = np.argsort(breadth_first_levels(topology, root), kind="stable").astype(np.int32)
        return _by_destination(topology, up, turns, downward, options)
    return explicit_routes(topology, select_paths(topology, turns, options), turns)


def _by_destination(
    topology: Topology, up: Bools, turns: AllowedTurns, downward: Ints, options: UpDownOptions
) -> Routes:
    """Next hops by destination alone; `downward` are all switches by level, then by number."""
    from testbed.fabric.kernels.updown import toward_destinations

    if options.selection != "balanced":
        raise InputError.one(
            "routing.selection",
            f"{options.selection} chooses among paths by port of arrival; leave it out, or set next_hop: arrival",
        )
    ends = host_switches(topology)
    weight = np.bincount(topology.host_switch, minlength=topology.switch_count).astype(np.int64)
    start, leaving = leaving_channels(topology)
    tree, lost = toward_destinations(ends, weight, up, topology.channel_target, start, leaving, downward)
    if len(lost):
        raise no_path(topology, int(lost[0]), int(lost[1]))
    host_tree = np.searchsorted(ends, topology.host_switch).astype(np.int32)
    return Routes("destination_trees", ends, tree, ends, host_tree, allowed=turns)
