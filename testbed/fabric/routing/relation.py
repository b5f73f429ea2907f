"""The routing relation a path set belongs to, found by trying (Koibuchi et al. 2011, section 3.2).

Conversions are made only where they are legal, and name the first conflict otherwise; an assignment that cannot carry
the routes is refused with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from testbed.base.errors import InputError
from testbed.base.model import Ints, Routes, Topology
from testbed.fabric.routing.paths import all_paths, end_index, key_switches

Relation = Literal["one tree a source", "C×N→C", "N×N→C"]


@dataclass(frozen=True, slots=True, eq=False)
class Conflict:
    """Two paths that no table of a relation can both hold."""

    relation: Relation  # which one
    switch: int  # where they part or meet
    # ports of arrival: one for `C×N→C`, none where it does not matter, two for trees; 0 for a host's
    in_ports: tuple[int, ...]
    out_ports: tuple[int, ...]  # the two ports wanted; empty for trees
    destinations: tuple[int, ...]  # destination switch of each of the two paths
    source: int  # source switch of the second path
    layers: tuple[int, ...] = ()  # of the two ways on where the routes have layers

    def sentence(self, topology: Topology) -> str:
        """Say what is wrong, with switch, in-port and destination."""
        name = topology.switch_name
        if self.relation == "one tree a source":
            if self.in_ports[0] == 0:
                end = name(self.destinations[1])
                return (
                    f"frames from {name(self.source)} for destination {end} come back to it by port {self.in_ports[1]}"
                )
            return (
                f"frames from {name(self.source)} enter {name(self.switch)} by port {self.in_ports[0]} for destination "
                f"{name(self.destinations[0])} and by port {self.in_ports[1]} for destination "
                f"{name(self.destinations[1])}"
            )
        in_layer = [f" in layer {layer}" for layer in self.layers] or [""] * len(self.out_ports)
        wants = " and ".join(
            f"by port {port}{layer}" if port else "to a host here"
            for port, layer in zip(self.out_ports, in_layer, strict=True)
        )
        arrival = f" that enter {name(self.switch)} by port {self.in_ports[0]}" if self.in_ports else ""
        place = "" if arrival else f" {name(self.switch)}"
        return f"frames for {name(self.destinations[0])}{arrival} leave{place} {wants}, depending on the source"


def forwarding_table(topology: Topology, routes: Routes, *, by_arrival: bool) -> Ints | Conflict:
    """Next hops as a table, if the paths allow one.

    Args:
        topology: the network.
        routes: any relation.
        by_arrival: True for C×N→C: a row for each virtual channel of arrival, then one for each source key.
            False for N×N→C: a row for each switch; such a table has no layers.

    Returns:
        (rows, destination keys) next virtual channel, -1 deliver here, -2 where no frame comes; or the first conflict.
    """
    from testbed.fabric.kernels import forwarding

    if routes.relation == "destination_trees" and not by_arrival:
        return forwarding.next_hops_of_trees(
            routes.tree_channel, routes.tree_root, routes.ends, topology.channel_target
        )
    paths = all_paths(topology, routes)
    source_switch, destination_switch = key_switches(routes)
    count = routes.layers * len(topology.channel_source)
    if by_arrival:
        source_class: Ints = (count + np.arange(len(source_switch))).astype(np.int32)
        channel_class: Ints = np.arange(count, dtype=np.int32)
        classes = count + len(source_switch)
    else:
        source_class = source_switch
        channel_class = np.tile(topology.channel_target, routes.layers)
        classes = topology.switch_count
    table, found = forwarding.next_hops(
        paths.start, paths.hop, source_class, channel_class, classes, len(destination_switch)
    )
    if not len(found):
        return table
    _, key, first, second, source, arrived_by = found.tolist()
    channels = len(topology.channel_source)
    switch = int(topology.channel_target[arrived_by % channels]) if arrived_by >= 0 else int(source_switch[source])
    in_port = int(topology.out_port[(arrived_by % channels) ^ 1]) if arrived_by >= 0 else 0
    out_ports = tuple(int(topology.out_port[hop % channels]) if hop >= 0 else 0 for hop in (first, second))
    end = int(destination_switch[key])
    return Conflict(
        "C×N→C" if by_arrival else "N×N→C",
        switch,
        (in_port,) if by_arrival else (),
        out_ports,
        (end, end),
        int(source_switch[source]),
        tuple(hop // channels for hop in (first, second)) if routes.layers > 1 else (),
    )


def as_source_trees(topology: Topology, routes: Routes) -> Routes | Conflict:
    """Return the same paths as one tree a source switch, or the first conflict. Layers are not kept."""
    if routes.relation == "source_trees":
        return routes
    from testbed.fabric.kernels import forwarding

    paths = all_paths(topology, routes)
    source_switch, destination_switch = key_switches(routes)
    channels = len(topology.channel_source)
    trees, found = forwarding.one_tree_a_source(
        paths.start,
        paths.hop % channels if routes.layers > 1 else paths.hop,
        topology.channel_target,
        source_switch,
        len(destination_switch),
        topology.switch_count,
    )
    if len(found):
        source, switch, first, second, end, other_end = found.tolist()
        return Conflict(
            "one tree a source",
            switch,
            tuple(int(topology.out_port[channel ^ 1]) if channel >= 0 else 0 for channel in (first, second)),
            (),
            (int(destination_switch[end]), int(destination_switch[other_end])),
            int(source_switch[source]),
        )
    keys = end_index(topology, routes)
    return Routes("source_trees", routes.ends, trees, source_switch, keys, allowed=routes.allowed, notes=routes.notes)


def relations(topology: Topology, routes: Routes) -> dict[Relation, Conflict | None]:
    """Which relations hold the paths; the first conflict for those that do not."""
    tried: dict[Relation, Ints | Routes | Conflict] = {
        "one tree a source": as_source_trees(topology, routes),
        "C×N→C": forwarding_table(topology, routes, by_arrival=True),
        "N×N→C": forwarding_table(topology, routes, by_arrival=False),
    }
    return {name: found if isinstance(found, Conflict) else None for name, found in tried.items()}


NEEDS = {
    "one tree a source": "all paths of a source in one tree",
    "C×N→C": "one next hop for each in-port and destination",
    "N×N→C": "one next hop for each destination, whatever the in-port",
}


def refusal(assignment: str, topology: Topology, conflict: Conflict, remedy: str) -> InputError:
    """Make the error of an assignment that does not fit the routes."""
    return InputError.one(
        "assignment.kind",
        f'"{assignment}" needs {NEEDS[conflict.relation]}; {conflict.sentence(topology)}. {remedy}',
    )


def refuse_layers(assignment: str, routes: Routes) -> None:
    """Let only routes of one layer pass.

    Raises:
        InputError: frames would have to carry their layer, and the assignment gives them nowhere to.
    """
    if routes.layers > 1:
        raise InputError.one(
            "assignment.kind",
            f'"{assignment}" carries no layers and this routing uses {routes.layers}. Use the assignment "openflow", '
            "which carries layers as 802.1Q priorities",
        )
