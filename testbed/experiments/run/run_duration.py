"""How long a run takes, about, where its loads say how long they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from testbed.fabric.traffic import flows
from testbed.planning import Plan
from testbed.planning.rates import link_slowness, timed
from testbed.scenario import Workload
from testbed.scenario.workloads.spec import Iperf3, load_seconds

# s, about, on a small machine: building and checking a lab, trying dilations, the report, starting programs of a pair.
_BUILD, _CHOICE, _REPORT, _A_PAIR, _A_REPEAT = 3.0, 15.0, 2.0, 0.15, 1.5
_PING = 0.02
# Laboratory seconds of a load with so many pairs, and links so slow; whether pairs run one after the other.
_SECONDS: Mapping[str, Callable[[Any, int, float], float]] = {
    "iperf3": lambda spec, pairs, slow: spec.repeats * (load_seconds(spec, slow) + _A_REPEAT + _PING * pairs),
    "ping": lambda spec, pairs, slow: pairs * (spec.count * _PING + _A_PAIR),
    "rr": lambda spec, pairs, slow: spec.repeats * (1 if spec.at_once else pairs) * (spec.seconds + _A_PAIR),
    "probe": lambda spec, pairs, slow: spec.seconds + _A_REPEAT,
}


def expected_seconds(plan: Plan, *, built: bool = False) -> float | None:
    """Seconds that the plan's loads take in a lab, with all around them; None where a program decides that.

    `built`: whether the lab is there already.
    """
    if any(load.kind not in _SECONDS for load in plan.scenario.workloads):
        return None
    around = _REPORT + (0.0 if built else _BUILD) + (_CHOICE if plan.scenario.lab.dilation == "auto" else 0.0)
    return around + sum(_expect_seconds(plan, load) for load in plan.scenario.workloads)


def _expect_seconds(plan: Plan, load: Workload) -> float:
    pattern = getattr(load.spec, "pattern", None)
    pairs = 0 if pattern is None else len(flows(pattern, plan.topology, plan.scenario.lab.seed, amounts=True))
    if plan.scenario.lab.dilation == "auto":
        return _SECONDS[load.kind](load.spec, pairs, 1.0)
    spec = timed(plan, load.spec) if isinstance(load.spec, Iperf3) else load.spec
    return _SECONDS[load.kind](spec, pairs, link_slowness(plan))
