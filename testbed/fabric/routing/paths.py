"""Questions about routes of any relation: a path, all paths, hops, loads.

A path belongs to a source key and a destination key. The key of a host is its tree where the relation has trees on
that side, else the index of its switch among `ends`.
"""

from __future__ import annotations

import numpy as np

from testbed.base.model import Floats, Ints, Longs, Paths, Routes, Topology
from testbed.fabric.routing.channel_lookup import runs


def end_index(topology: Topology, routes: Routes) -> Ints:
    """(H,) index of each host's switch among the end switches."""
    return np.searchsorted(routes.ends, topology.host_switch).astype(np.int32)


def source_keys(topology: Topology, routes: Routes) -> Ints:
    """(H,) source key of each host."""
    return routes.host_tree if routes.relation == "source_trees" else end_index(topology, routes)


def destination_keys(topology: Topology, routes: Routes) -> Ints:
    """(H,) destination key of each host."""
    return routes.host_tree if routes.relation == "destination_trees" else end_index(topology, routes)


def key_switches(routes: Routes) -> tuple[Ints, Ints]:
    """Switch of each source key and of each destination key."""
    source = routes.tree_root if routes.relation == "source_trees" else routes.ends
    destination = routes.tree_root if routes.relation == "destination_trees" else routes.ends
    return source, destination


def toward_root(topology: Topology, routes: Routes) -> Ints:
    """(C,) the end of each channel that is nearer to the root of a tree."""
    return topology.channel_source if routes.relation == "source_trees" else topology.channel_target


def tree_depths(topology: Topology, routes: Routes) -> Ints:
    """(T, S) hops between each switch and the root of each tree; negative where there is no path."""
    from testbed.fabric.kernels import trees

    return trees.depths(routes.tree_channel, toward_root(topology, routes), routes.tree_root)


def hops(topology: Topology, routes: Routes, source: int, destination: int) -> tuple[int, ...]:
    """Virtual channels from the switch of host `source` to that of `destination`, in order; none on one switch."""
    start, end = int(topology.host_switch[source]), int(topology.host_switch[destination])
    if start == end:
        return ()
    if routes.paths is not None:
        ends = end_index(topology, routes)
        pair = int(ends[source]) * len(routes.ends) + int(ends[destination])
        return tuple(routes.paths.hop[routes.paths.start[pair] : routes.paths.start[pair + 1]].tolist())
    from_root = routes.relation == "source_trees"
    tree = routes.tree_channel[routes.host_tree[source if from_root else destination]]
    nearer = toward_root(topology, routes)
    root, at = (start, end) if from_root else (end, start)
    channels: list[int] = []
    while at != root:
        channel = int(tree[at])
        channels.append(channel)
        at = int(nearer[channel])
    return tuple(reversed(channels)) if from_root else tuple(channels)


def path(topology: Topology, routes: Routes, source: int, destination: int) -> tuple[int, ...]:
    """Channels from the switch of host `source` to that of `destination`, in order, without their layers."""
    channels = len(topology.channel_source)
    return tuple(hop % channels for hop in hops(topology, routes, source, destination))


def all_paths(topology: Topology, routes: Routes) -> Paths:
    """Every path by (source key, destination key), row `source * number of destination keys + destination`.

    Beware of memory with trees: 4 bytes a hop, 17 million hops for a 32×32 torus.
    """
    if routes.paths is not None:
        return routes.paths
    from testbed.fabric.kernels import trees

    from_root = routes.relation == "source_trees"
    nearer = toward_root(topology, routes)
    start, hop = trees.explicit(
        routes.tree_channel, nearer, tree_depths(topology, routes), routes.ends, from_root, from_root
    )
    return Paths(start, hop)


def hop_counts(topology: Topology, routes: Routes) -> Ints:
    """(source keys, destination keys) hops between switches on each path."""
    if routes.paths is not None:
        count = len(routes.ends)
        return np.diff(routes.paths.start).astype(np.int32).reshape(count, count)
    depth = tree_depths(topology, routes)[:, routes.ends]
    return depth if routes.relation == "source_trees" else depth.T


