"""Why a pair does not go by fewer hops than it does: one shortest path, and where on it the routing says no."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Ints, Routes, Topology
from testbed.experiments.analyse.channel_load import shortest_hops
from testbed.fabric.routing.channel_lookup import leaving_channels, switch_named
from testbed.fabric.routing.dimension_order import DorOptions
from testbed.fabric.routing.paths import channel_load
from testbed.fabric.routing.updown import UpDownOptions, upward_channels
from testbed.fabric.verify.deadlock import hop_name
from testbed.planning import Plan


@dataclass(frozen=True, slots=True)
class ProhibitedTurn:
    """A turn that a shorter path would take."""

    switch: str  # name of the switch
    in_port: int  # port by which a frame would come
    out_port: int  # port by which it would have to leave


@dataclass(frozen=True, slots=True)
class Shorter:
    """A path with fewer hops than the routing's own."""

    switches: tuple[str, ...]  # names of the switches on it
    hops: int  # links on it; no path has fewer
    reason: str  # why the routing does not take it, one sentence
    forbidden: ProhibitedTurn | None  # the first turn on it that the routing forbids; None where it is not for a turn


@dataclass(frozen=True, slots=True)
class _Walk:
    """The shortest path that a routing's rule allows to get farthest."""

    channels: tuple[int, ...]  # the whole path
    kept: int  # channels of it that the rule allows
    arrived: int  # the virtual channel of the last of these, or -1


class _Shortest:
    """Every shortest path between two switches: channels that lead one hop nearer."""

    def __init__(self, topology: Topology, start: int, end: int) -> None:
        self.topology = topology
        self.start = start
        # Links go both ways, so the hops from the end are those to it.
        self.left: Ints = shortest_hops(topology, np.array([end], dtype=np.int32))[0]
        self._first, self._leaving = leaving_channels(topology)

    def next_channels(self, switch: int) -> list[int]:
        """Channels that lead nearer, low port first."""
        channels = self._leaving[self._first[switch] : self._first[switch + 1]].tolist()
        target = self.topology.channel_target
        return [channel for channel in channels if self.left[target[channel]] == self.left[switch] - 1]

    def walk_farthest(self, begin: list[int], follow: Callable[[int], list[int]]) -> _Walk:
        """Walk as far as virtual channels that may begin a path, and those that may follow another, lead."""
        topology, channels = self.topology, max(len(self.topology.channel_source), 1)
        came_from: list[dict[int, int]] = []
        frontier = {hop: -1 for hop in sorted(begin) if hop % channels in self.next_channels(self.start)}
        while frontier:
            came_from.append(frontier)
            following: dict[int, int] = {}
            for hop in frontier:
                onward = self.next_channels(int(topology.channel_target[hop % channels]))
                for after in follow(hop):
                    if after % channels in onward:
                        following.setdefault(after, hop)
            frontier = dict(sorted(following.items()))
        path: list[int] = []
        hop = arrived = min(came_from[-1]) if came_from else -1
        for step in reversed(came_from):
            path.insert(0, hop % channels)
            hop = step[hop]
        at = int(topology.channel_target[path[-1]]) if path else self.start
        while self.left[at]:
            path.append(self.next_channels(at)[0])
            at = int(topology.channel_target[path[-1]])
        return _Walk(tuple(path), len(came_from), arrived)


def shorter_path(plan: Plan, source: int, destination: int, taken: tuple[int, ...]) -> Shorter | None:
    """Look for a path with fewer hops.

    `taken` are the virtual channels of the pair's path.

    Returns:
        one that the routing's rule allows to get as far as any, or None where the pair's path is a shortest.
    """
    topology, routes = plan.topology, plan.routes
    start, end = int(topology.host_switch[source]), int(topology.host_switch[destination])
    shortest = _Shortest(topology, start, end)
    if len(taken) <= shortest.left[start]:
        return None
    if routes.allowed is not None:
        walk = shortest.walk_farthest(*_by_turns(routes))
        reason, turn = _turn_reason(plan, walk)
    elif routes.paths is None:
        walk = shortest.walk_farthest(*_by_tree(topology, routes, source, destination))
        reason, turn = _tree_reason(plan, source, destination, walk, taken), None
    else:
        walk = shortest.walk_farthest([], lambda hop: [])
        reason, turn = f"{plan.scenario.routing_kind} does not use it", None
    names = [topology.switch_name(int(topology.channel_source[channel])) for channel in walk.channels]
    return Shorter((*names, topology.switch_name(end)), len(walk.channels), reason, turn)


def _by_turns(routes: Routes) -> tuple[list[int], Callable[[int], list[int]]]:
    turns = routes.allowed
    assert turns is not None
    begin: list[int] = np.flatnonzero(turns.entry).tolist()
    return begin, lambda hop: turns.following[turns.start[hop] : turns.start[hop + 1]].tolist()


