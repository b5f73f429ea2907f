"""Runs of one load with several seeds as one row."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.simulate.packet_settings import PICOSECONDS
from testbed.simulate.point import Point

# What lacks so little counts as all of the load, and so does what chance explains: packets are drawn independently.
_LITTLE = 0.03
_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True)
class Seeds:
    """A figure over seeds: mean, min and max."""

    mean: float
    min: float
    max: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Seeds | None:
        """Summarise; None of nothing."""
        return cls(statistics.fmean(values), min(values), max(values)) if values else None


@dataclass(frozen=True, slots=True)
class Row:
    """One load. Runs that deadlocked are counted and left out of every figure."""

    load: float  # flits/host/cycle of hosts that send
    seeds: int  # number of runs
    deadlocks: int  # how many of them deadlocked
    accepted: Seeds | None  # flits that arrived, likewise
    latency: Seeds | None  # mean latency in cycles
    p99: Seeds | None  # 99th percentile of the latency in cycles
    max_channel_use: Seeds | None  # max channel utilisation, of the bottleneck channel
    saturated: bool  # whether less arrives than is asked for
    loss: Seeds | None = None  # packet level: share of the frames that were dropped
    hosts_paused: Seeds | None = None  # packet level: share of the time that hosts were paused
    channels_paused: Seeds | None = None  # packet level: share of the time that channels between switches were paused
    pauses: Seeds | None = None  # packet level: PAUSE frames a simulated second


def rows_of(points: Sequence[Point]) -> tuple[Row, ...]:
    """One row a load, ascending."""
    by_load: dict[float, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.load):
        by_load.setdefault(point.load, []).append(point)
    return tuple(_row(load, some) for load, some in by_load.items())


def _row(load: float, points: Sequence[Point]) -> Row:
    accepted = Seeds.of([point.accepted for point in points if point.accepted is not None])
    packets = sum(point.packets for point in points if point.accepted is not None)
    lack = max(_LITTLE, _DEVIATIONS / math.sqrt(max(packets, 1)))
    latencies = [point.latency for point in points if point.latency is not None]
    flowing = [(point, point.links) for point in points if point.links is not None and not point.cycle]
    return Row(
        load=load,
        seeds=len(points),
        deadlocks=sum(bool(point.cycle) for point in points),
        accepted=accepted,
        latency=Seeds.of([latency.mean for latency in latencies]),
        p99=Seeds.of([latency.p99 for latency in latencies]),
        max_channel_use=Seeds.of([point.fullest_use for point in points if point.fullest_use is not None]),
        saturated=accepted is not None and accepted.mean < (1 - lack) * load,
        loss=Seeds.of([links.drops / max(links.drops + point.packets, 1) for point, links in flowing]),
        hosts_paused=Seeds.of([links.hosts_paused for _, links in flowing]),
        channels_paused=Seeds.of([links.channels_paused for _, links in flowing]),
        pauses=Seeds.of([links.pauses * PICOSECONDS / point.clocks for point, links in flowing]),
    )
