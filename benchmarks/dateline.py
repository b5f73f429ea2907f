"""Dimension-order routing of a torus with two layers, as network simulators have it; its plan has one layer."""

from __future__ import annotations

import dataclasses

import numpy as np

from testbed.model import Paths, Routes, Topology
from testbed.plan import make_plan
from testbed.routing.paths import all_paths
from testbed.scenario import parse_scenario


def dateline_torus(size: int, hosts: int = 1) -> tuple[Topology, Routes]:
    """A size×size torus of single links, shortest ways; layer 1 while the wrap link lies ahead in a ring, else 0."""
    scenario = parse_scenario(
        f"topology: {{kind: torus, sizes: [{size}, {size}], hosts_per_switch: {hosts}}}\n"
        "routing: {kind: dor, ring: shortest}\nexpect: deadlock",
        "benchmark",
    )
    plan = make_plan(scenario)
    topology, paths = plan.topology, all_paths(plan.topology, plan.routes)
    channels = len(topology.channel_source)
    start = topology.coordinates[topology.channel_source]
    end = topology.coordinates[topology.channel_target]
    dimension = np.argmax(start != end, axis=1)
    wraps = np.abs(start - end).max(axis=1) > 1
    layered = paths.hop.copy()
    for pair in range(len(paths.start) - 1):
        hops = layered[paths.start[pair] : paths.start[pair + 1]]
        ahead = [
            (dimension[hops[place:]] == dimension[hop])[wraps[hops[place:]]].any() for place, hop in enumerate(hops)
        ]
        hops += channels * np.asarray(ahead, dtype=np.int32)
    routes = dataclasses.replace(
        plan.routes,
        relation="paths",
        tree_channel=np.zeros((0, topology.switch_count), dtype=np.int32),
        tree_root=np.zeros(0, dtype=np.int32),
        host_tree=np.zeros(0, dtype=np.int32),
        layers=2,
        paths=Paths(paths.start, layered),
    )
    return topology, routes
