"""Which elements of a fabric have failed, by what its switches report."""

from __future__ import annotations

from collections.abc import Collection

from testbed.base.model import Topology
from testbed.planning.failover.failed_elements import FailedElements, failed_elements


class FailureTracker:
    """Ports and switches that have failed, and what of the fabric fails with them.

    Args:
        topology: of the fabric when nothing is dead.

    Attributes:
        down: (switch, port) of ports that are down.
        dead: switches that are.
        silent: (switch, port) of links that do not hear what they should.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._behind = {
            **{(int(s), int(p)): ("link", c // 2)
               for c, (s, p) in enumerate(zip(topology.channel_source, topology.out_port, strict=True))},
            **{(int(s), int(p)): ("host", h)
               for h, (s, p) in enumerate(zip(topology.host_switch, topology.host_port, strict=True))},
        }  # fmt: skip
        self.down: set[tuple[int, int]] = set()
        self.dead: set[int] = set()
        self.silent: set[tuple[int, int]] = set()

    def switch_connected(self, number: int, ports: Collection[int]) -> None:
        """A switch is there, and of its ports these are down."""
        down = {(number, port) for port in ports if self.has_neighbour(number, port)}
        self.dead.discard(number)
        self.down = {end for end in self.down if end[0] != number} | down

    def port_changed(self, number: int, port: int, *, down: bool) -> None:
        """A port that is of concern went down, or came up."""
        (self.down.add if down else self.down.discard)((number, port))

    def has_neighbour(self, number: int, port: int) -> bool:
        """Whether a link or a host is behind a port."""
        return (number, port) in self._behind

    def failed_elements(self) -> FailedElements:
        """What all this leaves dead."""
        behind = [self._behind[end] for end in self.down | self.silent]
        links, hosts = ([number for kind, number in behind if kind == which] for which in ("link", "host"))
        return failed_elements(self._topology, links, hosts, self.dead)
