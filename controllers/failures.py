"""Which elements of a fabric have failed, by what its switches report; and the log of failures in the status."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from testbed.failover.failed import FailedElements, cut_off, failed_elements, words
from testbed.failover.outlook import Diversion
from testbed.model import Bools, Topology

_MAX_SHOWN = 200


class FailureLog:
    """What failed or was repaired, and when each was overcome.

    Args:
        topology: of the fabric when nothing is dead.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._events: list[dict[str, Any]] = []

    def add(self, before: FailedElements, failed: FailedElements, diversion: Diversion, **more: Any) -> None:
        """Something has changed what is dead; `more` is reported as it is."""
        self._events.append({**_record(self._topology, before, failed, diversion), **more})

    def overcome(self, what: str, count: int) -> None:
        """So many events are `recovered` or `settled` now, unless they were before."""
        now = time.monotonic()
        for event in self._events[:count]:
            if event[what] is None:
                event[what] = now

    def as_objects(self) -> list[dict[str, Any]]:
        """All events, as plain data."""
        return [dict(event) for event in self._events]


def _record(topology: Topology, before: FailedElements, failed: FailedElements, diversion: Diversion) -> dict[str, Any]:
    """What an event was and what it leaves; `recovered` and `settled` are for later."""
    names, known = words(topology, failed), words(topology, before)
    return {
        "down": [name for name in names if name not in known],
        "up": [name for name in known if name not in names],
        "pairs_hit": int(diversion.hit.sum()),
        "without_backup": _pairs(topology, diversion.waiting),
        "cut_off": _pairs(topology, cut_off(topology, failed) & ~cut_off(topology, before)),
        "recovered": None,
        "settled": None,
    }


def _pairs(topology: Topology, pairs: Bools) -> list[str]:
    rows = list(zip(*np.nonzero(pairs), strict=True))
    shown = [f"{topology.host_name(int(source))}→{topology.host_name(int(end))}" for source, end in rows[:_MAX_SHOWN]]
    return [*shown, f"and {len(rows) - _MAX_SHOWN} more"] if len(rows) > _MAX_SHOWN else shown


class FailureTracker:
    """Ports and switches that have failed, and what of the fabric fails with them.

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

    def failed(self) -> FailedElements:
        """What all this leaves dead."""
        behind = [self._behind[end] for end in self.down]
        links, hosts = ([number for kind, number in behind if kind == which] for which in ("link", "host"))
        return failed_elements(self._topology, links, hosts, self.dead)


def is_down(port: Any) -> bool:
    """Whether a port, as the framework describes it, has no carrier or is shut."""
    link_down, port_down = 1, 1  # OFPPS_LINK_DOWN, OFPPC_PORT_DOWN
    return bool(port.state & link_down or port.config & port_down)
