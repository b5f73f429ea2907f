"""Numbers measured by running a scenario's loads, in a lab or by the simulator behind its engine."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import WorkloadError
from testbed.experiments.paper.planned_numbers import PaperFabric, proved_plan
from testbed.experiments.run.engines import run_scenario

RESULTS = Path("results")
_UNITS = {"bit/s": 1e-6, "s": 1e6}  # to Mbit/s and µs


@dataclass(frozen=True, slots=True)
class MeasuredItem(PaperFabric):
    """A metric of a run."""

    metric: str = "goodput"  # such as `goodput`
    load: int = 0  # number of the load, from 1; 0 = all that have the metric
    runs: int = 1  # one value each
    scale: float = 0.0  # what values are multiplied by; 0 = bit/s become Mbit/s and seconds µs


def measure(options: MeasuredItem) -> tuple[float, ...]:
    """Mean over all samples of the metric, of each run.

    Raises:
        WorkloadError: a run is invalid or has failed, or has no such metric.
    """
    return tuple(_one(options) for _ in range(options.runs))


def _one(options: MeasuredItem) -> float:
    outcome = run_scenario(proved_plan(options), RESULTS, lambda text: None)
    if outcome.exit_code == 1:
        raise WorkloadError(f"the run is {outcome.verdict.word}: {'; '.join(outcome.reasons)}", outcome.folder)
    found = [
        sample
        for sample in outcome.samples
        if sample.metric == options.metric
        and (not options.load or sample.labels.get("load", "").startswith(f"{options.load}"))
    ]
    if not found:
        known = ", ".join(sorted({sample.metric for sample in outcome.samples}))
        raise WorkloadError(f'the run has no metric "{options.metric}"; it has {known}', outcome.folder)
    scale = options.scale or _UNITS.get(found[0].unit, 1.0)
    return scale * statistics.fmean(sample.value for sample in found)
