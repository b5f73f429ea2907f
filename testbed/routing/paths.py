"""Paths out of routes: the channels from one host's switch to another's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from testbed.model import Ints, Routes, Topology


def path(topology: Topology, routes: Routes, source: int, destination: int) -> tuple[int, ...]:
    """Channels from the switch of host `source` to that of `destination`, in order; empty on one switch."""
    start, end = int(topology.host_switch[source]), int(topology.host_switch[destination])
    channels: list[int] = []
    if routes.relation == "source_trees":
        parent = routes.parent_channel[routes.host_tree[source]]
        while end != start:
            channel = int(parent[end])
            channels.append(channel)
            end = int(topology.channel_source[channel])
        channels.reverse()
    else:
        while start != end:
            channel = int(routes.next_channel[start, end])
            channels.append(channel)
            start = int(topology.channel_target[channel])
    return tuple(channels)


def path_steps(topology: Topology, routes: Routes) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Walk the paths of all ordered host pairs at once, one hop at a time, backward for source trees.

    Yields:
        (source, destination, channel): int arrays of equal length, the host pairs still under way and the
        channel each takes in this step. Self pairs and pairs of one switch take none.
    """
    hosts = topology.host_count
    source = np.repeat(np.arange(hosts, dtype=np.int32), hosts)
    destination = np.tile(np.arange(hosts, dtype=np.int32), hosts)
    start, end = topology.host_switch[source], topology.host_switch[destination]
    backward = routes.relation == "source_trees"
    for _ in range(topology.switch_count + 1):
        under_way = start != end
        source, destination, start, end = (a[under_way] for a in (source, destination, start, end))
        if not len(source):
            return
        if backward:
            channel = routes.parent_channel[routes.host_tree[source], end]
            end = np.where(channel >= 0, topology.channel_source[channel], start)
        else:
            channel = routes.next_channel[start, end]
            start = np.where(channel >= 0, topology.channel_target[channel], end)
        yield source, destination, channel
    raise AssertionError("routes contain a loop")  # routings make trees or shrink the distance


def switches_on_path(topology: Topology, routes: Routes) -> Ints:
    """(H, H) number of switches on the path of each ordered pair; same-switch and self pairs count 1."""
    count = np.ones((topology.host_count, topology.host_count), dtype=np.int32)
    for source, destination, _ in path_steps(topology, routes):
        count[source, destination] += 1
    return count


def channel_load(topology: Topology, routes: Routes) -> Ints:
    """(C,) number of ordered host pairs whose path takes each channel (all-to-all traffic)."""
    load = np.zeros(len(topology.channel_source), dtype=np.int64)
    for _, _, channel in path_steps(topology, routes):
        load += np.bincount(channel, minlength=len(load))
    return load.astype(np.int32)
