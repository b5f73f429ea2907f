"""Explicit paths, the turns they may take, and deadlock freedom, checked before any VLAN is looked at.

Deadlock freedom is a channel dependency graph without a cycle (Dally and Seitz 1987).
"""

from __future__ import annotations

import numpy as np

from testbed.base.model import Bools, Ints, Longs, Paths, Routes, Topology, Violation
from testbed.fabric.routing.channel_lookup import leaving_channels, leaving_slots

DEADLOCK = "deadlock"


def find_deadlock(topology: Topology, pairs: Ints, layers: int = 1) -> list[Violation]:
    """A violation with one shortest cycle of channels, each waiting for the next, or nothing.

    `pairs`: (D, 2) virtual channels that some path takes one after the other.
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
    from testbed.fabric.kernels import cycles

    inside = cycles.on_cycles(start, following)
    return tuple(cycles.shortest_cycle(start, following, inside).tolist()) if inside.any() else ()


_SHOWN = 5


def check_routes(topology: Topology, routes: Routes) -> list[Violation]:
    """Check explicit paths: one a pair, contiguous, no U-turn, only allowed turns, no cycle of dependencies.

    The graph of all allowed turns must be acyclic as well, which is stronger than the turns that paths take; with
    backup paths the two sets of paths together must be.
    """
    found: list[Violation] = []
    if routes.allowed is not None:
        found += _allowed_cycle(topology, routes)
    if routes.paths is None:
        return found
    status, taken = _walk(topology, routes, routes.paths, backup=False)
    found += _report_bad_paths(topology, routes, status, "path")
    pairs = [taken]
    if routes.backup is not None:
        status, more = _walk(topology, routes, routes.backup, backup=True)
        found += _report_bad_paths(topology, routes, status, "backup path")
        pairs.append(more)
    if not any(violation.invariant == DEADLOCK for violation in found):
        found += find_deadlock(topology, np.concatenate(pairs), routes.layers)
    return found


def _allowed_cycle(topology: Topology, routes: Routes) -> list[Violation]:
    assert routes.allowed is not None
    cycle = shortest_cycle(routes.allowed.start, routes.allowed.following)
    if not cycle:
        return []
    names = tuple(hop_name(topology, hop, routes.layers) for hop in cycle)
    sentence = f"the turns the routing allows form a cycle: {' → '.join((*names, names[0]))}"
    return [Violation(DEADLOCK, sentence, names)]


def _walk(topology: Topology, routes: Routes, paths: Paths, *, backup: bool) -> tuple[Ints, Ints]:
    """(E, E) what is wrong with each path, and (D, 2) virtual channels taken one after the other."""
    from testbed.fabric.kernels import path_checks

    slot, degree = leaving_slots(topology)
    if routes.allowed is None:
        turns: tuple[Longs, Ints, Bools] = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.bool_))
    else:
        turns = (routes.allowed.start, routes.allowed.following, routes.allowed.entry)
    status, taken = path_checks.check_paths(
        paths.start, paths.hop, routes.ends, topology.channel_source, topology.channel_target, routes.layers, slot,
        degree, *turns, backup,
    )  # fmt: skip
    return status, turns_taken(topology, taken, degree)


def turns_taken(topology: Topology, taken: Bools, degree: int) -> Ints:
    """(D, 2) virtual channels taken one after the other.

    `taken`: (layers·C, layers·degree) True where the channel in that slot of a layer follows; see leaving_slots().
    """
    start, leaving = leaving_channels(topology)
    channels = max(len(leaving), 1)
    before, place = np.nonzero(taken)
    layer, rank = np.divmod(place, max(degree, 1))
    after = layer * channels + leaving[start[topology.channel_target[before % channels]] + rank]
    return np.stack([before, after], axis=1).astype(np.int32)


def _report_bad_paths(topology: Topology, routes: Routes, status: Ints, what: str) -> list[Violation]:
    from testbed.fabric.kernels import path_checks

    sentences = {
        path_checks.NO_PATH: f"have no {what}",
        path_checks.BROKEN: f"have a {what} whose links do not lead from one switch to the other",
        path_checks.U_TURN: f"have a {what} that goes back by the link it came by",
        path_checks.FORBIDDEN: f"have a {what} with a turn that the routing forbids",
        path_checks.WRONG_START: f"have a {what} that begins where the routing allows no path to begin",
    }
    found = []
    for code, sentence in sentences.items():
        rows = np.argwhere(status == code).tolist()
        if rows:
            names = tuple(
                f"{topology.switch_name(int(routes.ends[a]))}→{topology.switch_name(int(routes.ends[b]))}"
                for a, b in rows
            )
            shown = f"{', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
            found.append(Violation("path", f"{len(rows)} pairs of switches {sentence}: {shown}", names))
    return found
