"""Which samples a drawing or chart shows, and how repeats become one figure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from testbed.model import Sample, Topology
from testbed.report.charts import Bar, Curve, bar_chart, curve_charts
from testbed.report.drawing import LinkUse
from testbed.report.table import BOUNDS, METRICS

_CURVES = ("mpi_latency", "mpi_bandwidth", "mpi_alltoall_time", "mpi_alltoall_bandwidth", "mpi_barrier_time")
_WHISKERS = "whiskers from the least to the most"
_BOUND_NAMES = {"≥": "lower bound", "≤": "upper bound"}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A chart as SVG with the sentence below it."""

    svg: str
    caption: str


def load_charts(samples: Sequence[Sample], prefix: str) -> list[Drawn]:
    """Return the charts of one load; none of figures that have no sample."""
    samples = [sample for sample in samples if math.isfinite(sample.value)]
    drawn = []
    goodput = _flows([sample for sample in samples if sample.metric == "goodput"])
    if goodput:
        caption = f"Goodput of each of {len(goodput)} flows, all at once"
        repeats = len({sample.labels.get("repeat") for sample in samples if sample.metric == "goodput"})
        if repeats > 1:
            caption += f": median of {repeats} repeats, {_WHISKERS}"
        svg = bar_chart(goodput, "Goodput", "bit/s", f"{prefix}-goodput")
        drawn.append(Drawn(svg, caption + "."))
    trips = _round_trips(samples)
    if trips:
        svg = bar_chart(trips, "Round-trip time", "s", f"{prefix}-rtt")
        drawn.append(Drawn(svg, f"Round-trip time of each pair: mean, {_WHISKERS}."))
    curves = _curves(samples)
    if curves:
        svg = curve_charts(curves, f"{prefix}-sizes")
        drawn.append(Drawn(svg, f"By message size: median of all pairs and repeats, {_WHISKERS}."))
    return drawn


def link_use(topology: Topology, samples: Iterable[Sample]) -> dict[int, LinkUse]:
    """Median use of each channel that has samples; names that are no channel's are left out."""
    numbers = {topology.channel_name(channel): channel for channel in range(2 * topology.link_count)}
    found: dict[int, list[Sample]] = {}
    for sample in samples:
        channel = numbers.get(sample.labels.get("channel", ""))
        if sample.metric == "link_use" and channel is not None and math.isfinite(sample.value):
            found.setdefault(channel, []).append(sample)
    return {
        channel: LinkUse(statistics.median(s.value for s in group), _predicted(group))
        for channel, group in sorted(found.items())
    }


def _predicted(samples: Iterable[Sample]) -> float | None:
    values = [s.predicted for s in samples if s.predicted is not None and math.isfinite(s.predicted)]
    return statistics.median(values) if values else None


def _pair(sample: Sample) -> str:
    return f"{sample.labels.get('src', '?')}→{sample.labels.get('dst', '?')}"


def _bar(name: str, samples: Sequence[Sample]) -> Bar:
    values = [sample.value for sample in samples]
    return Bar(name, statistics.median(values), min(values), max(values), _predicted(samples))


def _grouped(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(_pair(sample), []).append(sample)
    return groups


def _flows(samples: Iterable[Sample]) -> list[Bar]:
    return [_bar(pair, group) for pair, group in _grouped(samples).items()]


def _round_trips(samples: Sequence[Sample]) -> list[Bar]:
    mean, least, most = (
        _grouped(sample for sample in samples if sample.metric == metric)
        for metric in ("rtt_mean", "rtt_min", "rtt_max")
    )
    bars = []
    for pair, group in mean.items():
        bar = _bar(pair, group)
        low = min((sample.value for sample in least.get(pair, ())), default=bar.low)
        high = max((sample.value for sample in most.get(pair, ())), default=bar.high)
        bars.append(Bar(pair, bar.median, min(low, bar.median), max(high, bar.median), bar.predicted))
    return bars


def _curves(samples: Sequence[Sample]) -> list[Curve]:
    """Curves of the metrics that have samples of two sizes or more."""
    curves = []
    for metric in _CURVES:
        sizes: dict[int, list[Sample]] = {}
        for sample in samples:
            size = sample.labels.get("bytes", "")
            if sample.metric == metric and size.isdigit():
                sizes.setdefault(int(size), []).append(sample)
        if len(sizes) > 1:
            points = tuple(_bar(str(size), group) for size, group in sorted(sizes.items()))
            unit = next(iter(sizes.values()))[0].unit
            predicted = _BOUND_NAMES.get(BOUNDS.get(metric, ""), "predicted")
            curves.append(Curve(METRICS[metric], unit, unit == "s", predicted, points))
    return curves
