"""Each flow's goodput against its prediction, from a stored run."""

from __future__ import annotations

import statistics
from collections import defaultdict

from testbed.results.read_run import Run

Pair = tuple[str, str]


def flow_ratios(run: Run, load: str) -> dict[Pair, float]:
    """Median over repeats of measured / predicted goodput, by (source, destination).

    Args:
        run: a finished run.
        load: name of one of its loads, as in `labels`.
    """
    of_flow: dict[Pair, list[float]] = defaultdict(list)
    for sample in run.samples:
        labels = sample.labels
        if labels.get("load") == load and sample.metric == "goodput" and sample.predicted and "src" in labels:
            of_flow[labels["src"], labels["dst"]].append(sample.value / sample.predicted)
    return {pair: statistics.median(values) for pair, values in of_flow.items()}


def ratio_text(run: Run, load: str) -> str:
    """Mean, worst and best flow of a load, and the frames it lost where that was counted."""
    medians = flow_ratios(run, load).values()
    if not medians:
        return "nothing was measured"
    mean, worst, best = statistics.mean(medians), min(medians), max(medians)
    text = f"of the prediction: mean {mean:.3f}, worst flow {worst:.3f}, best {best:.3f}"
    losses = [s.value for s in run.samples if s.labels.get("load") == load and s.metric == "loss"]
    return f"{text}, loss {100 * statistics.mean(losses):.2f} %" if losses else text
