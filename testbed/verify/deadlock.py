"""Deadlock freedom: no cycle in the channel dependency graph (Dally and Seitz 1987)."""

from __future__ import annotations

import numpy as np

from testbed.model import Ints, Longs, Topology, Violation

DEADLOCK = "deadlock"


def find_deadlock(topology: Topology, pairs: Ints, layers: int = 1) -> list[Violation]:
    """A violation with one shortest cycle of channels, each waiting for the next, or nothing.

    Args:
        topology: the network.
        pairs: (D, 2) virtual channels that some path takes one after the other.
        layers: number of layers.
    """
    channels = len(topology.channel_source)
    cycle = shortest_cycle(*adjacency(channels * layers, pairs))
    if not cycle:
        return []
    names = tuple(hop_name(topology, hop, layers) for hop in cycle)
    sentence = f"the channel dependency graph has a cycle: {' waits for '.join((*names, names[0]))}"
    return [Violation(DEADLOCK, sentence, names)]


def hop_name(topology: Topology, hop: int, layers: int) -> str:
    """Name of a virtual channel: that of the channel, with `@layer` appended where there are layers."""
    layer, channel = divmod(hop, len(topology.channel_source))
    return f"{topology.channel_name(channel)}@{layer}" if layers > 1 else topology.channel_name(channel)


def adjacency(nodes: int, pairs: Ints) -> tuple[Longs, Ints]:
    """(nodes + 1,) offsets and (D,) followers of a graph given as pairs."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    start = np.searchsorted(pairs[order, 0], np.arange(nodes + 1))
    return start.astype(np.int64), np.ascontiguousarray(pairs[order, 1], dtype=np.int32)


def shortest_cycle(start: Longs, following: Ints) -> tuple[int, ...]:
    """One shortest cycle of a graph, its smallest node first, or () if there is none."""
    if not len(following):
        return ()
    from testbed.kernels import cycles

    inside = cycles.on_cycles(start, following)
    return tuple(cycles.shortest_cycle(start, following, inside).tolist()) if inside.any() else ()
