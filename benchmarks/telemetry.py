"""What telemetry costs: the same load in one lab, with and without it in turn.

Where the lab keeps up, telemetry cannot cost throughput; so links are also made so fast that processors are what
limits, and every share that telemetry takes is missing elsewhere.
"""

from __future__ import annotations

import statistics

from benchmarks.table import Figure, progress
from testbed.base.model import host_ip
from testbed.engines.lab.control.build import build_lab
from testbed.experiments.run.checks.fidelity import process_shares
from testbed.experiments.run.loads.context import Context
from testbed.fabric.traffic import flows
from testbed.planning import make_plan
from testbed.scenario import find_scenario, load_scenario
from testbed.scenario.workloads import iperf3
from testbed.scenario.workloads.spec import Iperf3, times

_SCENARIO = "torus4x4"
_LOAD = Iperf3("tcp", "neighbour", seconds=5, omit=1)
# Real-world links of 1 Gbit/s: 5 Mbit/s, which the lab carries, and 50, which it does not.
_DILATIONS = {"the lab keeps up": 200, "processors limit": 20}
_WINDOW = (times(_LOAD).omit + 0.25, sum(times(_LOAD)) - 0.25)


def telemetry(runs: int) -> list[Figure]:
    """Goodput with telemetry against goodput without, in pairs of loads whose order alternates."""
    figures = []
    for what, dilation in _DILATIONS.items():
        ratios, on, off = _pairs(dilation, runs, what)
        name = f"telemetry at 100 ms, {what}"
        figures += [
            Figure(f"{name}: goodput with / without (at least 0.98)", _text(ratios, "")),
            Figure(f"{name}: agent's processor time with", _text(on, " % of one processor")),
            Figure(f"{name}: agent's processor time without", _text(off, " % of one processor")),
        ]
    return figures


def _text(values: list[float], unit: str) -> str:
    median = f"median {statistics.median(values):.4g}{unit}, mean {statistics.fmean(values):.4g}"
    return f"{median}  ({min(values):.4g} – {max(values):.4g}, {len(values)} runs)"


def _pairs(dilation: int, runs: int, what: str) -> tuple[list[float], list[float], list[float]]:
    """Ratios of goodput, and the agent's processor time with and without telemetry, %."""
    plan = make_plan(load_scenario(find_scenario(_SCENARIO), [f"lab.dilation={dilation}"]))
    with build_lab(plan) as lab:
        context = Context(plan, lab, {}, lambda name, text: None, progress)
        measure(context, watched=True)  # the first load makes caches and filters
        ratios, shares = [], {True: list[float](), False: list[float]()}
        for number in range(1, runs + 1):
            goodput = {}
            for watched in (False, True) if number % 2 else (True, False):
                progress(f"{what}: pair {number} of {runs}, {'with' if watched else 'without'} telemetry")
                goodput[watched], share = measure(context, watched=watched)
                shares[watched].append(share)
            ratios.append(goodput[True] / goodput[False])
    return ratios, shares[True], shares[False]


def measure(context: Context, *, watched: bool) -> tuple[float, float]:
    """Goodput of all flows together in lab bit/s, and the agent's processor time in %."""
    topology = context.plan.topology
    pairs = flows(_LOAD.pattern, topology, 1)
    names = [(topology.host_name(source), topology.host_name(target), host_ip(target)) for source, target in pairs]
    servers, clients = iperf3.commands(_LOAD, names, [0.0] * len(names))
    departures = _WINDOW[0] if watched else None
    result = context.run([*servers, *clients], 60, _WINDOW, watched=watched, departures=departures)
    found = (
        iperf3.parse(_LOAD, result.outputs[server.id].stdout, result.outputs[client.id].stdout)
        for server, client in zip(servers, clients, strict=True)
    )
    return sum(flow.goodput for flow in found), 100 * process_shares(result.before, result.after)["agent"][0]
