"""The one sentence for a routing that a topology cannot have."""

from __future__ import annotations

from testbed.errors import InputError


def misfit(routing: str, needs: str, found: str) -> InputError:
    """Make the error of a routing on a topology it is not made for.

    Args:
        routing: its name.
        needs: the topologies it is made for.
        found: what the topology is instead.
    """
    return InputError.one(
        "routing.kind",
        f'"{routing}" needs {needs}, not {found}; without a routing: block the one that fits is taken',
    )
