"""Refusals of a routing: the topology does not fit, something is dead, an option names no switch."""

from __future__ import annotations

from testbed.errors import InputError, did_you_mean
from testbed.model import Topology
from testbed.topologies.graph import quoted

OTHERWISE = '"updown", "tbtp" and "sr" route whatever is left'


def misfit(routing: str, needs: str, found: str) -> InputError:
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
        f"there is no switch {quoted(name)}.{did_you_mean(name, [*names, *topology.switch_labels])}",
    )
