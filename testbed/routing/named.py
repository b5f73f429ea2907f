"""Switches that a routing's options name."""

from __future__ import annotations

from testbed.errors import InputError, did_you_mean
from testbed.model import Topology
from testbed.topologies.graph import quoted


def switch_named(topology: Topology, name: str | None, key: str) -> int:
    """Return the number of a switch; that of the first where none is named.

    Args:
        topology: the network.
        name: as in reports, or as in the file the fabric comes from.
        key: of the option, for the message.

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
        f"there is no switch {quoted(name)}.{did_you_mean(name, [*names, *topology.switch_labels])}",
    )
