"""From switch pairs to a `Topology` with ports and channels, and which switches links connect; for every topology."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.model import Bools, Floats, Ints, Topology


@dataclass(frozen=True, slots=True)
class Extent:
    """How large a topology is, known before it is built."""

    switches: int  # S
    links: int  # L, physical links between switches
    hosts: int  # H


def make_topology(
    kind: str,
    pairs: Sequence[tuple[int, int]],
    hosts_on: Sequence[int],
    positions: Floats,
    *,
    parallel_links: int | Sequence[int] = 1,
    sizes: tuple[int, ...] = (),
    coordinates: Ints | None = None,
    levels: Sequence[int] | Ints | None = None,
    switch_names: Sequence[str] = (),
    host_names: Sequence[str] = (),
    switch_labels: Sequence[str] = (),
    faults: Sequence[str] = (),
) -> Topology:
    """Number ports and channels.

    Args:
        kind: name of the topology.
        pairs: neighbouring switches, each pair once.
        hosts_on: number of hosts of each switch; hosts are numbered in switch order.
        positions: (S, 2) where to draw each switch.
        parallel_links: physical links for every pair, or of each pair.
        sizes: extents of a grid.
        coordinates: (S, len(sizes)) of a grid.
        levels: height of each switch in a tree-like network, 0 for leaves.
        switch_names: (S,) or empty for s1, s2, ….
        host_names: (H,) or empty for h1, h2, ….
        switch_labels: (S,) what the switches are called where the fabric comes from, or empty.
        faults: what is dead, in words.
    """
    switch_count = len(hosts_on)
    links, plane = _physical_links(pairs, parallel_links)
    host_switch = np.repeat(np.arange(switch_count, dtype=np.int32), np.asarray(hosts_on, dtype=np.int64))
    channel_source = links.reshape(-1)
    channel_target = links[:, ::-1].reshape(-1)

    # A port is the rank of a host or channel among those of its switch, in order, hosts first.
    owner = np.concatenate([host_switch, channel_source])
    order = np.argsort(owner, kind="stable")
    port_count = np.bincount(owner, minlength=switch_count)
    first = np.concatenate([[0], np.cumsum(port_count)[:-1]])
    port = np.empty(len(owner), dtype=np.int32)
    port[order] = np.arange(len(owner)) - first[owner[order]] + 1

    hosts = len(host_switch)
    return Topology(
        kind=kind,
        switch_count=switch_count,
        links=links,
        plane=plane,
        host_switch=host_switch,
        sizes=sizes,
        coordinates=coordinates if coordinates is not None else np.zeros((switch_count, 0), dtype=np.int32),
        levels=np.asarray(levels if levels is not None else [0] * switch_count, dtype=np.int32),
        positions=np.asarray(positions, dtype=np.float64).reshape(switch_count, 2),
        host_port=port[:hosts],
        channel_source=np.ascontiguousarray(channel_source),
        channel_target=np.ascontiguousarray(channel_target),
        out_port=port[hosts:],
        port_count=port_count.astype(np.int32),
        switch_names=tuple(switch_names),
        host_names=tuple(host_names),
        switch_labels=tuple(switch_labels),
        faults=tuple(faults),
    )


def _physical_links(pairs: Sequence[tuple[int, int]], parallel_links: int | Sequence[int]) -> tuple[Ints, Ints]:
    """(L, 2) ends and (L,) plane of each link, those of a pair in consecutive rows."""
    count = np.broadcast_to(np.asarray(parallel_links, dtype=np.int64), (len(pairs),))
    links = np.repeat(np.asarray(pairs, dtype=np.int32).reshape(-1, 2), count, axis=0)
    first = np.repeat(np.cumsum(count) - count, count)
    return links, (np.arange(len(links)) - first).astype(np.int32)


def on_circle(count: int) -> Floats:
    """Positions of `count` switches on a circle, the first at the top, clockwise."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    radius = max(1.0, count / 5)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def on_nested_circles(sizes: Sequence[int]) -> Floats:
    """Positions of switches numbered as in a grid: blocks of the first size on circles, these on circles, and so on."""
    places = np.zeros((1, 2))
    reach = 0.0  # from the middle of a block to its outermost switch
    for size in sizes:
        # Neighbouring blocks are a unit apart.
        radius = (2 * reach + 1) / (2 * np.sin(np.pi / size)) if size > 1 else 0.0
        angle = np.pi / 2 - 2 * np.pi * np.arange(size) / size
        middles = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        places = (middles[:, None] + places[None]).reshape(-1, 2)
        reach += radius
    return places


def count_pairs(pairs: Iterable[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Each pair once, in the order and direction of its first mention, and how often it is mentioned."""
    count: dict[tuple[int, int], int] = {}
    for a, b in pairs:
        pair = (b, a) if (b, a) in count else (a, b)
        count[pair] = count.get(pair, 0) + 1
    return list(count), list(count.values())


def in_rows(rows: Sequence[Sequence[int]]) -> Floats:
    """Positions of switches drawn in centred rows, the first row at the bottom, two units apart."""
    widest = max(len(row) for row in rows)
    positions = np.zeros((sum(len(row) for row in rows), 2))
    for height, row in enumerate(rows):
        step = widest / len(row)
        for place, switch in enumerate(row):
            positions[switch] = ((place + 0.5) * step, 2.0 * height)
    return positions


def components(switch_count: int, links: Ints) -> tuple[Ints, Bools]:
    """Find the connected parts.

    `links`: (L, 2) ends.

    Returns:
        (S,) the lowest switch of each switch's part; (L,) True where a link closes a cycle with earlier ones, so
        that taking it out, alone, divides nothing.
    """
    lowest = list(range(switch_count))

    def find(switch: int) -> int:
        while lowest[switch] != switch:
            lowest[switch] = lowest[lowest[switch]]
            switch = lowest[switch]
        return switch

    closing = np.zeros(len(links), dtype=bool)
    for row, (a, b) in enumerate(links.tolist()):
        low, high = sorted((find(a), find(b)))
        closing[row] = low == high
        lowest[high] = low
    return np.array([find(switch) for switch in range(switch_count)], dtype=np.int32), closing


def find_disconnected_pair(switch_count: int, links: Ints) -> tuple[int, int] | None:
    """Two switches between which there is no path, or None."""
    part, _ = components(switch_count, links)
    others = np.flatnonzero(part != 0)
    return (0, int(others[0])) if len(others) else None
