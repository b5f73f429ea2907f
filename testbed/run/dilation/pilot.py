"""A short load that tells whether a lab keeps up at a dilation, whatever loads its scenario has.

What limits a software switch is the number of frames that it forwards. So the pilot sends UDP datagrams, which need no
time to settle, at a rate at which all switches together forward as many frames a second as under the scenario's
greatest load, and some more for a margin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from testbed.errors import WorkloadError
from testbed.plan import Plan
from testbed.plan.rates import STANDARD, at_dilation, demand, fair_rates, iperf3_demand
from testbed.predict import transport
from testbed.run.checks.fidelity import Judgement, Verdict
from testbed.run.loads.context import Context
from testbed.run.loads.run_iperf3 import run_iperf3
from testbed.session import Session
from testbed.traffic import flows
from testbed.workloads import WORKLOADS
from testbed.workloads.pairs import OutputError
from testbed.workloads.spec import Iperf3

# Leaves iperf3's own messages room on links that are full.
_OFFERED = 0.9
# So many frames of the slowest flow are counted, so that one more or less is no deviation; but not for longer.
_FRAMES, _MAX_SECONDS = 150, 10


@dataclass(frozen=True, slots=True)
class Pilot:
    """A pilot for one scenario."""

    spec: Iperf3  # the load
    factor: float  # how many times faster links are in a trial than at the dilation that is tried
    slowest: float  # real-world goodput of its slowest flow, bit/s


def make_pilot(plan: Plan, margin: float) -> Pilot:
    """Choose a pattern with few flows, and the rate that makes up for what the scenario needs beyond it.

    The lab must manage `margin` times more than the loads need.
    """
    spec = replace(_few_flows(plan), offered=_OFFERED, seconds=1, omit=1, repeats=1)
    pairs = flows(spec.pattern, plan.topology, plan.scenario.lab.seed)
    goodput = fair_rates(plan, pairs, transport("udp", spec.payload))
    factor = margin * demand(plan) / iperf3_demand(plan, spec)
    return Pilot(spec, factor, float(goodput.min()))


def _few_flows(plan: Plan) -> Iperf3:
    """The most demanding pattern of the scenario with no more flows than hosts, as full UDP frames."""
    hosts, seed = plan.topology.host_count, plan.scenario.lab.seed
    traffic = [WORKLOADS[load.kind].traffic(load.spec) for load in plan.scenario.workloads]
    patterns = dict.fromkeys(sent.pattern for sent in traffic if sent is not None and not sent.bursts)
    few = [pattern for pattern in patterns if pattern is not None and len(flows(pattern, plan.topology, seed)) <= hosts]
    candidates = [replace(STANDARD, pattern=pattern) for pattern in few] or [STANDARD]
    return max(candidates, key=lambda spec: iperf3_demand(plan, spec))


def trial(plan: Plan, lab: Session, pilot: Pilot, dilation: float) -> Judgement:
    """Run the pilot as it is at a dilation; the lab stays shaped for it."""
    fast = at_dilation(plan, dilation / pilot.factor, telemetry=0)
    lab.set_rates(fast)
    frames = _OFFERED * _slowest_rate(pilot, dilation) / (8 * pilot.spec.payload)
    seconds = min(max(1, math.ceil(_FRAMES / frames)), _MAX_SECONDS)
    # Loads count from 1: nothing of the pilot is taken for a part of them.
    context = Context(fast, lab, {"load": "0"}, lambda name, text: None, lambda text: None)
    try:
        outcome = run_iperf3(context, replace(pilot.spec, seconds=seconds))
    except (WorkloadError, OutputError) as error:
        return Judgement(Verdict.FAIL, (str(error),))
    return Judgement.of(outcome.findings)


def _slowest_rate(pilot: Pilot, dilation: float) -> float:
    """Laboratory bit/s of the pilot's slowest flow in a trial."""
    return pilot.slowest * pilot.factor / dilation
