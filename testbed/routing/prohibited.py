"""Prohibited turns: a routing made from a list of them, and their number."""

from __future__ import annotations

import numpy as np

from testbed.model import AllowedTurns, Ints, Topology
from testbed.routing.turns import all_turns, allow


def allow_all_but(topology: Topology, prohibited: Ints) -> AllowedTurns:
    """Make the graph of a routing in one layer that prohibits turns both ways.

    Args:
        topology: the network.
        prohibited: (N, 2) channel that enters a switch and channel that leaves it; the way back, from the reverse of
            the second to the reverse of the first, is prohibited with it.
    """
    before, after = all_turns(topology)
    pairs = np.concatenate([prohibited, prohibited[:, ::-1] ^ 1])
    channels = max(len(topology.channel_source), 1)
    key = before.astype(np.int64) * channels + after
    forbidden = np.isin(key, pairs[:, 0].astype(np.int64) * channels + pairs[:, 1])
    return allow(topology, ~forbidden, before, after)


def prohibited_turns(topology: Topology, allowed: AllowedTurns) -> tuple[int, int]:
    """Count the turns that no path may take, in any layer, and all turns there are.

    A turn is an ordered pair of channels at a switch that is no U-turn; where turns are prohibited both ways the
    share is the same as that of unordered pairs of links (Pellegrini et al. 2004).
    """
    channels = max(len(topology.channel_source), 1)
    before = np.repeat(np.arange(len(allowed.start) - 1), np.diff(allowed.start)) % channels
    taken = np.unique(before * channels + allowed.following % channels)
    total = len(all_turns(topology)[0])
    return total - len(taken), total
