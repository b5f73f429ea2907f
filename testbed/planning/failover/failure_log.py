"""The log of failures and repairs, as a segment manager's status shows it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal, TypedDict

import numpy as np

from testbed.base.model import Bools, Topology
from testbed.planning.failover.diversion import Diversion
from testbed.planning.failover.failed_elements import FailedElements, cut_off, words

_MAX_SHOWN = 200


class LoggedFailure(TypedDict):
    """A messages.FailureEvent as plain data."""

    down: list[str]
    up: list[str]
    pairs_hit: int
    without_backup: list[str]
    cut_off: list[str]
    recovered: float | None
    settled: float | None
    detected: float
    diverted: float
    hosts_moved: int


class FailureLog:
    """What failed or was repaired, and when each was overcome.

    Args:
        topology: of the fabric when nothing is dead.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._events: list[LoggedFailure] = []

    def add(
        self,
        before: FailedElements,
        failed: FailedElements,
        diversion: Diversion,
        *,
        detected: float,
        diverted: float,
        hosts_moved: int,
    ) -> None:
        """Something has changed what is dead; `recovered` and `settled` are for later."""
        topology = self._topology
        names, known = words(topology, failed), words(topology, before)
        self._events.append(
            {
                "down": [name for name in names if name not in known],
                "up": [name for name in known if name not in names],
                "pairs_hit": int(diversion.hit.sum()),
                "without_backup": _pairs(topology, diversion.waiting),
                "cut_off": _pairs(topology, cut_off(topology, failed) & ~cut_off(topology, before)),
                "recovered": None,
                "settled": None,
                "detected": detected,
                "diverted": diverted,
                "hosts_moved": hosts_moved,
            }
        )

    def overcome(self, what: Literal["recovered", "settled"], count: int) -> None:
        """So many events are `recovered` or `settled` now, unless they were before."""
        now = time.monotonic()
        for event in self._events[:count]:
            if event[what] is None:
                event[what] = now

    def take_over(self, events: Sequence[LoggedFailure]) -> None:
        """Go on with a log that another has written."""
        self._events = [event.copy() for event in events]

    def as_objects(self) -> list[LoggedFailure]:
        """All events, as plain data."""
        return [event.copy() for event in self._events]


def _pairs(topology: Topology, pairs: Bools) -> list[str]:
    rows = list(zip(*np.nonzero(pairs), strict=True))
    shown = [f"{topology.host_name(int(source))}→{topology.host_name(int(end))}" for source, end in rows[:_MAX_SHOWN]]
    return [*shown, f"and {len(rows) - _MAX_SHOWN} more"] if len(rows) > _MAX_SHOWN else shown
