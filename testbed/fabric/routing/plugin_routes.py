"""Whether routes that a plug-in made are routes at all, before anything counts on it; proofs come later, in verify/."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from testbed.base.model import Ints, Paths, Routes, Topology
from testbed.fabric.routing.channel_lookup import host_switches

_RELATIONS = ("source_trees", "destination_trees", "paths")


def describe_malformed(topology: Topology, routes: object) -> str:
    """What is wrong with routes in their form, in a sentence; empty where nothing is."""
    if not isinstance(routes, Routes):
        return f"gave {type(routes).__name__} and not Routes"
    return next(_problems(topology, routes), "")


def _problems(topology: Topology, routes: Routes) -> Iterator[str]:
    ends = host_switches(topology)
    if str(routes.relation) not in _RELATIONS:
        yield f'gave the relation "{routes.relation}"; there are {", ".join(_RELATIONS)}'
    yield from _array("ends", routes.ends, (len(ends),), 0, topology.switch_count)
    if not np.array_equal(routes.ends, ends):
        given, wanted = _abbreviate_list(routes.ends), _abbreviate_list(ends)
        yield f"gave as ends {given}; they should be the switches with hosts, ascending: {wanted}"
    if routes.layers < 1:
        yield f"gave {routes.layers} layers; there is 1 or more"
    if routes.relation == "paths":
        if routes.paths is None:
            yield 'gave the relation "paths" and no paths'
        else:
            yield from _path_problems(topology, routes.paths, len(ends), routes.layers)
    else:
        yield from _tree_problems(topology, routes)


def _array(name: str, array: Any, shape: tuple[int, ...], least: int, beyond: int) -> Iterator[str]:
    if not isinstance(array, np.ndarray) or not np.issubdtype(array.dtype, np.integer):
        yield f"gave {name} that are no array of whole numbers"
    elif array.shape != shape:
        yield f"gave {name} of shape {array.shape}; it should be {shape}"
    elif array.size and not (array.min() >= least and array.max() < beyond):
        yield f"gave {name} from {array.min()} to {array.max()}; they should be from {least} to {beyond - 1}"


def _abbreviate_list(numbers: Ints) -> str:
    shown = 6
    return f"[{', '.join(map(str, numbers[:shown].tolist()))}{', …' if len(numbers) > shown else ''}]"


def _path_problems(topology: Topology, paths: Paths, ends: int, layers: int) -> Iterator[str]:
    channels = len(topology.channel_source)
    yield from _array("paths.start", paths.start, (ends * ends + 1,), 0, len(paths.hop) + 1)
    if paths.start[0] != 0 or paths.start[-1] != len(paths.hop) or (np.diff(paths.start) < 0).any():
        yield f"gave paths.start that does not ascend from 0 to the {len(paths.hop)} hops"
    yield from _array("paths.hop", paths.hop, (len(paths.hop),), 0, layers * channels)
    for pair in np.flatnonzero(np.diff(paths.start) > 1).tolist():
        hop = paths.hop[paths.start[pair] : paths.start[pair + 1]]
        if len(np.unique(hop)) < len(hop):
            one, other = (topology.switch_name(int(host_switches(topology)[end])) for end in divmod(pair, ends))
            yield f"gave a path from {one} to {other} that loops: it takes a channel twice"


def _tree_problems(topology: Topology, routes: Routes) -> Iterator[str]:
    trees = len(routes.tree_root)
    channels, switches = len(topology.channel_source), topology.switch_count
    yield from _array("tree_root", routes.tree_root, (trees,), 0, switches)
    yield from _array("tree_channel", routes.tree_channel, (trees, switches), -1, channels)
    yield from _array("host_tree", routes.host_tree, (topology.host_count,), 0, trees)
    if not np.array_equal(routes.tree_root[routes.host_tree], topology.host_switch):
        yield "gave a host a tree whose root is not the host's switch"
    from_root = routes.relation == "source_trees"
    own, nearer = topology.channel_target, topology.channel_source
    if not from_root:
        own, nearer = nearer, own
    tree, at = np.nonzero(routes.tree_channel >= 0)
    wrong = own[routes.tree_channel[tree, at]] != at
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        channel = topology.channel_name(int(routes.tree_channel[tree[first], at[first]]))
        switch, word = topology.switch_name(int(at[first])), "enters" if from_root else "leaves"
        yield f"gave tree {tree[first]} the channel {channel} for {switch}, which it {word} not"
    yield from _endless(topology, routes, nearer)


def _endless(topology: Topology, routes: Routes, nearer: Ints) -> Iterator[str]:
    """Trees in which one comes back to a switch on the way to the root: up as often as there are switches."""
    above = np.where(routes.tree_channel >= 0, nearer[routes.tree_channel], np.arange(topology.switch_count))
    rows = np.arange(len(above))[:, None]
    above[rows[:, 0], routes.tree_root] = routes.tree_root
    for _ in range(topology.switch_count.bit_length()):
        above = above[rows, above]
    # Who went far enough stands still at the root, or where there is no way on.
    going = (routes.tree_channel[rows, above] >= 0) & (above != routes.tree_root[:, None])
    if going.any():
        tree, switch = (int(part[0]) for part in np.nonzero(going))
        root = topology.switch_name(int(routes.tree_root[tree]))
        yield f"gave the tree of {root} a loop: from {topology.switch_name(switch)} one never comes to {root}"
