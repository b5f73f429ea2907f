"""The flit-level simulator: clocks a second on one core, in the case that other simulators were measured on.

An 8×8 torus with one host a switch, dimension order, two layers, packets of 128 flits, buffers of 256. BookSim2 (C++)
on a like machine made the clocks a second that stand with each load.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.dateline import dateline_torus
from benchmarks.table import Figure, median_text, progress
from testbed.base.model import Routes, Topology
from testbed.engines.simulate import Network, Settings, simulate
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

BOOKSIM = {0.02: 60e3, 0.1: 32e3, 0.3: 11.4e3, 0.5: 5.2e3}
_CLOCKS, _WARM_UP = 200_000, 20_000
_LONG = 1_000_000
_SIZES = ((8, 800_000), (64, 16_000))  # as many flit-hops


def simulator(runs: int) -> list[Figure]:
    """Clocks a second by load, seconds of a run as long as the papers', and what a flit-hop costs by size."""
    torus = dateline_torus(8)
    network = Network.from_routes(*torus, Settings(clocks=_CLOCKS, warm_up=_WARM_UP), 1)
    progress("simulator: loading")
    simulate(Network.from_routes(*torus, Settings(clocks=1000, warm_up=0), 1), 0.3, 1)
    figures = []
    for load, theirs in BOOKSIM.items():
        progress(f"simulator: load {load}")
        rates = [_CLOCKS / _seconds(network, load, seed) for seed in range(1, runs + 1)]
        text = f"{median_text([rate / 1e3 for rate in rates], 'k/s')}; BookSim2 {theirs / 1e3:g} k/s"
        figures.append(Figure(f"simulator, 8×8 torus, 2 layers, load {load}: clocks", text))
    progress("simulator: descending layers, a million clocks")
    layers = _plan(
        "topology: {kind: torus, sizes: [8, 8], hosts_per_switch: 4}\n"
        "routing: {kind: dl, layers: 3}\nassignment: {kind: openflow}"
    )
    whole = Network.from_routes(*layers, Settings(clocks=_LONG), 1)
    figures.append(
        Figure(
            "simulator, 8×8 torus, 256 hosts, DL, 3 layers, load 0.1, 1 M clocks (at most 25 s)",
            median_text([_seconds(whole, 0.1, seed) for seed in range(1, runs + 1)], "s"),
        )
    )
    return figures + _flit_hops(runs)


def _flit_hops(runs: int) -> list[Figure]:
    """Time of a flit over a link, where that should not depend on the size of the fabric."""
    figures, medians = [], []
    for size, clocks in _SIZES:
        progress(f"simulator: {size}×{size} torus")
        plan = _plan(f"topology: {{kind: torus, sizes: [{size}, {size}], parallel_links: 2}}")
        # Longer paths meet the same load on each channel at a lower rate of the hosts.
        load = 0.3 * 8 / size
        network = Network.from_routes(*plan, Settings(clocks=clocks, warm_up=0), 1)
        costs = []
        for seed in range(1, runs + 1):
            started = time.thread_time()
            point = simulate(network, load, seed)
            seconds = time.thread_time() - started
            assert point is not None
            costs.append(1e9 * seconds / sum(point.channel_flits))
        figures.append(Figure(f"simulator, {size}×{size} torus, load {load:g}: a flit-hop", median_text(costs, "ns")))
        medians.append(statistics.median(costs))
    text = f"{medians[-1] / medians[0]:.2f} (at most 1.5)"
    return [*figures, Figure("simulator, a flit-hop on 4,096 switches, of that on 64", text)]


def _plan(text: str) -> tuple[Topology, Routes]:
    plan = make_plan(parse_scenario(text, "benchmark"))
    plan.require_proof()
    return plan.topology, plan.routes


def _seconds(network: Network, load: float, seed: int) -> float:
    """Processor time of a run; a machine that others use too gives it no less."""
    started = time.thread_time()
    simulate(network, load, seed)
    return time.thread_time() - started
