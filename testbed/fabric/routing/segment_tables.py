"""Tables of segment-based routing (next hop by port of arrival and destination), mended locally or computed anew."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from testbed.base.model import AllowedTurns, Bools, Ints, Topology
from testbed.fabric.routing.segment_changes import Segmentation, after_change, list_allowed_turns, segmentation
from testbed.fabric.routing.turns import by_switch, no_path
from testbed.fabric.topologies.build_topology import components
from testbed.fabric.topologies.faults import find_surviving_part

DELIVER, NEVER = -1, -2


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Next hops by channel of arrival and destination (C×N→C).

    `next_hop` is (C + S, S): of frames that arrive by channel c for switch d the channel they leave by at [c, d], of
    frames from a host of switch s at [C + s, d]; DELIVER where d is reached, NEVER where no path comes.
    """

    next_hop: Ints
    ends: Ints  # switches with hosts that are connected with each other

    def count_changes(self, before: Tables, topology: Topology) -> tuple[int, int]:
        """How many switches need another entry than they had, and how many entries that is."""
        new = (self.next_hop != before.next_hop) & (self.next_hop != NEVER)
        at = np.concatenate([topology.channel_target, np.arange(topology.switch_count)])
        return len(np.unique(at[new.any(axis=1)])), int(new.sum())

    def channel_load(self, topology: Topology) -> Ints:
        """(C,) how many paths take each channel, one for each ordered pair of end switches."""
        load = np.zeros(len(topology.channel_source), dtype=np.int32)
        for source in self.ends.tolist():
            for end in self.ends.tolist():
                for channel in self.path(topology, source, end):
                    load[channel] += 1
        return load

    def path(self, topology: Topology, source: int, end: int) -> tuple[int, ...]:
        """Channels from one switch to another."""
        found: list[int] = []
        hop = int(self.next_hop[len(topology.channel_source) + source, end]) if source != end else DELIVER
        while hop != DELIVER:
            assert hop != NEVER
            assert len(found) <= len(topology.channel_source)
            found.append(hop)
            hop = int(self.next_hop[hop, end])
        return tuple(found)


def connected_ends(topology: Topology, alive: Bools) -> Ints:
    """Switches with hosts, of the part of a fabric that has most of them (the first such)."""
    part = components(topology.switch_count, topology.links[alive])[0]
    with_hosts = np.unique(topology.host_switch)
    parts, count = np.unique(part[with_hosts], return_counts=True)
    found: Ints = with_hosts[part[with_hosts] == parts[count.argmax()]].astype(np.int32)
    return found


