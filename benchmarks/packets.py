"""The packet level of the simulator: packet-hops a second on one core, and what one costs as fabrics grow.

A packet-hop is a frame over a link, those of hosts included. ns-3 made 191 thousand of them a second on a like machine,
without any flow control.
"""

from __future__ import annotations

import time

from benchmarks.dateline import dateline_torus
from benchmarks.table import Figure, median_text, progress
from testbed.engines.simulate import PacketNetwork, PacketSettings, simulate_packets
from testbed.engines.simulate.packet_settings import FlowControl
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

NS3 = 191e3
_LOADS = (0.1, 0.3, 0.6)
_CONTROLS: tuple[FlowControl, ...] = ("none", "pfc")
_SIZES = ((8, 200.0), (64, 4.0))
_GIGABIT = 1e9


def packet_simulator(runs: int) -> list[Figure]:
    """Packet-hops a second by flow control and load, and time of one by size."""
    topology, routes = dateline_torus(8)
    progress("packets: loading")
    _hops_a_second(
        PacketNetwork.from_routes(topology, routes, PacketSettings(duration=1, warm_up=0), _GIGABIT, _GIGABIT, 1),
        0.3,
        1,
    )
    figures = []
    for how in _CONTROLS:
        settings = PacketSettings(flow_control=how, duration=500, warm_up=0)
        network = PacketNetwork.from_routes(topology, routes, settings, _GIGABIT, _GIGABIT, 1)
        for load in _LOADS:
            progress(f"packets: flow control {how}, load {load}")
            rates = [_hops_a_second(network, load, seed) for seed in range(1, runs + 1)]
            text = f"{median_text([rate / 1e6 for rate in rates], 'M/s')}; ns-3 {NS3 / 1e6:g} M/s"
            figures.append(Figure(f"packets, 8×8 torus, flow control {how}, load {load}: packet-hops", text))
    for size, duration in _SIZES:
        progress(f"packets: {size}×{size} torus")
        plan = make_plan(parse_scenario(f"topology: {{kind: torus, sizes: [{size}, {size}], parallel_links: 2}}", "x"))
        plan.require_proof()
        settings = PacketSettings(duration=duration, warm_up=0)
        network = PacketNetwork.from_routes(plan.topology, plan.routes, settings, _GIGABIT, _GIGABIT, 1)
        # Longer paths meet the same load on each channel at a lower rate of the hosts.
        load = 0.3 * 8 / size
        costs = [1e9 / _hops_a_second(network, load, seed) for seed in range(1, runs + 1)]
        name = f"packets, {size}×{size} torus, PAUSE, load {load:g}: a packet-hop"
        figures.append(Figure(name, median_text(costs, "ns")))
    return figures


def _hops_a_second(network: PacketNetwork, load: float, seed: int) -> float:
    """Frames over links a second of processor time; a machine that others use too gives it no less."""
    started = time.thread_time()
    point = simulate_packets(network, load, seed)
    seconds = time.thread_time() - started
    assert point is not None
    assert point.links is not None
    return (sum(point.channel_flits) + point.links.made + point.packets) / seconds
