"""Runs of one load with several seeds as one row."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.simulate.point import Point

# Accepted traffic this near the load counts as all of it: the draw of a finite run misses its mean by about as much.
_ALL = 0.97


@dataclass(frozen=True, slots=True)
class Seeds:
    """A figure over seeds: mean, least and most."""

    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Seeds | None:
        """Summarise; None of nothing."""
        return cls(statistics.fmean(values), min(values), max(values)) if values else None


@dataclass(frozen=True, slots=True)
class Row:
    """One load. Runs that stood still are counted and left out of every figure.

    Attributes:
        load: flits for each host that sends and clock.
        seeds: number of runs.
        deadlocks: how many of them stood still.
        accepted: flits that arrived for each host that sends and clock.
        latency: mean latency in clocks.
        p99: 99th percentile of the latency in clocks.
        fullest_use: share of clocks in which the fullest channel carried a flit.
    """

    load: float
    seeds: int
    deadlocks: int
    accepted: Seeds | None
    latency: Seeds | None
    p99: Seeds | None
    fullest_use: Seeds | None

    @property
    def saturated(self) -> bool:
        """Whether less arrives than is asked for."""
        return self.accepted is not None and self.accepted.mean < _ALL * self.load


def rows_of(points: Sequence[Point]) -> tuple[Row, ...]:
    """One row a load, ascending."""
    by_load: dict[float, list[Point]] = {}
    for point in sorted(points, key=lambda point: point.load):
        by_load.setdefault(point.load, []).append(point)
    return tuple(_row(load, some) for load, some in by_load.items())


def _row(load: float, points: Sequence[Point]) -> Row:
    latencies = [point.latency for point in points if point.latency is not None]
    return Row(
        load=load,
        seeds=len(points),
        deadlocks=sum(bool(point.cycle) for point in points),
        accepted=Seeds.of([point.accepted for point in points if point.accepted is not None]),
        latency=Seeds.of([latency.mean for latency in latencies]),
        p99=Seeds.of([latency.p99 for latency in latencies]),
        fullest_use=Seeds.of([point.fullest_use for point in points if point.fullest_use is not None]),
    )
