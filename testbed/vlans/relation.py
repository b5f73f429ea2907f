"""The refusal of routes that an assignment cannot carry, with the first place where they conflict."""

from __future__ import annotations

from testbed.errors import InputError
from testbed.model import Routes, Topology
from testbed.routing.relation import Conflict

NEEDS = {
    "one tree a source": "all paths of a source in one tree",
    "C×N→C": "one next hop for each in-port and destination",
    "N×N→C": "one next hop for each destination, whatever the in-port",
}


def refusal(assignment: str, topology: Topology, conflict: Conflict, remedy: str) -> InputError:
    """Make the error of an assignment that does not fit the routes.

    Args:
        assignment: its name.
        topology: the network.
        conflict: the first place where the paths break the relation it needs.
        remedy: what would be right, one sentence.
    """
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
            f'"{assignment}" carries no layers and this routing uses {routes.layers}: frames without a tag do not say '
            'which layer they are in. Use the assignment "openflow", which carries layers as 802.1Q priorities',
        )
