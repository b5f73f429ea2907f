"""Latency over accepted traffic (Burton normal form) of several routings, as tables, figures and a file of points."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.table import progress
from testbed.files import write_whole
from testbed.model import Routes, Topology
from testbed.report.curves import Dot, LatencyPanel, draw_burton
from testbed.results.store import dated_folder
from testbed.simulate import Network, Point, Settings, simulate

RESULTS = Path("results")
POINTS = "points.csv"
FIGURE = "burton.svg"


@dataclass(frozen=True)
class Effort:
    """How long is simulated.

    Attributes:
        clocks: of a run, the warm-up included.
        drawings: topologies, faults or pairings drawn at random, of each kind.
    """

    clocks: int
    drawings: int


@dataclass(frozen=True)
class Curve:
    """A routing under one traffic: a list of points, one a drawing, for each load.

    Attributes:
        name: of the routing.
        loads: flits per cycle per sending host, ascending.
        points: by load, then by drawing.
    """

    name: str
    loads: tuple[float, ...]
    points: tuple[tuple[Point, ...], ...]

    @property
    def throughputs(self) -> tuple[float, ...]:
        """Highest accepted traffic of each drawing."""
        return tuple(max(_accepted(point) for point in drawing) for drawing in zip(*self.points, strict=True))

    @property
    def throughput(self) -> float:
        """Mean of the drawings."""
        return statistics.fmean(self.throughputs)

    @property
    def dots(self) -> tuple[Dot, ...]:
        """Means over drawings, with minimum and maximum latency."""
        found = []
        for points in self.points:
            latencies = [point.latency.mean for point in points if point.latency is not None]
            if latencies:
                accepted = statistics.fmean(map(_accepted, points))
                found.append(Dot(accepted, statistics.fmean(latencies), min(latencies), max(latencies)))
        return tuple(found)


def curve(name: str, drawn: Sequence[tuple[Topology, Routes]], settings: Settings, loads: Sequence[float]) -> Curve:
    """Simulate every load on every drawing, side by side.

    Args:
        name: of the routing.
        drawn: topologies with their routes. The number of each, from 1, is its seed: it draws a pattern that is drawn,
            and the traffic.
        settings: of the switches and the traffic.
        loads: flits per cycle per sending host, ascending.
    """
    networks = [Network.of(*drawing, settings, seed) for seed, drawing in enumerate(drawn, 1)]
    places = [(load, seed) for load in loads for seed in range(1, len(networks) + 1)]
    with ThreadPoolExecutor() as pool:
        found = dict(zip(places, pool.map(lambda at: simulate(networks[at[1] - 1], *at), places), strict=True))
    points = []
    for load in loads:
        row = [found[load, seed] for seed in range(1, len(networks) + 1)]
        if any(point is None or point.accepted is None for point in row):
            raise AssertionError(f"a proved plan deadlocked: {name} at {load}")
        points.append(tuple(point for point in row if point is not None))
    return Curve(name, tuple(loads), tuple(points))


def keep(name: str, panels: Sequence[tuple[str, Sequence[Curve]]], *, columns: int, unit: str) -> Path:
    """Draw all panels and write every point down, in a folder of `results/`.

    Args:
        name: of the figure, such as `sr-fig3`.
        panels: title and curves of each.
        columns: panels side by side.
        unit: of the latency, beside its axis.

    Returns:
        the folder.
    """
    folder = dated_folder(RESULTS, name, ".")
    shown = [LatencyPanel(title, {one.name: one.dots for one in curves}) for title, curves in panels]
    write_whole(folder / FIGURE, draw_burton(shown, columns=columns, unit=unit))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("panel", "routing", "load", "drawing", "accepted", "latency_mean", "latency_p99", "packets"))
    for title, curves in panels:
        for one in curves:
            for row in one.points:
                for point in row:
                    latency = ("", "") if point.latency is None else (point.latency.mean, point.latency.p99)
                    writer.writerow((title, one.name, point.load, point.seed, point.accepted, *latency, point.packets))
    write_whole(folder / POINTS, text.getvalue().encode())
    progress(f"figure and points: {folder}")
    return folder


def _accepted(point: Point) -> float:
    assert point.accepted is not None
    return point.accepted
