"""What of a fabric is dead, by what its switches say: ports that are down, switches that are gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.failover.damage import Damage, damage_of
from testbed.model import Topology


class Casualties:
    """Dead ports and switches, and the damage that they are.

    Args:
        topology: of the fabric when nothing is dead.

    Attributes:
        down: (switch, port) of ports that are down.
        dead: switches that are.
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

    def connected(self, number: int, ports: Mapping[int, Any]) -> None:
        """A switch is there, with its ports as the framework describes them."""
        down = {(number, port) for port in ports if self.concerned(number, port) and is_down(ports[port])}
        self.dead.discard(number)
        self.down = {end for end in self.down if end[0] != number} | down

    def port_changed(self, number: int, port: int, *, down: bool) -> None:
        """A port that is of concern went down, or came up."""
        (self.down.add if down else self.down.discard)((number, port))

    def concerned(self, number: int, port: int) -> bool:
        """Whether a link or a host is behind a port."""
        return (number, port) in self._behind

    def damage(self) -> Damage:
        """What all this leaves dead."""
        behind = [self._behind[end] for end in self.down]
        links, hosts = ([number for kind, number in behind if kind == which] for which in ("link", "host"))
        return damage_of(self._topology, links, hosts, self.dead)


def is_down(port: Any) -> bool:
    """Whether a port, as the framework describes it, has no carrier or is shut."""
    link_down, port_down = 1, 1  # OFPPS_LINK_DOWN, OFPPC_PORT_DOWN
    return bool(port.state & link_down or port.config & port_down)
