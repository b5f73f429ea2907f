"""Conversion between routing relations, only where it is legal."""

from __future__ import annotations

import numpy as np

from testbed.errors import InputError
from testbed.model import Ints, Routes, Topology


def as_source_trees(topology: Topology, routes: Routes) -> Routes:
    """Return the same paths as one tree a source switch.

    Raises:
        InputError: paths of one source enter a switch by two ports, so no VLAN tree holds them all; names
            the switch, both in-ports and a destination of each.
    """
    if routes.relation == "source_trees":
        return routes
    roots = np.unique(topology.host_switch)
    parent = np.full((len(roots), topology.switch_count), -1, dtype=np.int32)
    reaches = np.full((len(roots), topology.switch_count), -1, dtype=np.int32)  # a destination of that channel
    for index, root in enumerate(roots.tolist()):
        for end in roots.tolist():
            current = root
            while current != end:
                channel = int(routes.next_channel[current, end])
                current = int(topology.channel_target[channel])
                if parent[index, current] not in (-1, channel):
                    raise _conflict(
                        topology,
                        root,
                        current,
                        (int(parent[index, current]), channel),
                        (int(reaches[index, current]), end),
                    )
                parent[index, current], reaches[index, current] = channel, end
    host_tree = np.searchsorted(roots, topology.host_switch).astype(np.int32)
    none: Ints = np.zeros((0, topology.switch_count), dtype=np.int32)
    return Routes("source_trees", parent, roots, host_tree, none, routes.notes)


def _conflict(
    topology: Topology, root: int, switch: int, channels: tuple[int, int], ends: tuple[int, int]
) -> InputError:
    name = topology.switch_name
    ports = [int(topology.out_port[channel ^ 1]) for channel in channels]
    return InputError.one(
        "assignment.kind",
        f'"fixed" needs all paths of a source in one tree; frames from {name(root)} enter {name(switch)} by '
        f"port {ports[0]} for destination {name(ends[0])} and by port {ports[1]} for destination "
        f"{name(ends[1])}. "
        'Use a routing whose next hop depends on the source, such as "dor" with planes "node" or "link"',
    )
