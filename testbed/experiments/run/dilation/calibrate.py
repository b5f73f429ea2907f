"""What this machine sustains, measured on two small standard labs: frames forwarded, and the delay of a switch."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from testbed.base.errors import CapabilityError, LabError
from testbed.base.messages import LoadRequest
from testbed.base.model import host_ip
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.local_machine.calibration import Calibration, first_guess, machine
from testbed.engines.local_machine.probe import require
from testbed.engines.session import Session
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.dilation.choose import choose_step, next_step
from testbed.experiments.run.dilation.pilot import make_pilot, run_pilot
from testbed.experiments.run.in_session import check_paths
from testbed.planning import Plan, make_plan
from testbed.planning.rates import STANDARD, demand_of, iperf3_traffic
from testbed.scenario import parse_scenario
from testbed.scenario.workloads import ping
from testbed.scenario.workloads.spec import Ping

_TORUS = "topology: {kind: torus, sizes: [4, 4]}\nlab: {dilation: auto}\nworkloads: [{kind: iperf3, protocol: udp}]"
# Links as fast as the shaping allows, so that a ping meets nothing but software.
_CHAIN = "topology: {kind: mesh, sizes: [8]}\nlinks: {rate: 10 Gbit/s}\nlab: {dilation: 10}"
_CHAIN_SWITCHES = 8
_PINGS, _ROUNDS = 20, 3
# Some 10 % apart: finer than the steps of a dilation that is chosen.
_STEPS = tuple(round(10 ** (step / 24), 3) for step in range(24 * 4 + 1))

Progress = Callable[[str], None]


def calibrate(progress: Progress) -> Calibration:
    """Measure; takes one to two minutes.

    Raises:
        CapabilityError: no lab can be built here, or the machine forwards no load at any rate.
        LabError: a lab broke.
    """
    torus, chain = (make_plan(parse_scenario(text, "calibration")) for text in (_TORUS, _CHAIN))
    require(torus.scenario)
    require(chain.scenario)
    with _running(torus, progress) as lab:
        sustained, failed = _frame_hops(torus, lab, progress)
        facts = machine(lab.facts.datapath, lab.facts.version)
    with _running(chain, progress) as lab:
        slopes = [_hop_seconds(chain, lab, number, progress) for number in range(1, _ROUNDS + 1)]
    spread = {"median": float(np.median(slopes)), "least": min(slopes), "most": max(slopes)}
    return Calibration(facts, sustained, failed, spread, time.time())


def _running(plan: Plan, progress: Progress) -> LabClient:
    lab = build_lab(plan, progress=lambda step: progress(f"building {plan.scenario.topology_kind}: {step}"))
    try:
        check_paths(plan, lab)
    except BaseException:
        lab.end()
        raise
    return lab


def _frame_hops(plan: Plan, lab: Session, progress: Progress) -> tuple[float, float | None]:
    """Frames a second times switches at the fastest links that were faithful, and at the slowest that were not."""
    need = demand_of(plan, iperf3_traffic(STANDARD))
    pilot = make_pilot(plan, 1.0)
    tried: dict[float, bool] = {}
    guess, _ = first_guess(plan)
    while (step := next_step(_STEPS, tried, guess)) is not None:
        rate = f"{need / step:,.0f} frames a second over all switches"
        progress(f"4×4 torus: {rate}")
        found = run_pilot(plan, lab, pilot, step)
        tried[step] = found.verdict is Verdict.PASS
        progress(f"4×4 torus: {rate}: {'; '.join([found.verdict.word, *found.reasons[:1]])}")
    best = choose_step(_STEPS, tried)
    if best is None:
        raise CapabilityError(
            "this machine forwards no load as predicted, however slow; end what else keeps it busy and calibrate again"
        )
    return need / best, min((need / step for step, faithful in tried.items() if not faithful), default=None)


def _hop_seconds(plan: Plan, lab: Session, number: int, progress: Progress) -> float:
    """Laboratory seconds, one way, by which one switch more delays an echo: by `slope`."""
    progress(f"chain of {_CHAIN_SWITCHES} switches: pings, round {number} of {_ROUNDS}")
    topology, switches, means = plan.topology, [], []
    for host in range(1, topology.host_count):
        process = ping.command(Ping(count=_PINGS), topology.host_name(0), host_ip(host))
        output = lab.run_load(LoadRequest((process,), limit=60.0)).outputs[process.id]
        parsed = ping.parse(output.stdout)
        if parsed.rtt_mean is None:
            raise LabError(f"{topology.host_name(host)} does not answer pings")
        switches.append(host + 1)
        means.append(parsed.rtt_mean)
    return slope(switches, means) / 2


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of the line through some points by Theil and Sen: the median over pairs, which a few outliers do not move.

    No two of `x` are alike.
    """
    points = sorted(zip(x, y, strict=True))
    return float(np.median([(b[1] - a[1]) / (b[0] - a[0]) for n, a in enumerate(points) for b in points[n + 1 :]]))
