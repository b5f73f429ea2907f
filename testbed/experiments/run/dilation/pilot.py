"""Short loads that tell whether a lab keeps up at a dilation, whatever loads its scenario has.

What limits a software switch is the number of frames that it forwards. So the pilot sends UDP datagrams, which need no
time to settle, at a rate at which all switches together forward as many frames a second as under the scenario's
greatest load, and some more for a margin. What MPI jobs need is more than that: their programs want the processors as
well, and what they send comes in bursts. So a scenario with jobs has a second pilot, a short job as it is.

Modelled switches are limited by the frames that hosts send and take, over however many switches, and tell by themselves
which came late. So their pilot stands for the steady loads alone, and the job for jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from testbed.base.errors import WorkloadError
from testbed.dataplane.predict import transport
from testbed.dataplane.predict.bounds import alltoall_bound
from testbed.engines.session import Session
from testbed.experiments.run.checks.fidelity import Judgement, Verdict
from testbed.experiments.run.loads.context import Context, LoadOutcome
from testbed.experiments.run.loads.run_iperf3 import run_iperf3
from testbed.experiments.run.loads.run_mpi import run_mpi
from testbed.fabric.traffic import flows
from testbed.planning import Plan
from testbed.planning.rates import (
    STANDARD,
    all_sent,
    at_dilation,
    demand,
    demand_of,
    fair_rates,
    frames_of,
    iperf3_traffic,
    steady_frames,
    wires_of,
)
from testbed.scenario.workloads import Traffic
from testbed.scenario.workloads.pairs import OutputError
from testbed.scenario.workloads.spec import Iperf3, Mpi

# Leaves iperf3's own messages room on links that are full.
_OFFERED = 0.9
# So many frames of the slowest flow are counted, so that one more or less is no deviation; but not for longer.
_FRAMES, _MAX_SECONDS = 150, 10
# Of the job: laboratory seconds that count, times that it exchanges its blocks in them, and bytes of a block. Shorter
# ones would be passed on by other ranks, or be software's time.
_JOB_SECONDS, _EXCHANGES, _MAX_BLOCK, _MIN_BLOCK = 3, 5, 20_000, 2_000
_JOB_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Pilot:
    """A pilot for one scenario."""

    spec: Iperf3  # the load
    factor: float  # how many times faster links are in a trial than at the dilation that is tried
    slowest: float  # real-world goodput of its slowest flow, bit/s


def make_pilot(plan: Plan, margin: float, *, modelled: bool = False) -> Pilot:
    """Choose a pattern with few flows, and the rate that makes up for what the scenario needs beyond it.

    The lab must manage `margin` times more than the loads need; `modelled` says that its switches are a model.
    """
    asked = frames_of if modelled else demand_of
    spec = replace(_few_flows(plan, asked), offered_load=_OFFERED, seconds=1, omit=1, repeats=1)
    pairs = flows(spec.pattern, plan.topology, plan.scenario.lab.seed, amounts=True)
    goodput = fair_rates(plan, pairs, transport("udp", spec.payload))
    factor = margin * (steady_frames(plan) if modelled else demand(plan)) / asked(plan, iperf3_traffic(spec))
    return Pilot(spec, factor, float(goodput.min()))


def _few_flows(plan: Plan, asked: Callable[[Plan, Traffic], float]) -> Iperf3:
    """The most demanding pattern of the scenario with no more flows than hosts, as full UDP frames."""
    hosts, seed = plan.topology.host_count, plan.scenario.lab.seed
    patterns = dict.fromkeys(sent.pattern for sent in all_sent(plan) if not sent.bursts)
    few = [
        pattern
        for pattern in patterns
        if pattern is not None and len(flows(pattern, plan.topology, seed, amounts=True)) <= hosts
    ]
    candidates = [replace(STANDARD, pattern=pattern) for pattern in few] or [STANDARD]
    return max(candidates, key=lambda spec: asked(plan, iperf3_traffic(spec)))


def run_pilot(plan: Plan, lab: Session, pilot: Pilot, dilation: float) -> Judgement:
    """Run the pilot as it is at a dilation; the lab stays shaped for it."""
    fast = at_dilation(plan, dilation / pilot.factor, telemetry=0)
    frames = _OFFERED * _slowest_rate(pilot, dilation) / (8 * pilot.spec.payload)
    seconds = min(max(1, math.ceil(_FRAMES / frames)), _MAX_SECONDS)
    return _judge_run(fast, lab, lambda context: run_iperf3(context, replace(pilot.spec, seconds=seconds)))


def pilot_job(plan: Plan, dilation: float, *, modelled: bool = False) -> Mpi | None:
    """The job that stands for the scenario's MPI jobs at a dilation; None where it has none.

    The one that sends most counts, as an all-to-all among all hosts, or by its pattern. On `modelled` switches, which
    tell of each frame how late it was, a few exchanges say enough.
    """
    jobs = [sent for sent in all_sent(plan) if sent.bursts]
    if not jobs:
        return None
    pattern = max(jobs, key=lambda sent: demand_of(plan, sent)).pattern
    if pattern is not None:
        return Mpi("pattern", ("--omit", "1", "--seconds", str(_JOB_SECONDS)), _JOB_LIMIT, pattern=pattern)
    wires = wires_of(plan, transport("tcp", 0, plan.scenario.links.mtu))
    exchange = dilation * alltoall_bound(wires, plan.routes, _MAX_BLOCK)
    wanted = _JOB_SECONDS / _EXCHANGES
    block = max(_MIN_BLOCK, round(_MAX_BLOCK * min(1.0, wanted / exchange)))
    repeats = _EXCHANGES if modelled else max(_EXCHANGES, round(_JOB_SECONDS / exchange))
    args = ("--tests", "alltoall", "--alltoall-bytes", str(block), "--repeats", str(repeats), "--warmup", "1")
    return Mpi("fabric_bench", args, _JOB_LIMIT)


def job_name(job: Mpi) -> str:
    """What the job does, in words."""
    return "MPI all-to-all" if job.pattern is None else f"MPI {job.pattern}"


def trial_of_job(plan: Plan, lab: Session, job: Mpi, dilation: float) -> Judgement:
    """Run the job at a dilation; the lab stays shaped for it."""
    return _judge_run(at_dilation(plan, dilation, telemetry=0), lab, lambda context: run_mpi(context, job))


def _judge_run(plan: Plan, lab: Session, run: Callable[[Context], LoadOutcome]) -> Judgement:
    lab.set_rates(plan)
    # Loads count from 1: nothing of the pilot is taken for a part of them.
    context = Context(plan, lab, {"load": "0"}, lambda name, text: None, lambda text: None)
    try:
        outcome = run(context)
    except (WorkloadError, OutputError) as error:
        return Judgement(Verdict.FAIL, (str(error),))
    return Judgement.merge(outcome.findings)


def _slowest_rate(pilot: Pilot, dilation: float) -> float:
    """Laboratory bit/s of the pilot's slowest flow in a trial."""
    return pilot.slowest * pilot.factor / dilation
