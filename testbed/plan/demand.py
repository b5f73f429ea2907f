"""How much work the loads of a scenario are for the switches, at real-world rates."""

from __future__ import annotations

from testbed.plan import Plan
from testbed.plan.rates import fair_rates, wires_of
from testbed.predict import transport
from testbed.predict.bounds import alltoall_frame_hops, frame_hops
from testbed.traffic import flows
from testbed.workloads.spec import Iperf3, Mpi, Npb

JOBS = ("mpi", "npb")
# What a lab is measured by when nothing else is asked: one flow from each host, short paths.
STANDARD = Iperf3("udp", "neighbour")


def demand(plan: Plan) -> float:
    """Frames a second times switches, of the load that needs most; of the standard load where none sends much.

    An MPI job counts as an all-to-all among all hosts, or as its pattern: what it needs at its busiest.
    """
    found = []
    for load in plan.scenario.workloads:
        if load.kind == "iperf3":
            found.append(iperf3_demand(plan, load.spec))
        elif load.kind in JOBS:
            found.append(_job_demand(plan, load.spec))
    return max(found, default=0.0) or iperf3_demand(plan, STANDARD)


def iperf3_demand(plan: Plan, spec: Iperf3) -> float:
    """Frames a second times switches of an iperf3 load."""
    offered = spec.offered if spec.protocol == "udp" else 1.0
    return offered * _pattern_demand(plan, spec.pattern, spec.protocol, spec.payload)


def _job_demand(plan: Plan, spec: Mpi | Npb) -> float:
    if isinstance(spec, Mpi) and spec.pattern is not None:
        return _pattern_demand(plan, spec.pattern, "tcp", 0)
    return alltoall_frame_hops(wires_of(plan, transport("tcp", 0)), plan.routes)


def _pattern_demand(plan: Plan, pattern: str, protocol: str, payload: int) -> float:
    pairs = flows(pattern, plan.topology, plan.scenario.lab.seed)
    wire = transport(protocol, payload)
    return frame_hops(wires_of(plan, wire), plan.routes, pairs, fair_rates(plan, pairs, wire))