def new_tables(topology: Topology, turns: AllowedTurns, ends: Ints) -> Tables:
    """Shortest legal paths with balanced load, computed for all destinations.

    Raises:
        InputError: a pair has no legal path (names it).
    """
    from testbed.fabric.kernels import turns as kernels

    channels = len(topology.channel_source)
    hosts = np.bincount(topology.host_switch, minlength=topology.switch_count)[ends].astype(np.int32)
    leaving = by_switch(topology.channel_source, topology.switch_count)
    arriving = by_switch(topology.channel_target, topology.switch_count)
    start, hop, lost = kernels.consistent_paths(
        ends, hosts, turns.start, turns.following, turns.entry, *leaving, *arriving, max(channels, 1),
        np.arange(len(ends), dtype=np.int32),
    )  # fmt: skip
    if len(lost):
        raise no_path(topology, int(ends[lost[0]]), int(ends[lost[1]]))
    table = np.full((channels + topology.switch_count, topology.switch_count), NEVER, dtype=np.int32)
    pair = np.repeat(np.arange(len(start) - 1), np.diff(start))
    source, end = ends[pair // len(ends)], ends[pair % len(ends)]
    last = np.append(pair[1:] != pair[:-1], True) if len(pair) else np.zeros(0, dtype=bool)
    table[hop, end] = np.where(last, DELIVER, np.append(hop[1:], DELIVER)[: len(hop)])
    first = np.append(True, pair[1:] != pair[:-1]) if len(pair) else last
    table[channels + source[first], end[first]] = hop[first]
    return Tables(table, ends)


def mended_tables(topology: Topology, before: Tables, turns: AllowedTurns, ends: Ints) -> Tables:
    """Keep every path that is still legal, and give the others the shortest legal way to one, or to the destination.

    Raises:
        InputError: a pair has no legal path (names it).
    """
    channels = len(topology.channel_source)
    table = np.full_like(before.next_hop, NEVER)
    start, following = turns.start.tolist(), turns.following.tolist()
    preceding: list[list[int]] = [[] for _ in range(channels)]
    for channel in range(channels):
        for after in following[start[channel] : start[channel + 1]]:
            preceding[after].append(channel)
    leaving: list[list[int]] = [[] for _ in range(topology.switch_count)]
    for channel in np.flatnonzero(turns.entry).tolist():
        leaving[int(topology.channel_source[channel])].append(channel)
    allowed = {(channel, after) for after, some in enumerate(preceding) for channel in some}
    entry, target = turns.entry.tolist(), topology.channel_target.tolist()
    for end in ends.tolist():
        column = before.next_hop[:, end].tolist()
        whole = _find_legal_paths(column[:channels], allowed, entry, target, end)
        broken = [source for source in ends.tolist() if source != end and whole.get(column[channels + source]) is None]
        for source in ends.tolist():
            if source != end and source not in broken:
                hop = table[channels + source, end] = column[channels + source]
                while hop != DELIVER and table[hop, end] == NEVER:
                    table[hop, end] = column[hop]
                    hop = column[hop]
        if not broken:
            continue
        kept = {hop for hop in range(channels) if table[hop, end] != NEVER}
        distance, onward = _distances(preceding, entry, target, end, {hop: whole[hop] for hop in kept})
        for source in broken:
            ways = [(distance[hop], hop) for hop in leaving[source] if hop in distance]
            if not ways:
                raise no_path(topology, source, end)
            hop = min(ways)[1]
            table[channels + source, end] = hop
            while hop != DELIVER and table[hop, end] == NEVER:
                table[hop, end] = onward[hop]
                hop = onward[hop]
    return Tables(table, ends)


def _find_legal_paths(
    column: list[int], allowed: set[tuple[int, int]], entry: list[bool], target: list[int], end: int
) -> dict[int, int]:
    """Channels from which the old path to a destination is still legal, and its length from there."""
    length: dict[int, int] = {}
    broken: set[int] = set()
    for first in range(len(column)):
        way = []
        hop = first
        while hop not in length and hop not in broken:
            following = column[hop]
            way.append(hop)
            if following == DELIVER and entry[hop] and target[hop] == end:
                length[hop] = 1
            elif following < 0 or not entry[hop] or (hop, following) not in allowed:
                broken.add(hop)
            hop = following if hop not in length and hop not in broken else hop
        for hop in reversed(way):
            if hop in length or hop in broken:
                continue
            if column[hop] in length:
                length[hop] = length[column[hop]] + 1
            else:
                broken.add(hop)
    return length


def _distances(
    preceding: list[list[int]], entry: list[bool], target: list[int], end: int, kept: dict[int, int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Length of the shortest way from each channel, by allowed turns and then by what is kept, and its next hop.

    A channel whose next hop is kept has no other, so the table stays one.
    """
    waiting = [(length, channel, NEVER) for channel, length in kept.items()]
    waiting += [(1, channel, DELIVER) for channel in range(len(target)) if target[channel] == end and entry[channel]]
    heapq.heapify(waiting)
    distance: dict[int, int] = {}
    onward: dict[int, int] = {}
    while waiting:
        length, channel, following = heapq.heappop(waiting)
        if channel in distance or (channel in kept and following != NEVER):
            continue
        distance[channel], onward[channel] = length, following
        for before in preceding[channel]:
            if before not in distance and before not in kept:
                heapq.heappush(waiting, (length + 1, before, channel))
    return distance, onward


@dataclass(frozen=True, slots=True)
class SegmentHop:
    """A change, answered locally and by computing everything anew."""

    found: Segmentation
    tables: Tables
    switches: int  # that need another entry when only what the change hits is mended
    entries: int
    anew_switches: int  # likewise when segments and paths are computed as for a new fabric
    anew_entries: int
    anew: Tables


def first_step(topology: Topology, start: int) -> SegmentHop:
    """Segments and tables of the whole fabric."""
    alive = np.ones(topology.link_count, dtype=np.bool_)
    found = segmentation(topology, start)
    tables = new_tables(topology, list_allowed_turns(topology, found, alive), connected_ends(topology, alive))
    return SegmentHop(found, tables, 0, 0, 0, 0, tables)


def next_step(topology: Topology, before: SegmentHop, alive: Bools) -> SegmentHop:
    """What a change takes, beside the tables there are.

    Raises:
        InputError: a pair of switches has no legal path (names it).
    """
    ends = connected_ends(topology, alive)
    found = after_change(topology, before.found, alive)
    tables = mended_tables(topology, before.tables, list_allowed_turns(topology, found, alive), ends)
    anew = _rebuild_tables(topology, before.found.start, alive, ends)
    return SegmentHop(
        found,
        tables,
        *tables.count_changes(before.tables, topology),
        *anew.count_changes(before.tables, topology),
        anew,
    )


def _rebuild_tables(topology: Topology, start: int, alive: Bools, ends: Ints) -> Tables:
    """Tables of what is left as if it were a fabric of its own, in the numbers of the whole."""
    part = components(topology.switch_count, topology.links[alive])[0]
    switches = part == part[ends[0]]
    links = alive & switches[topology.links].all(axis=1)
    left = find_surviving_part(topology, switches, links)
    number = np.cumsum(switches) - 1
    begin = int(number[start]) if switches[start] else 0
    there = np.ones(left.link_count, dtype=np.bool_)
    small = new_tables(left, list_allowed_turns(left, segmentation(left, begin), there), number[ends].astype(np.int32))
    of_switch = np.flatnonzero(switches)
    of_link = np.flatnonzero(links)
    of_channel = (2 * of_link[:, None] + np.arange(2)).reshape(-1).astype(np.int32)
    channels = len(topology.channel_source)
    rows = np.concatenate([of_channel, channels + of_switch])
    table = np.full((channels + topology.switch_count, topology.switch_count), NEVER, dtype=np.int32)
    hop = small.next_hop
    table[rows[:, None], of_switch[None, :]] = np.where(hop >= 0, of_channel[np.maximum(hop, 0)], hop)
    return Tables(table, ends)
