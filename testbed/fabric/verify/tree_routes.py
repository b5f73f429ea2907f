"""Paths of trees without tables: they lead from each source to each destination, and their channels form no cycle."""

from __future__ import annotations

import numpy as np

from testbed.base.model import Routes, Topology, Violation
from testbed.fabric.routing.paths import all_paths, key_switches
from testbed.fabric.verify.deadlock import find_deadlock

_SHOWN = 5


def check_tree_routes(topology: Topology, routes: Routes) -> list[Violation]:
    """Check the paths of routes by trees, source key by destination key; beware of memory as of all_paths()."""
    paths = all_paths(topology, routes)
    sources, goals = key_switches(routes)
    source, goal = np.repeat(sources, len(goals)), np.tile(goals, len(sources))
    hops = np.diff(paths.start)
    pair = np.repeat(np.arange(len(hops)), hops)
    channels = max(len(topology.channel_source), 1)
    leaves, enters = topology.channel_source[paths.hop % channels], topology.channel_target[paths.hop % channels]
    follows = pair[1:] == pair[:-1]
    wrong = (hops == 0) & (source != goal)
    there = hops > 0
    first, last = paths.start[:-1][there], paths.start[1:][there] - 1
    wrong[there] |= (leaves[first] != source[there]) | (enters[last] != goal[there])
    wrong[pair[1:][follows & (leaves[1:] != enters[:-1])]] = True
    found = []
    if wrong.any():
        names = tuple(
            f"{topology.switch_name(int(source[row]))}→{topology.switch_name(int(goal[row]))}"
            for row in np.flatnonzero(wrong).tolist()
        )
        more = " …" if len(names) > _SHOWN else ""
        sentence = (
            f"{len(names)} pairs of switches have no path from one to the other: {', '.join(names[:_SHOWN])}{more}"
        )
        found.append(Violation("path", sentence, names))
    taken = np.stack([paths.hop[:-1][follows], paths.hop[1:][follows]], axis=1)
    return found + find_deadlock(topology, np.unique(taken, axis=0).astype(np.int32), routes.layers)
