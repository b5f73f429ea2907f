"""Backup paths: a second path a pair, inside the turns that the routing allows."""

from __future__ import annotations

import numpy as np

from testbed.model import AllowedTurns, Ints, Longs, Paths, Topology
from testbed.routing.trees import host_switches
from testbed.routing.turns import by_switch


def backup_paths(topology: Topology, turns: AllowedTurns, paths: Paths) -> Paths:
    """Give every pair the shortest legal path that shares no link with its first; none where there is no such path.

    Both walk on the same graph of allowed turns, so the two sets of paths together have no cycle of dependencies
    either (Mejia et al. 2007, section 2.3). Of several shortest one over channels with few backup paths is taken.
    """
    from testbed.kernels import backup

    channels = len(topology.channel_source)
    layers = max(1, (len(turns.start) - 1) // max(channels, 1))
    leaving: tuple[Longs, Ints] = by_switch(np.tile(topology.channel_source, layers), topology.switch_count)
    arriving: tuple[Longs, Ints] = by_switch(np.tile(topology.channel_target, layers), topology.switch_count)
    start, hop = backup.disjoint_paths(
        host_switches(topology), paths.start, paths.hop, turns.start, turns.following, turns.entry, *leaving,
        *arriving, max(channels, 1),
    )  # fmt: skip
    return Paths(start, hop)