def mean_switches_on_path(topology: Topology, routes: Routes) -> float:
    """Mean over all H² ordered host pairs; pairs on one switch and self pairs count 1 (Koibuchi 2011, Table 11)."""
    source, destination = _hosts_of_keys(topology, routes)
    total = float(source @ hop_counts(topology, routes) @ destination)
    return 1.0 + total / topology.host_count**2


def channel_load(topology: Topology, routes: Routes) -> Floats:
    """(C,) number of ordered host pairs whose path takes each channel (all-to-all traffic), all layers together."""
    channels = len(topology.channel_source)
    source, destination = _hosts_of_keys(topology, routes)
    if routes.paths is None:
        from testbed.fabric.kernels import trees

        on_switch = np.bincount(topology.host_switch, minlength=topology.switch_count).astype(np.float64)
        of_tree = source if routes.relation == "source_trees" else destination
        depth = tree_depths(topology, routes)
        nearer = toward_root(topology, routes)
        return trees.channel_weights(routes.tree_channel, nearer, depth, of_tree, on_switch, channels)
    weight = np.repeat((source[:, None] * destination[None, :]).reshape(-1), np.diff(routes.paths.start))
    load = np.bincount(routes.paths.hop % channels, weights=weight, minlength=channels)
    return np.asarray(load, dtype=np.float64)


def hops_of_pairs(topology: Topology, routes: Routes, source: Ints, destination: Ints) -> tuple[Longs, Longs]:
    """(N,) place of the pair in the lists and (N,) channel of every hop of the paths between hosts, in no order."""
    if routes.paths is not None:
        ends = end_index(topology, routes).astype(np.int64)
        pair = ends[source] * len(routes.ends) + ends[destination]
        flow, index = runs(routes.paths.start[pair], np.diff(routes.paths.start)[pair])
        return flow, routes.paths.hop[index].astype(np.int64) % max(len(topology.channel_source), 1)
    from_root = routes.relation == "source_trees"
    tree = routes.host_tree[source if from_root else destination]
    at = topology.host_switch[destination if from_root else source]
    nearer = toward_root(topology, routes)
    flow = np.arange(len(tree))
    found: list[tuple[Longs, Longs]] = []
    for _ in range(topology.switch_count):
        channel = routes.tree_channel[tree, at].astype(np.int64)
        under_way = (at != routes.tree_root[tree]) & (channel >= 0)
        if not under_way.any():
            break
        flow, tree, channel = flow[under_way], tree[under_way], channel[under_way]
        found.append((flow, channel))
        at = nearer[channel]
    none = np.zeros(0, dtype=np.int64)
    return tuple(np.concatenate([none, *(part[column] for part in found)]) for column in (0, 1))  # type: ignore[return-value]


def traffic_load(topology: Topology, routes: Routes, traffic: Floats) -> Floats:
    """(C,) what each channel carries of a traffic matrix (H, H), in its unit; pairs on one switch use none."""
    source, destination = (hosts.astype(np.int32) for hosts in np.nonzero(traffic))
    pair, channel = hops_of_pairs(topology, routes, source, destination)
    weight = traffic[source, destination][pair]
    channels = len(topology.channel_source)
    return np.asarray(np.bincount(channel, weights=weight, minlength=channels), dtype=np.float64)


def _hosts_of_keys(topology: Topology, routes: Routes) -> tuple[Floats, Floats]:
    """Number of hosts of each source key and of each destination key."""
    source_switch, destination_switch = key_switches(routes)
    source = np.bincount(source_keys(topology, routes), minlength=len(source_switch))
    destination = np.bincount(destination_keys(topology, routes), minlength=len(destination_switch))
    return source.astype(np.float64), destination.astype(np.float64)


def switches_on_path(topology: Topology, routes: Routes) -> Ints:
    """(H, H) number of switches on the path of each ordered pair of hosts; pairs on one switch count 1."""
    keys = np.ix_(source_keys(topology, routes), destination_keys(topology, routes))
    return 1 + hop_counts(topology, routes)[keys]
