"""What routings are built from: switches with hosts, channels by their switch, parallel links; and why one refuses."""

from __future__ import annotations

import numpy as np

from testbed.base.errors import InputError, did_you_mean
from testbed.base.model import AllowedTurns, Ints, Longs, Paths, Routes, Topology
from testbed.fabric.topologies.any_graph import quote_name


def host_switches(topology: Topology) -> Ints:
    """Switches that have at least one host, ascending."""
    return np.unique(topology.host_switch)


def source_trees(topology: Topology, trees: Ints, roots: Ints, notes: tuple[str, ...] = ()) -> Routes:
    """Routes of one tree a switch with hosts; `roots` ascending."""
    host_tree = np.searchsorted(roots, topology.host_switch).astype(np.int32)
    return Routes("source_trees", host_switches(topology), trees, roots, host_tree, notes=notes)


def explicit_routes(
    topology: Topology, paths: Paths, allowed: AllowedTurns | None, layers: int = 1, notes: tuple[str, ...] = ()
) -> Routes:
    """Routes of one explicit path a pair of switches with hosts."""
    none = np.zeros(0, dtype=np.int32)
    trees = np.zeros((0, topology.switch_count), dtype=np.int32)
    ends = host_switches(topology)
    return Routes("paths", ends, trees, none, none, layers, paths, allowed=allowed, notes=notes)


def plane_groups(topology: Topology, roots: Ints, planes_used: int = 1) -> Ints:
    """Plane offset of each source tree: parallel links beyond those a routing needs share the sources.

    `planes_used` are those that the routing itself distinguishes.

    Returns:
        (T,) the first plane of the group of planes that tree uses.
    """
    groups = max(1, topology.parallel_links // planes_used)
    return ((roots % groups) * planes_used).astype(np.int32)


def parallel_of_pair(topology: Topology) -> Ints:
    """(C + 1,) living parallel links of each channel's pair; the last entry is for -1, no channel."""
    pair = np.cumsum(topology.plane == 0) - 1
    count = np.bincount(pair, minlength=1)[pair]
    return np.append(np.repeat(count, 2), 1).astype(np.int32)


def leaving_channels(topology: Topology) -> tuple[Longs, Ints]:
    """(S + 1,) offsets and (C,) channels by the switch they leave, low port first."""
    order = np.lexsort((topology.out_port, topology.channel_source)).astype(np.int32)
    start = np.searchsorted(topology.channel_source[order], np.arange(topology.switch_count + 1))
    return start.astype(np.int64), order


def leaving_slots(topology: Topology) -> tuple[Ints, int]:
    """(C,) rank of each channel among those that leave its switch, and the most channels that leave one."""
    start, order = leaving_channels(topology)
    slot = np.empty(len(order), dtype=np.int32)
    slot[order] = np.arange(len(order)) - start[topology.channel_source[order]]
    return slot, int(np.diff(start).max(initial=0))


def runs(first: Longs, counts: Longs) -> tuple[Longs, Longs]:
    """(N,) row and (N,) index of each element of runs of consecutive indices.

    `first`: (R,) first index of each run; `counts`: (R,) its length.
    """
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) + np.repeat(first - np.cumsum(counts) + counts, counts)


OTHERWISE = '"updown", "tbtp" and "sr" route whatever is left'


def refuse_topology(routing: str, needs: str, found: str) -> InputError:
    """Make the error of a routing on a topology it is not made for."""
    return InputError.one(
        "routing.kind",
        f'"{routing}" needs {needs}, not {found}; without a routing: block the one that fits is taken',
    )


def require_whole(routing: str, topology: Topology) -> None:
    """Refuse a fabric some of whose links or switches are dead.

    Raises:
        InputError: something is dead (names it).
    """
    if topology.faults:
        raise InputError.one(
            "routing.kind",
            f'"{routing}" needs a whole {topology.kind} and here {topology.faults[0]} is dead; {OTHERWISE}',
        )


def require_every_pair(routing: str, topology: Topology, switches: int, pairs: int) -> None:
    """Refuse a fabric with a dead switch or a pair of neighbours without a link; parallel links may be missing.

    `switches` and `pairs` of neighbours are those of the whole fabric.

    Raises:
        InputError: something is dead without which there is no path (names it).
    """
    if topology.switch_count != switches or int((topology.plane == 0).sum()) != pairs:
        require_whole(routing, topology)


def switch_named(topology: Topology, name: str | None, key: str) -> int:
    """Return the number of a switch; that of the first where none is named.

    `name` is as in reports, or as in the file the fabric comes from; `key` of the option is for the message.

    Raises:
        InputError: there is no such switch.
    """
    if name is None:
        return 0
    names = [topology.switch_name(switch) for switch in range(topology.switch_count)]
    for known in (names, list(topology.switch_labels)):
        if name in known:
            return known.index(name)
    raise InputError.one(
        f"routing.{key}",
        f"there is no switch {quote_name(name)}.{did_you_mean(name, [*names, *topology.switch_labels])}",
    )
