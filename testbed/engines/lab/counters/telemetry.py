"""What every port, pair of hosts and processor did while a load ran, read at a fixed interval beside it.

The switches' ports are read every time: one rtnetlink dump of counters and one of queues. The traffic matrix and the
hosts' own ports, which each take a dump in a namespace of its own, are read every tenth time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from testbed.base.errors import LabError
from testbed.base.model import Longs
from testbed.engines.lab.counters.counters import processor_ticks
from testbed.engines.lab.counters.departures import Departures
from testbed.engines.lab.counters.pair_counters import PairCounters
from testbed.engines.lab.counters.rtnetlink import FIGURES, PortCounters
from testbed.engines.lab.hosts.commands import in_network_of
from testbed.engines.lab.hosts.interface_names import HOST_INTERFACE

COARSER = 10
_NO_HOST = np.zeros((0, len(FIGURES)), dtype=np.int64)  # a part of a fabric on several machines may have none


def edge_matrix(edge: Sequence[str], hosts: int) -> tuple[Callable[[], Longs] | None, str]:
    """What reads the traffic matrix at the switches' ports with hosts; None, and why, where the kernel has none.

    `hosts`: how many there are, those on other machines included.
    """
    try:
        return PairCounters(edge, hosts).read, ""
    except LabError as error:
        return None, str(error)


class Telemetry:
    """Reads a lab's counters.

    Args:
        names: ports of all switches: those with hosts in host order, then those that send into each channel, in theirs.
        ports: returns (P, 9) figures of rtnetlink.FIGURES.
        holders: host → pid in its namespaces.
        pairs: returns (2, H, H) bytes and frames; None where they cannot be counted.
        no_matrix: why not; else empty.
        departing: by which departures are watched; None = never.

    Attributes:
        no_matrix: why there is no traffic matrix; empty if there is one.
    """

    def __init__(
        self,
        names: Sequence[str],
        ports: Callable[[], Longs],
        holders: Mapping[str, int],
        pairs: Callable[[], Longs] | None,
        no_matrix: str = "",
        departing: PortCounters | None = None,
    ) -> None:
        self._names, self._ports, self._departing = list(names), ports, departing
        self._hosts = [in_network_of(pid, lambda: PortCounters([HOST_INTERFACE])) for pid in holders.values()]
        self._pairs, self.no_matrix = pairs, no_matrix

    @contextmanager
    def record_counters(
        self, interval: float, file: Path, departures_after: float | None, rates: Sequence[float]
    ) -> Iterator[Callable[[], None]]:
        """Read while the block runs; then write the arrays of Record and Departures to a file.

        Args:
            interval: s between two readings.
            file: `.npz`.
            departures_after: s from the call of what this yields until the busiest ports are watched; None = never.
            rates: bit/s that each port is shaped to now.

        Yields:
            What is to be called when the load has started.

        Raises:
            LabError: the kernel does not show its counters.
        """
        record, stop = Record(), threading.Event()
        departures = Departures(self._departing, rates, departures_after or 0.0, stop)
        with ThreadPoolExecutor(2) as pool:
            watching = [pool.submit(self._watch, record, interval, stop)]
            begin = lambda: watching.append(pool.submit(departures.watch))  # noqa: E731 - a name for a callback
            try:
                yield (lambda: None) if departures_after is None else begin
            finally:
                stop.set()
            for thread in watching:
                thread.result()
        file.parent.mkdir(parents=True, exist_ok=True)
        ports = {"names": np.array(self._names), "rates": np.array(rates)}
        np.savez(file, allow_pickle=False, **ports, **record.arrays(), **departures.arrays())

    def _watch(self, record: Record, interval: float, stop: threading.Event) -> None:
        due, number = time.monotonic(), 0
        while True:
            last = stop.is_set()
            # The last reading is a whole one, so that both series end together.
            record.time.append(time.monotonic())
            record.ports.append(self._ports())
            record.ticks.append(processor_ticks())
            if last or number % COARSER == 0:
                record.coarse_time.append(time.monotonic())
                record.hosts.append(np.concatenate([_NO_HOST, *(host.read() for host in self._hosts)]))
                if self._pairs is not None:
                    record.pairs.append(self._pairs())
            if last:
                return
            number += 1
            # Where the machine was too busy to read in time, readings are left out and not made up for.
            due = max(due + interval, time.monotonic())
            stop.wait(due - time.monotonic())


class Record:
    """Readings as they come.

    Attributes:
        time: of each reading, s, monotonic.
        ports: (P, 9) figures of rtnetlink.FIGURES.
        ticks: idle, in interrupts of the network and others, all.
        coarse_time: of each coarser reading.
        hosts: (H, 9) figures of the hosts' interfaces.
        pairs: (2, H, H) bytes and frames; none where they cannot be counted.
    """

    def __init__(self) -> None:
        self.time: list[float] = []
        self.ports: list[Longs] = []
        self.ticks: list[tuple[int, int, int]] = []
        self.coarse_time: list[float] = []
        self.hosts: list[Longs] = []
        self.pairs: list[Longs] = []

    def arrays(self) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64 | np.int64]]]:
        """The readings as arrays, time first."""
        found = {
            "time": np.array(self.time),
            "ports": np.stack(self.ports),
            "ticks": np.array(self.ticks, dtype=np.int64),
            "coarse_time": np.array(self.coarse_time),
            "hosts": np.stack(self.hosts),
        }
        if self.pairs:
            found["pairs"] = np.stack(self.pairs)
        return found
