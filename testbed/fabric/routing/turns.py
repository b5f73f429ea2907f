"""Routings by turns: what may follow what, as a graph of virtual channels, and paths chosen on it.

A routing by turns is `AllowedTurns`; a path is a walk on that graph. The graph without a cycle is the proof of
deadlock freedom, whichever paths are chosen. Some routings are made from a list of the turns that they prohibit.
"""

from __future__ import annotations

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import AllowedTurns, Bools, Ints, Longs, Paths, Topology
from testbed.fabric.routing.channel_lookup import host_switches, leaving_channels, runs


def all_turns(topology: Topology) -> tuple[Ints, Ints]:
    """Every turn of the fabric that is no U-turn.

    Returns:
        (A,) channel before and (A,) channel after, ordered by both.
    """
    start, leaving = leaving_channels(topology)
    target = topology.channel_target
    row, index = runs(start[target], np.diff(start)[target])
    before, after = row.astype(np.int32), leaving[index]
    straight = after != before ^ 1
    before, after = before[straight], after[straight]
    order = np.lexsort((after, before))
    return before[order], after[order]


def allow(topology: Topology, allowed: Bools, before: Ints, after: Ints) -> AllowedTurns:
    """Make the graph of a routing in one layer. `allowed`: (A,) True for turns that may be taken."""
    channels = len(topology.channel_source)
    return graph_of(channels, before[allowed], after[allowed], np.ones(channels, dtype=bool))


def graph_of(nodes: int, before: Ints, after: Ints, entry: Bools) -> AllowedTurns:
    """Make the graph of turns between virtual channels, in any order."""
    order = np.lexsort((after, before))
    start = np.searchsorted(before[order], np.arange(nodes + 1)).astype(np.int64)
    return AllowedTurns(start, np.ascontiguousarray(after[order], dtype=np.int32), entry)


def by_switch(switch: Ints, switches: int) -> tuple[Longs, Ints]:
    """(S + 1,) offsets and (N,) virtual channels ordered by a switch each has."""
    order = np.argsort(switch, kind="stable").astype(np.int32)
    return np.searchsorted(switch[order], np.arange(switches + 1)).astype(np.int64), order


def consistent_paths(topology: Topology, turns: AllowedTurns) -> Paths:
    """One shortest legal path a pair with one next hop for each virtual channel and destination (C×N→C).

    Load is balanced greedily, destination by destination; the spread of the load is a little larger than that of a
    free choice, but the paths fit every assignment that looks at the port of arrival.

    Raises:
        InputError: a pair has no legal path (names it).
    """
    from testbed.fabric.kernels import turns as kernels

    ends = host_switches(topology)
    hosts = np.bincount(topology.host_switch, minlength=topology.switch_count)[ends].astype(np.int32)
    channels = len(topology.channel_source)
    layers = max(1, (len(turns.start) - 1) // max(channels, 1))
    leaving_start, leaving = by_switch(np.tile(topology.channel_source, layers), topology.switch_count)
    arriving_start, arriving = by_switch(np.tile(topology.channel_target, layers), topology.switch_count)
    start, hop, lost = kernels.consistent_paths(
        ends, hosts, turns.start, turns.following, turns.entry, leaving_start, leaving, arriving_start, arriving,
        max(channels, 1), np.arange(len(ends), dtype=np.int32),
    )  # fmt: skip
    if len(lost):
        raise no_path(topology, int(ends[lost[0]]), int(ends[lost[1]]))
    return Paths(start, hop)


def no_path(topology: Topology, source: int, end: int) -> InputError:
    """Make the error of a pair without a legal path."""
    return InputError.one(
        "routing.kind",
        f"leaves no legal path from {topology.switch_name(source)} to {topology.switch_name(end)}; "
        'use another routing, such as "updown"',
    )


def breadth_first_levels(topology: Topology, root: int) -> Ints:
    """(S,) hops from a root; -1 beyond reach."""
    level = np.full(topology.switch_count, -1, dtype=np.int32)
    level[root] = 0
    while True:
        known = level[topology.channel_source]
        step = (known >= 0) & (level[topology.channel_target] < 0)
        if not step.any():
            return level
        # All channels of one round start at the same level: those before were followed in an earlier round.
        level[topology.channel_target[step]] = known[step] + 1


def allow_all_but(topology: Topology, prohibited: Ints) -> AllowedTurns:
    """Make the graph of a routing in one layer that prohibits turns both ways.

    `prohibited`: (N, 2) channel that enters a switch and channel that leaves it; the way back, from the reverse of the
    second to the reverse of the first, is prohibited with it.
    """
    before, after = all_turns(topology)
    pairs = np.concatenate([prohibited, prohibited[:, ::-1] ^ 1])
    channels = max(len(topology.channel_source), 1)
    key = before.astype(np.int64) * channels + after
    forbidden = np.isin(key, pairs[:, 0].astype(np.int64) * channels + pairs[:, 1])
    return allow(topology, ~forbidden, before, after)


def prohibited_turns(topology: Topology, allowed: AllowedTurns) -> tuple[int, int]:
    """Count the turns that no path may take, in any layer, and all turns there are.

    A turn is an ordered pair of channels at a switch that is no U-turn; where turns are prohibited both ways the
    share is the same as that of unordered pairs of links (Pellegrini et al. 2004).
    """
    channels = max(len(topology.channel_source), 1)
    before = np.repeat(np.arange(len(allowed.start) - 1), np.diff(allowed.start)) % channels
    taken = np.unique(before * channels + allowed.following % channels)
    total = len(all_turns(topology)[0])
    return total - len(taken), total
