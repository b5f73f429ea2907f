"""A torus with datelines on single links, as network simulators have it."""

from __future__ import annotations

from testbed.base.model import Routes, Topology
from testbed.planning import make_plan
from testbed.scenario import parse_scenario


def dateline_torus(size: int, hosts: int = 1) -> tuple[Topology, Routes]:
    """A size×size torus of single links, shortest ways, two layers."""
    scenario = parse_scenario(
        f"topology: {{kind: torus, sizes: [{size}, {size}], hosts_per_switch: {hosts}}}\n"
        "routing: {kind: dor, ring: datelines}\nassignment: {kind: openflow}",
        "benchmark",
    )
    plan = make_plan(scenario)
    plan.require_proof()
    return plan.topology, plan.routes
