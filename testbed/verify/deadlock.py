"""Deadlock freedom: no cycle in the channel dependency graph (Dally and Seitz 1987)."""

from __future__ import annotations

from collections import deque

import numpy as np

from testbed.model import Ints, Topology, Violation
from testbed.verify.delivery import Walk
from testbed.verify.peel import peel_sources_and_sinks

DEADLOCK = "deadlock"


def find_deadlock(topology: Topology, steps: Walk) -> list[Violation]:
    """A violation with one shortest cycle of channels, each waiting for the next, or nothing."""
    cycle = shortest_cycle(len(topology.channel_source), dependencies(topology, steps))
    if not cycle:
        return []
    names = tuple(topology.channel_name(channel) for channel in cycle)
    sentence = f"the channel dependency graph has a cycle: {' waits for '.join((*names, names[0]))}"
    return [Violation(DEADLOCK, sentence, names)]


def dependencies(topology: Topology, steps: Walk) -> Ints:
    """(D, 2) pairs of channels that some path takes one after the other."""
    count = len(topology.channel_source)
    used = [np.zeros(0, dtype=np.int64)]
    for before, after in zip(steps.hops[:-1], steps.hops[1:], strict=True):
        both = (before >= 0) & (after >= 0)
        used.append(np.unique(before[both].astype(np.int64) * count + after[both]))
    pairs = np.unique(np.concatenate(used))
    return np.stack([pairs // count, pairs % count], axis=1).astype(np.int32) if count else np.zeros((0, 2), np.int32)


def shortest_cycle(channel_count: int, pairs: Ints) -> tuple[int, ...]:
    """One shortest cycle of the graph, its smallest channel first, or () if there is none.

    Args:
        channel_count: C.
        pairs: (D, 2) dependencies.
    """
    inside = peel_sources_and_sinks(pairs, channel_count)
    following: dict[int, list[int]] = {}
    for before, after in inside.tolist():
        following.setdefault(before, []).append(after)
    best: tuple[int, ...] = ()
    for start in following:
        cycle = _cycle_through(start, following, len(best) - 1 if best else channel_count)
        if cycle:
            best = cycle
    smallest = best.index(min(best)) if best else 0
    return best[smallest:] + best[:smallest]


def _cycle_through(start: int, following: dict[int, list[int]], longest: int) -> tuple[int, ...]:
    """A shortest cycle through `start` of at most `longest` channels, or ()."""
    came_from: dict[int, int] = {}
    depth = {start: 1}
    waiting = deque([start])
    while waiting:
        channel = waiting.popleft()
        if depth[channel] > longest:
            return ()
        for after in following[channel]:
            if after == start:
                back = [channel]
                while back[-1] != start:
                    back.append(came_from[back[-1]])
                return tuple(reversed(back))
            if after not in depth:
                depth[after] = depth[channel] + 1
                came_from[after] = channel
                waiting.append(after)
    return ()
