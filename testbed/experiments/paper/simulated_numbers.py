"""Numbers of the simulators: mean hops and throughput of descending layers, throughput of switches with PAUSE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from testbed.base.errors import WorkloadError
from testbed.base.model import AllowedTurns, Routes, Topology
from testbed.engines.simulate import Network, PacketSettings, Settings, simulate
from testbed.engines.simulate.detail_levels import packet_network
from testbed.engines.simulate.flit_settings import ALL_TO_ALL, UNIFORM
from testbed.engines.simulate.packet_point import simulate_packets
from testbed.experiments.analyse.channel_load import hops_of, load_of
from testbed.experiments.paper.planned_numbers import PaperFabric, proved_plan
from testbed.fabric.routing.channel_lookup import explicit_routes
from testbed.fabric.routing.descending_layers import descending_turns
from testbed.fabric.routing.paths import switches_on_path
from testbed.fabric.routing.selection import SelectionOptions, select_paths
from testbed.fabric.topologies import TOPOLOGIES
from testbed.fabric.traffic import flows
from testbed.scenario.read_scenario import scenario_of_blocks

_STEPS = 7
_WHOLE = 0.97  # share of the load that must be accepted for the next to be higher
_ONSET = 0.95


@dataclass(frozen=True, slots=True)
class Layered:
    """Networks and routing as in Koibuchi et al. 2003, section 5.1: 4 hosts a switch."""

    # block of a scenario; `seed: drawing` stands for the number of the drawing
    topology: Mapping[str, Any] = field(metadata={"wanted": "a block as in a scenario"})
    # of descending layers, or `updown`: paths that keep to the layer in which they begin
    variant: Literal["updown", "ud", "ud_du", "ud_below_du", "lturn"] = "ud"
    selection: Literal["low_port", "sancho", "high_virtual", "high_physical"] = "low_port"  # of paths
    layers: int = 3  # virtual channels
    pattern: str = UNIFORM  # of traffic
    drawings: int = 10  # of networks, one value each


@dataclass(frozen=True, slots=True)
class Throughput(Layered):
    """Highest accepted traffic by flits."""

    clocks: int = 200_000  # cycles of a run; a twentieth is not measured
    buffer: int = 256  # flits of each virtual channel; the paper does not say
    packet: int = 128  # flits
    # the most accepted at any load of a bisection for the saturation (`most`), or of loads that are accepted to 95 %
    # (`onset`)
    figure: Literal["most", "onset"] = "most"


def layered_network(options: Layered, drawing: int) -> tuple[Topology, Routes]:
    """A drawing of the network with its paths."""
    block = {key: drawing if value == "drawing" else value for key, value in options.topology.items()}
    scenario = scenario_of_blocks({"topology": block}, "papers")
    topology = TOPOLOGIES[scenario.topology_kind].build(scenario.topology)
    if options.variant == "updown":
        turns = _side_by_side(descending_turns(topology, "ud", 1), options.layers)
    else:
        turns = descending_turns(topology, options.variant, options.layers)
    paths = select_paths(topology, turns, SelectionOptions(selection=options.selection))
    return topology, explicit_routes(topology, paths, turns, options.layers)


def _side_by_side(turns: AllowedTurns, layers: int) -> AllowedTurns:
    """The same turns in each layer, and none between layers."""
    nodes, count = len(turns.start) - 1, len(turns.following)
    start = [turns.start[:-1] + layer * count for layer in range(layers)] + [np.array([layers * count])]
    following = [turns.following + np.int32(layer * nodes) for layer in range(layers)]
    return AllowedTurns(np.concatenate(start).astype(np.int64), np.concatenate(following), np.tile(turns.entry, layers))


def mean_hops(options: Layered) -> tuple[float, ...]:
    """Links on the path of a packet, mean over those that the pattern sends; two hosts of one switch count 0."""
    found = []
    for drawing in range(1, options.drawings + 1):
        topology, routes = layered_network(options, drawing)
        if options.pattern == UNIFORM:
            found.append(hops_of(topology, routes).mean)
        else:
            pairs = np.asarray(flows(options.pattern, topology, 1))
            found.append(float((switches_on_path(topology, routes)[pairs[:, 0], pairs[:, 1]] - 1).mean()))
    return tuple(found)


def throughput(options: Throughput) -> tuple[float, ...]:
    """Flits per cycle and sending host, of each drawing."""
    settings = Settings(options.pattern, options.clocks, options.clocks // 20, options.packet, options.buffer)

    def one(drawing: int) -> float:
        topology, routes = layered_network(options, drawing)
        network = Network.from_routes(topology, routes, settings, 1)
        spread = ALL_TO_ALL if options.pattern == UNIFORM else options.pattern
        bound = min(load_of(topology, routes, spread, 1).saturation or 1.0, 1.0)
        # Uniform traffic saturates below the bound; of a permutation accepted traffic can rise beyond.
        high = 1.0 if options.pattern != UNIFORM and options.figure == "most" else min(1.2 * bound, 1.0)
        return _bisected(lambda load: _measure_accepted(network, load), high, options.figure)

    return _run_drawings(one, options.drawings)


def _bisected(accepted: Callable[[float], float], high: float, figure: str) -> float:
    low, most = 0.0, 0.0
    whole = _WHOLE if figure == "most" else _ONSET
    for _ in range(_STEPS):
        load = (low + high) / 2
        rate = accepted(load)
        kept = rate > whole * load
        if figure == "most" or kept:
            most = max(most, rate)
        low, high = (load, high) if kept else (low, load)
    return most


def _measure_accepted(network: Network, load: float) -> float:
    point = simulate(network, load, 1)
    if point is None or point.accepted is None:
        raise WorkloadError("a plan without a cycle of dependencies deadlocked")
    return point.accepted


@dataclass(frozen=True, slots=True)
class PacketThroughput(PaperFabric):
    """Highest accepted traffic by frames through switches that store and forward and pause links (802.3x)."""

    pattern: str = UNIFORM  # of traffic
    drawings: int = 10  # of networks, dead links or pairs, one value each
    duration: float = 100.0  # ms of a run, a quarter of which is not measured
    buffer: int = 65536  # bytes of memory a port; the paper does not say
    shared: bool = True  # whether the ports of a switch share it


def packet_throughput(options: PacketThroughput) -> tuple[float, ...]:
    """Share of a host's link, of each drawing."""
    settings = PacketSettings(
        pattern=options.pattern,
        duration=options.duration,
        warm_up=options.duration / 4,
        buffer=options.buffer,
        shared=options.shared,
    )

    def one(drawing: int) -> float:
        plan = proved_plan(options, drawing)
        network = replace(packet_network(plan, settings), pattern_seed=drawing)

        def measure_accepted(load: float) -> float:
            point = simulate_packets(network, load, drawing)
            if point is None or point.accepted is None:
                raise WorkloadError("a proved plan deadlocked")
            return point.accepted

        bound = min(load_of(plan.topology, plan.routes, ALL_TO_ALL, 1).saturation or 1.0, 1.0)
        return _bisected(measure_accepted, min(1.2 * bound, 1.0) if options.pattern == UNIFORM else 1.0, "most")

    return _run_drawings(one, options.drawings)


def _run_drawings(one: Callable[[int], float], drawings: int) -> tuple[float, ...]:
    """Side by side, the first alone: it compiles."""
    first = one(1)
    with ThreadPoolExecutor() as pool:
        rest: Sequence[float] = list(pool.map(one, range(2, drawings + 1)))
    return (first, *rest)
