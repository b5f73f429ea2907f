"""How much a virtual machine whose clock counts instructions has to do for a run.

All of it is counted in instructions as QEMU does them while the machine boots, which is when its speed is seen. Under
loads each of the machine's instructions takes longer: processes take turns, and with each turn QEMU forgets where it
has what it translated.
"""

from __future__ import annotations

from testbed.fabric.traffic import flows
from testbed.planning import Plan
from testbed.planning.rates import demand_of, time_limit_factor, timed
from testbed.scenario import Workload
from testbed.scenario.workloads import WORKLOADS
from testbed.scenario.workloads.spec import Iperf3, load_seconds

# By the main job and a 2×2 mesh; a port's are those of building, checking and shaping its lab.
_BOOT, _PORT = 5.0e9, 7.0e7
_JOB = 3.1e9  # building an MPI job
_PAIR, _FLOW, _FRAME_HOP = 1.0e8, 7.5e7, 5.0e4
_SECOND = 2.4e8  # of laboratory time in which counters are read
# Laboratory seconds of an MPI job, of which nothing is known beforehand, on links as slow as loads are written for, and
# what a rank does in one.
_JOB_SECONDS, _RANK_SECOND = 7.3, 2.0e7


def run_instructions(plan: Plan) -> float:
    """Return how many instructions a run has to do, about; the plan's dilation is a number."""
    ports = 2 * plan.wiring.link_count + plan.wiring.host_count
    return _BOOT + ports * _PORT + sum(_load_instructions(plan, load) for load in plan.scenario.workloads)


def _load_instructions(plan: Plan, load: Workload) -> float:
    kind, spec = WORKLOADS[load.kind], load.spec
    hosts, seed, dilation = plan.topology.host_count, plan.scenario.lab.seed, plan.scenario.lab.chosen_dilation
    sent = kind.traffic(spec)
    frame_hops = demand_of(plan, sent) / dilation if sent is not None else 0.0
    if isinstance(spec, Iperf3):
        seconds = load_seconds(timed(plan, spec))
        count = len(flows(spec.pattern, plan.topology, seed, amounts=True))
        return spec.repeats * (count * _FLOW + seconds * (_SECOND + frame_hops * _FRAME_HOP))
    ranks = kind.ranks(spec, plan.topology)
    if ranks:
        seconds = _JOB_SECONDS * time_limit_factor(plan)
        return _JOB + seconds * (_SECOND + ranks * _RANK_SECOND)
    return hosts * _PAIR
