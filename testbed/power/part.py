"""Routing on what is left of a fabric, told in the numbers of the whole.

A link that is off keeps its ports: so the part is routed for itself, and its routes are carried back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from testbed.model import AllowedTurns, Bools, Ints, Paths, Routes, Topology
from testbed.topologies.connected import divided_pair
from testbed.topologies.faults import link_called, living_part


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A fabric without some of its links.

    Attributes:
        topology: with links, ports and planes numbered anew.
        channel: (C of the part,) channel of the whole that each channel of the part is.
        channels: C of the whole.
    """

    topology: Topology
    channel: Ints
    channels: int

    def carry_back(self, routes: Routes) -> Routes:
        """Routes of the part, told in channels of the whole."""
        tree = np.where(routes.tree_channel < 0, -1, self.channel[routes.tree_channel]).astype(np.int32)
        return replace(
            routes,
            tree_channel=tree if routes.tree_channel.size else routes.tree_channel,
            paths=self._paths(routes.paths),
            backup=self._paths(routes.backup),
            allowed=self._turns(routes.allowed, routes.layers),
        )

    def _paths(self, paths: Paths | None) -> Paths | None:
        return None if paths is None else Paths(paths.start, self._hops(paths.hop))

    def _hops(self, hop: Ints) -> Ints:
        layer, channel = np.divmod(hop, max(len(self.channel), 1))
        hops: Ints = (layer * self.channels + self.channel[channel]).astype(np.int32)
        return hops

    def _turns(self, allowed: AllowedTurns | None, layers: int) -> AllowedTurns | None:
        if allowed is None:
            return None
        place = self._hops(np.arange(layers * len(self.channel), dtype=np.int32))
        degree = np.zeros(layers * self.channels, dtype=np.int64)
        degree[place] = np.diff(allowed.start)
        entry = np.zeros(layers * self.channels, dtype=bool)
        entry[place] = allowed.entry
        # Channels keep their order, so the rows stand as they stood.
        return AllowedTurns(np.concatenate([[0], np.cumsum(degree)]), self._hops(allowed.following), entry)


def part_of(topology: Topology, off: Bools) -> Part | None:
    """The fabric without the links `off` (L,); None where that leaves switches apart."""
    if divided_pair(topology.switch_count, topology.links[~off]) is not None:
        return None
    links = np.flatnonzero(~off)
    channel = np.stack([2 * links, 2 * links + 1], axis=1).reshape(-1).astype(np.int32)
    every = np.ones(topology.switch_count, dtype=bool)
    words = [f"link {link_called(topology, link)}" for link in np.flatnonzero(off).tolist()]
    return Part(living_part(topology, every, ~off, words), channel, len(topology.channel_source))
