"""How much work the loads of a scenario are for the switches, at real-world rates."""

from __future__ import annotations

from testbed.plan import Plan
from testbed.plan.rates import fair_rates, wires_of
from testbed.predict import transport
from testbed.predict.bounds import alltoall_frame_hops, frame_hops
from testbed.traffic import flows
from testbed.workloads import WORKLOADS, Traffic
from testbed.workloads.spec import Iperf3

# What a lab is measured by when nothing else is asked: one flow from each host, short paths.
STANDARD = Iperf3("udp", "neighbour")


def demand(plan: Plan) -> float:
    """Frames a second times switches, of the load that needs most; of the standard load where none sends much.

    An MPI job counts as an all-to-all among all hosts, or as its pattern: what it needs at its busiest.
    """
    traffic = (WORKLOADS[load.kind].traffic(load.spec) for load in plan.scenario.workloads)
    return max((_demand(plan, sent) for sent in traffic if sent is not None), default=0.0) or iperf3_demand(
        plan, STANDARD
    )


def iperf3_demand(plan: Plan, spec: Iperf3) -> float:
    """Frames a second times switches of an iperf3 load."""
    sent = WORKLOADS["iperf3"].traffic(spec)
    return _demand(plan, sent) if sent is not None else 0.0


def _demand(plan: Plan, sent: Traffic) -> float:
    wire = transport(sent.protocol, sent.payload)
    wires = wires_of(plan, wire)
    if sent.pattern is None:
        return alltoall_frame_hops(wires, plan.routes)
    pairs = flows(sent.pattern, plan.topology, plan.scenario.lab.seed)
    return sent.share * frame_hops(wires, plan.routes, pairs, fair_rates(plan, pairs, wire))
