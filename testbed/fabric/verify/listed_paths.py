"""Whole paths that others have computed, any number a pair: delivery, loops and deadlock freedom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from testbed.base.model import Ints, Longs, Topology, Violation
from testbed.fabric.routing.channel_lookup import host_switches
from testbed.fabric.verify.deadlock import find_deadlock
from testbed.fabric.verify.next_hop_choices import DELIVERY, LOOP, ChoiceProof

_SHOWN = 5
_MOST_NAMED = 1000


@dataclass(frozen=True, slots=True, eq=False)
class ListedPaths:
    """Paths of switches; a pair may have several, any of which its frames take."""

    start: Longs  # (P + 1,) offset of the first hop of each path; none is empty
    hop: Ints  # (N,) virtual channels, each leaving the switch that the one before enters
    layers: int  # layers that hops are in


def check_listed_paths(topology: Topology, paths: ListedPaths) -> ChoiceProof:
    """Check that each pair has a path, that none passes a switch twice, and that no cycle of channels is possible."""
    channels = max(len(topology.channel_source), 1)
    ends = host_switches(topology)
    place = np.full(topology.switch_count, -1, dtype=np.int64)
    place[ends] = np.arange(len(ends))
    channel = paths.hop.astype(np.int64) % channels
    first, last = paths.start[:-1], paths.start[1:] - 1
    source, goal = topology.channel_source[channel[first]], topology.channel_target[channel[last]]
    row = np.repeat(np.arange(len(first)), np.diff(paths.start))
    # A path passes a switch twice where one is entered twice, or where it comes back to its source.
    entered = np.concatenate([row, np.arange(len(first))]) * topology.switch_count
    entered += np.concatenate([topology.channel_target[channel], source])
    visits = np.sort(entered)
    twice = np.unique(visits[1:][visits[1:] == visits[:-1]] // topology.switch_count)
    there = np.eye(len(ends), dtype=bool)
    of_ends = (place[source] >= 0) & (place[goal] >= 0)
    there[place[source[of_ends]], place[goal[of_ends]]] = True
    pairs = len(ends) * (len(ends) - 1)
    found = []
    lost = [(int(ends[a]), int(ends[b])) for a, b in np.argwhere(~there).tolist()]
    if lost:
        names = _name_pairs(topology, lost)
        found.append(Violation(DELIVERY, f"{len(lost)} of {pairs} pairs have no path: {_abbreviate(names)}", names))
    loops = sorted({(int(source[path]), int(goal[path])) for path in twice.tolist()})
    if loops:
        path = int(twice[0])
        way = topology.channel_target[channel[paths.start[path] : paths.start[path + 1]]].tolist()
        words = " → ".join(topology.switch_name(switch) for switch in [int(source[path]), *way])
        found.append(
            Violation(
                LOOP, f"paths of {len(loops)} pairs pass a switch twice, such as {words}", _name_pairs(topology, loops)
            )
        )
    follows = row[1:] == row[:-1]
    taken = np.unique(np.stack([paths.hop[:-1][follows], paths.hop[1:][follows]], axis=1), axis=0)
    found += find_deadlock(topology, taken.astype(np.int32), paths.layers)
    bad = {*lost, *loops}
    return ChoiceProof(pairs, pairs - len(bad), len(loops), tuple(found))


def _name_pairs(topology: Topology, pairs: list[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(f"{topology.switch_name(a)}→{topology.switch_name(b)}" for a, b in pairs[:_MOST_NAMED])


def _abbreviate(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
