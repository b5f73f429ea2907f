"""Throughput on irregular networks, ours beside Koibuchi et al. 2003, Table 6.

Topologies at random of degree 4 with 4 hosts a switch, packets of 128 flits, 3 virtual channels. Throughput is the
highest accepted traffic of the loads that a bisection for the saturation tries. Up*/down* has the same 3 layers, which
a path does not change; path selection chooses among them (section 5.1.2).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.table import Figure, progress
from testbed.analyse.load import load_of
from testbed.model import AllowedTurns, Routes, Topology
from testbed.routing.common import explicit_routes
from testbed.routing.dl import Variant, descending_turns
from testbed.routing.selection import SelectionOptions, select_paths
from testbed.simulate import Network, Settings, simulate
from testbed.simulate.settings import ALL_TO_ALL, UNIFORM
from testbed.topologies import TOPOLOGIES

LAYERS = 3
HOSTS, DEGREE = 4, 4
SIZES = (16, 64)
TRAFFIC = (UNIFORM, "bit_reversal")
_STEPS = 6
_WHOLE = 0.97


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        name: as the paper has it.
        variant: of descending layers; None for up*/down*.
        selection: of paths.
        paper: flits/host/cycle by (switches, pattern).
    """

    name: str
    variant: Variant | None
    selection: str
    paper: dict[tuple[int, str], float]


def _case(name: str, variant: Variant | None, selection: str, *paper: float) -> Case:
    places = [(switches, pattern) for switches in SIZES for pattern in TRAFFIC]
    return Case(name, variant, selection, dict(zip(places, paper, strict=True)))


CASES = (
    _case("up*/down*, low port", None, "low_port", 0.161, 0.269, 0.033, 0.052),
    _case("up*/down*, Sancho", None, "sancho", 0.177, 0.322, 0.037, 0.059),
    _case("up*/down*, high physical", None, "high_physical", 0.176, 0.328, 0.037, 0.062),
    _case("DL (UD)*, low port", "ud", "low_port", 0.169, 0.277, 0.105, 0.123),
    _case("DL (UD)*, Sancho", "ud", "sancho", 0.289, 0.353, 0.162, 0.192),
    _case("DL (UD)*, high physical", "ud", "high_physical", 0.290, 0.350, 0.164, 0.188),
    _case("DL (UD-DU)*, Sancho", "ud_du", "sancho", 0.286, 0.354, 0.159, 0.199),
    _case("DL UD-(DU)*, Sancho", "ud_below_du", "sancho", 0.295, 0.349, 0.169, 0.196),
)


def dl_table6(topologies: int, clocks: int, buffer: int, sizes: Sequence[int], patterns: Sequence[str]) -> list[Figure]:
    """One line a row, size and pattern: ours as mean and standard deviation, the paper's, and the ratio."""
    figures = []
    for switches in sizes:
        drawn = [topology_of(switches, seed) for seed in range(1, topologies + 1)]
        for pattern in patterns:
            settings = Settings(pattern, clocks, clocks // 20, 128, buffer)
            for case in CASES:
                progress(f"{switches} switches, {pattern}, {case.name}: {topologies} topologies")
                with ThreadPoolExecutor() as pool:
                    found = list(pool.map(lambda topology: throughput(topology, case, settings), drawn))  # noqa: B023 - used up here
                mean, paper = statistics.fmean(found), case.paper[switches, pattern]
                spread = statistics.stdev(found) if len(found) > 1 else 0.0
                text = f"{mean:.3f} (SD {spread:.3f}), paper {paper:.3f}, {mean / paper:.2f} of it"
                progress(f"    {text}")
                figures.append(Figure(f"{switches} switches, {pattern}, {case.name}", text))
    return figures


def throughput(topology: Topology, case: Case, settings: Settings) -> float:
    """Highest accepted traffic, flits per cycle per sending host."""
    routes = routes_of(topology, case)
    network = Network.of(topology, routes, settings, 1)
    spread = ALL_TO_ALL if settings.pattern == UNIFORM else settings.pattern
    bound = min(load_of(topology, routes, spread, 1).saturation or 1.0, 1.0)
    # Uniform traffic saturates below the bound; of a permutation accepted traffic can rise beyond.
    low, high, most = 0.0, 1.2 * bound if settings.pattern == UNIFORM else 1.0, 0.0
    for _ in range(_STEPS):
        load = min((low + high) / 2, 1.0)
        point = simulate(network, load, 1)
        if point is None or point.accepted is None:
            raise AssertionError(f"a proved plan deadlocked: {case.name}")
        most = max(most, point.accepted)
        low, high = (load, high) if point.accepted > _WHOLE * load else (low, load)
    return most


def topology_of(switches: int, seed: int) -> Topology:
    """A drawing of the irregular networks."""
    kind = TOPOLOGIES["random"]
    return kind.build(kind.spec(switches=switches, degree=DEGREE, seed=seed, hosts_per_switch=HOSTS))


def routes_of(topology: Topology, case: Case, layers: int = LAYERS) -> Routes:
    """The paths of a row."""
    if case.variant is None:
        turns = _side_by_side(descending_turns(topology, "ud", 1), layers)
    else:
        turns = descending_turns(topology, case.variant, layers)
    options = SelectionOptions(selection=case.selection)  # type: ignore[arg-type]  # one of its words
    return explicit_routes(topology, select_paths(topology, turns, options), turns, layers)


def _side_by_side(turns: AllowedTurns, layers: int) -> AllowedTurns:
    """The same turns in each layer, and none between layers."""
    nodes, count = len(turns.start) - 1, len(turns.following)
    start = [turns.start[:-1] + layer * count for layer in range(layers)] + [np.array([layers * count])]
    following = [turns.following + np.int32(layer * nodes) for layer in range(layers)]
    return AllowedTurns(np.concatenate(start).astype(np.int64), np.concatenate(following), np.tile(turns.entry, layers))