def _by_tree(
    topology: Topology, routes: Routes, source: int, destination: int
) -> tuple[list[int], Callable[[int], list[int]]]:
    """Channels of the tree of the pair: those that enter switches, or those that leave them."""
    from_root = routes.relation == "source_trees"
    tree: list[int] = routes.tree_channel[routes.host_tree[source if from_root else destination]].tolist()
    channels = sorted(channel for channel in tree if channel >= 0)
    leaving: dict[int, list[int]] = {}
    for channel in channels:
        leaving.setdefault(int(topology.channel_source[channel]), []).append(channel)
    return channels, lambda hop: leaving.get(int(topology.channel_target[hop]), [])


def _turn_reason(plan: Plan, walk: _Walk) -> tuple[str, ProhibitedTurn | None]:
    topology, layers, kind = plan.topology, plan.routes.layers, plan.scenario.routing_kind
    if walk.kept == len(walk.channels):
        chosen = getattr(plan.scenario.routing, "selection", "")
        return (
            f"{kind} allows every turn of it; the selection of paths{f' ({chosen})' * bool(chosen)} left it out",
            None,
        )
    after = walk.channels[walk.kept]
    if not walk.kept:
        return f"{kind} lets no path begin with {topology.channel_name(after)}", None
    before = walk.channels[walk.kept - 1]
    switch = topology.switch_name(int(topology.channel_target[before]))
    turn = ProhibitedTurn(switch, int(topology.out_port[before ^ 1]), int(topology.out_port[after]))
    words = f"at {switch}, {kind} prohibits the turn from port {turn.in_port} to port {turn.out_port}"
    if layers > 1:
        words += f" for frames that come by {hop_name(topology, walk.arrived, layers)}, in every layer"
    if kind == "updown":
        options = plan.scenario.routing
        assert isinstance(options, UpDownOptions)
        up = upward_channels(topology, switch_named(topology, options.root, "root"))
        words += ", from down to up" if up[after] and not up[before] else ""
    return words, turn


def _tree_reason(plan: Plan, source: int, destination: int, walk: _Walk, taken: tuple[int, ...]) -> str:
    topology, routes, kind = plan.topology, plan.routes, plan.scenario.routing_kind
    if kind == "dor":
        reason = _ring_reason(plan, taken)
        if reason:
            return reason
    load = channel_load(topology, routes)
    for channel in walk.channels:
        if not load[channel] and not load[channel ^ 1]:
            ends = (topology.channel_source[channel], topology.channel_target[channel])
            link = "–".join(topology.switch_name(int(switch)) for switch in ends)
            return f"the link {link} is in no path of {kind}" + (": it is not in the spanning tree" * (kind == "stp"))
    channel = walk.channels[walk.kept]
    switch = int(topology.channel_target[channel])
    if routes.relation == "source_trees":
        own = int(routes.tree_channel[routes.host_tree[source], switch])
        if own < 0:
            return f"{kind} does not use it"
        name, sends = topology.switch_name, topology.channel_source
        return (
            f"paths from {topology.host_name(source)} are one tree, which enters {name(switch)} from "
            f"{name(int(sends[own]))} (port {topology.out_port[own ^ 1]}) and not from {name(int(sends[channel]))} "
            f"(port {topology.out_port[channel ^ 1]})"
        )
    at = int(topology.channel_source[channel])
    own = int(routes.tree_channel[routes.host_tree[destination], at])
    return (
        f"frames for {topology.host_name(destination)} leave {topology.switch_name(at)} to "
        f"{topology.switch_name(int(topology.channel_target[own]))} (port {topology.out_port[own]}) and not to "
        f"{topology.switch_name(switch)} (port {topology.out_port[channel]}), wherever they come from"
    )


def _ring_reason(plan: Plan, taken: tuple[int, ...]) -> str:
    """Say which dimension is crossed the long way round, and which rule of rings is to blame; empty without one."""
    topology, options = plan.topology, plan.scenario.routing
    assert isinstance(options, DorOptions)
    channels = np.array(taken, dtype=np.int64) % len(topology.channel_source)
    source, target = topology.channel_source[channels], topology.channel_target[channels]
    crossed = np.argmax(topology.coordinates[source] != topology.coordinates[target], axis=1)
    for dimension, size in enumerate(topology.sizes):
        count = int((crossed == dimension).sum())
        start, end = (int(topology.coordinates[switch, dimension]) for switch in (source[0], target[-1]))
        ahead = (end - start) % size
        long_way = ahead > 0 and count == max(ahead, size - ahead) > size - count
        if topology.kind not in ("torus", "ring") or size == 2 or not long_way:
            continue
        way = f"in dimension {dimension + 1} it goes from {start} to {end} in {count} hops and not {size - count}"
        up = ahead == size - count  # the short way: upward, or downward
        through = (end < start and end != 0) if up else (end > start and start != 0)
        if options.ring in ("auto", "no_transit") and through:
            return f"{way}: the short way passes through coordinate 0, and no path may (ring: no_transit)"
        return f"{way} (ring: {options.ring})"
    return ""
