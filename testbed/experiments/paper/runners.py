"""What obtains our numbers, by name, as one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.experiments.paper import measured_numbers as measured
from testbed.experiments.paper import planned_numbers as planned
from testbed.experiments.paper import simulated_numbers as simulated

Run = Callable[[Any], tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class ItemRunner:
    """A way to obtain numbers."""

    options: type[Any]  # dataclass of what it is told in a table
    run: Run  # from those to values, one a drawing, or one
    quick: bool  # whether it needs no lab and no long simulation
    # about how long it takes, for the order and for the time left; only their relation counts
    seconds: Callable[[Any], float]
    words: str  # how it obtains them, for readers
    lab: bool = False  # whether it builds a lab
    recomputes: bool = False  # whether it takes nothing but the paper's own numbers


def _flits(options: Any) -> float:
    hosts = 256 if options.topology.get("switches", 64) == 64 else 64
    return float(options.drawings * options.clocks * hosts / 2e7)


RUNNERS: dict[str, ItemRunner] = {
    "plan": ItemRunner(planned.PlanFigure, planned.plan_figure, True, lambda options: 0.5, "a proved plan"),
    "fair_goodput": ItemRunner(
        planned.FairGoodput, planned.fair_goodput, True, lambda options: 0.5, "max–min fair shares of the plan's links"
    ),
    "wire": ItemRunner(planned.Wire, planned.wire_goodput, True, lambda options: 0.001, "bytes on the wire"),
    "switch_watts": ItemRunner(
        planned.SwitchWatts, planned.switch_watts, True, lambda options: 0.001, "the paper's own watts a port",
        recomputes=True,
    ),
    "own_numbers": ItemRunner(
        planned.OwnNumbers, planned.own_numbers, True, lambda options: 0.001, "other numbers of the paper",
        recomputes=True,
    ),
    "most_saved": ItemRunner(
        planned.MostSaved, planned.most_saved, True, lambda options: 0.5, "all but one link of each pair off"
    ),
    "static_bound": ItemRunner(
        planned.Bound, planned.static_bound, True, lambda options: 0.3 * options.drawings, "the paths' bottleneck"
    ),
    "hops": ItemRunner(
        simulated.Layered, simulated.mean_hops, True, lambda options: 0.1 * options.drawings, "the paths of the plan"
    ),
    "segment_changes": ItemRunner(
        planned.SegmentChanges, planned.segment_changes, True, lambda options: 0.5 * options.drawings,
        "what a dead link takes of the tables, locally over anew",
    ),
    "flits": ItemRunner(simulated.Throughput, simulated.throughput, False, _flits, "the flit-level simulator"),
    "frames": ItemRunner(
        simulated.PacketThroughput, simulated.packet_throughput, False,
        lambda options: 1.0 * options.drawings, "the packet-level simulator, with PAUSE",
    ),
    "measure": ItemRunner(
        measured.MeasuredItem, measured.measure, False, lambda options: 120.0 * options.runs, "a run of a scenario",
        lab=True,
    ),
}  # fmt: skip
