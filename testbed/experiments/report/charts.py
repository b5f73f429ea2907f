"""Charts of a load: its flows beside their predictions, curves over message size, what failures cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.base.model import Floats, Sample
from testbed.base.units import Scale, bytes_text, format_seconds, scale_for
from testbed.experiments.report.figure_tables import Sheet, arrivals, spreads
from testbed.experiments.report.marks import DASHED, Bars, Dash, Line, Mark, Reach, Stairs
from testbed.experiments.report.palette import INK, MUTED, PREDICTED, TREES
from testbed.experiments.report.panels import Axis, Block, Panel, Picture
from testbed.experiments.report.render import for_page
from testbed.experiments.report.sample_table import BOUND_NAMES, BOUNDS, METRICS, UNHELD_MARK, unheld_share
from testbed.results.samples import Failure, FailureRepeat

MAX_UPRIGHT = 16  # more bars lie down
MAX_BARS = 64  # more become a distribution
_BARS_A_COLUMN = 32
_LOGARITHMIC_FROM = 8  # times the middle flow
_CURVES = ("mpi_latency", "mpi_bandwidth", "mpi_alltoall_time", "mpi_alltoall_bandwidth", "mpi_barrier_time")
_WHISKERS = "whiskers from min to max"
_SPAN = "min to max"
# What a prediction of a metric is called that is a bound.
# Moments of a failure, and how they are drawn.
_MOMENTS: tuple[tuple[str, str, Dash], ...] = (
    ("it dies", INK, "-"), ("backup path carries", TREES[2], "-"), ("new tables are in", TREES[1], DASHED),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart as SVG with the sentence below it, and its figures as tables."""

    svg: str
    caption: str
    sheets: tuple[Sheet, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """Several values of one figure: median, min and max in the unit of the samples; prediction where there is one."""

    name: str
    median: float
    min: float
    max: float
    predicted: float | None = None

    @classmethod
    def from_samples(cls, name: str, samples: Sequence[Sample]) -> Summary:
        """Summarise samples, one or more."""
        values = [sample.value for sample in samples]
        return cls(name, statistics.median(values), min(values), max(values), predicted_median(samples))


def load_charts(samples: Sequence[Sample], prefix: str) -> list[Chart]:
    """Return the charts of one load; none of figures that have no sample."""
    samples = [sample for sample in samples if math.isfinite(sample.value)]
    of = {metric: [sample for sample in samples if sample.metric == metric] for metric in ("goodput", "rtt_mean")}
    charts = []
    flows = [Summary.from_samples(pair, group) for pair, group in _by_pair(of["goodput"]).items()]
    if flows:
        caption = f"Goodput of each of {len(flows)} flows, all at once"
        repeats = len({sample.labels.get("repeat") for sample in of["goodput"]})
        if repeats > 1:
            caption += f": median of {repeats} repeats, {_WHISKERS}"
        svg = flow_chart(flows, "Goodput", "bit/s", f"{prefix}-goodput")
        charts.append(Chart(svg, caption + ".", (_sheet("Goodput of each flow", "flow", "bit/s", flows),)))
    trips = _round_trips(samples)
    if trips:
        svg = flow_chart(trips, _mark_unheld("Round-trip time", of["rtt_mean"]), "s", f"{prefix}-rtt")
        sheet = _sheet("Round-trip time of each pair", "pair", "s", trips)
        charts.append(Chart(svg, f"Round-trip time of each pair: mean, {_WHISKERS}.", (sheet,)))
    by_size = _size_panels(samples)
    if by_size:
        panels, sheets = zip(*by_size, strict=True)
        svg = for_page(Picture([Block(panels, 2)]), f"{prefix}-sizes", f"{len(panels)} figures by message size")
        charts.append(Chart(svg, f"By message size: median of all pairs and repeats, {_WHISKERS}.", sheets))
    return charts


def _sheet(title: str, what: str, unit: str, found: Sequence[Summary]) -> Sheet:
    return spreads(title, what, scale_for(unit, max(one.median for one in found)), found)


def predicted_median(samples: Iterable[Sample]) -> float | None:
    """Median of the predictions; None where there is none."""
    values = [s.predicted for s in samples if s.predicted is not None and math.isfinite(s.predicted)]
    return statistics.median(values) if values else None


def _by_pair(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(f"{sample.labels.get('src', '?')}→{sample.labels.get('dst', '?')}", []).append(sample)
    return groups


def _round_trips(samples: Sequence[Sample]) -> list[Summary]:
    mean, low, high = (
        _by_pair(sample for sample in samples if sample.metric == f"rtt_{name}") for name in ("mean", "min", "max")
    )
    found = []
    for pair, group in mean.items():
        own = Summary.from_samples(pair, group)
        ends = [own.median, *(s.value for s in low.get(pair, group)), *(s.value for s in high.get(pair, group))]
        found.append(Summary(pair, own.median, min(ends), max(ends), own.predicted))
    return found


def flow_chart(flows: Sequence[Summary], title: str, unit: str, prefix: str) -> str:
    """Return upright bars as SVG, lying ones when many, a distribution when very many."""
    scale = scale_for(unit, max(flow.median for flow in flows))
    axis = f"{title} ({scale.name})"
    if len(flows) <= MAX_UPRIGHT:
        names = [(float(number), flow.name) for number, flow in enumerate(flows)]
        x = Axis(ticks=names, low=-0.6, high=len(flows) - 0.4)
        width = min(1004.0, 144 + 68 * len(flows))
        block = Block([Panel(_bars(flows, scale), x, Axis(axis, low=0, grid=True), width=width, height=264)])
    elif len(flows) <= MAX_BARS:
        columns = 2 if len(flows) > _BARS_A_COLUMN else 1
        rows = -(-len(flows) // columns)
        highest = 1.04 * max(max(flow.max, flow.predicted or 0) for flow in flows) / scale.factor or 1.0
        parts = [flows[column * rows : (column + 1) * rows] for column in range(columns)]
        panels = [
            Panel(
                _bars(part, scale, lying=True), Axis(axis, low=0, high=highest, grid=True),
                Axis(ticks=[(float(place), flow.name) for place, flow in enumerate(part)], low=rows - 0.4, high=-0.6),
                width=960.0 / columns, height=22.0 * rows,
            )
            for part in parts
        ]  # fmt: skip
        block = Block(panels, columns)
    else:
        block = Block(_distribution(flows, axis, scale), 2)
    return for_page(Picture([block]), prefix, f"{axis} of {len(flows)} flows")


def _scaled(spreads: Sequence[Summary], scale: Scale) -> tuple[Floats, Floats, Floats]:
    """Min, median and max of each in the unit of a scale."""
    found = np.array([(spread.min, spread.median, spread.max) for spread in spreads]).T / scale.factor
    return found[0], found[1], found[2]


def _bars(flows: Sequence[Summary], scale: Scale, *, lying: bool = False) -> list[Bars]:
    """Measured, and beside it predicted."""
    low, median, high = _scaled(flows, scale)
    known = [number for number, flow in enumerate(flows) if flow.predicted is not None]
    thickness = 0.38 if known else 0.6
    shift = thickness / 2 if known else 0.0
    reach = Reach(low, high, _SPAN) if (high > low).any() else None
    found = [Bars(np.arange(len(flows)) - shift, median, "measured", thickness=thickness, lying=lying, reach=reach)]
    if known:
        values = [(flows[number].predicted or 0.0) / scale.factor for number in known]
        found.append(Bars(np.array(known) + shift, values, "predicted", PREDICTED, thickness, lying))
    return found


def _distribution(flows: Sequence[Summary], axis: str, scale: Scale) -> list[Panel]:
    """All flows in falling order, and how many are how far from their predictions."""
    measured = sorted(flows, key=lambda flow: -flow.median)
    predicted = sorted((flow.predicted / scale.factor for flow in flows if flow.predicted is not None), reverse=True)
    gaps = [100 * (flow.median / flow.predicted - 1) for flow in flows if flow.predicted]
    low, median, high = _scaled(measured, scale)
    rank = np.arange(1, len(flows) + 1)
    reach = Reach(low, high, _SPAN) if (high > low).any() else None
    lines = [Line(rank, median, "measured", width=1.8, reach=reach, banded=True)]
    if predicted:
        lines.append(Line(rank[: len(predicted)], predicted, "predicted", PREDICTED, DASHED, 1.8))
    wide = low.min() > 0 and high.max() > _LOGARITHMIC_FROM * np.median(median)
    y = Axis(axis, "log", grid=True) if wide else Axis(axis, low=0, grid=True)
    x = Axis("Flows, each curve in falling order", low=0, high=len(flows) + 1)
    panels = [Panel(lines, x, y, width=600, height=256)]
    if gaps:
        counts, edges = np.histogram(gaps, bins=min(30, max(10, len(gaps) // 8)))
        x, y = Axis("Measured against predicted (%)"), Axis("Flows", low=0, grid=True, whole=True)
        panels.append(Panel([Stairs(edges, counts), Mark(0, colour=PREDICTED)], x, y, width=300, height=256))
    return panels


def _size_panels(samples: Sequence[Sample]) -> list[tuple[Panel, Sheet]]:
    """A panel and its table for each metric that has samples of two message sizes or more."""
    panels = []
    for metric in _CURVES:
        sizes: dict[int, list[Sample]] = {}
        for sample in samples:
            size = sample.labels.get("bytes", "")
            if sample.metric == metric and size.isdigit():
                sizes.setdefault(int(size), []).append(sample)
        if len(sizes) > 1:
            points = {size: Summary.from_samples(str(size), group) for size, group in sorted(sizes.items())}
            unit = next(iter(sizes.values()))[0].unit
            predicted = BOUND_NAMES.get(BOUNDS.get(metric, ""), "predicted")
            title = _mark_unheld(METRICS[metric], [sample for group in sizes.values() for sample in group])
            named = [replace(point, name=bytes_text(size)) for size, point in points.items()]
            scale = scale_for(unit, max(point.median for point in named))
            table = spreads(title, "message size", scale, named, predicted)
            panels.append((_size_panel(title, unit, predicted, points), table))
    return panels


def _mark_unheld(name: str, samples: Iterable[Sample]) -> str:
    """The name of figures, with the mark of those that are in part software's."""
    return f"{name} {UNHELD_MARK}" if unheld_share(samples) else name


def _size_panel(title: str, unit: str, predicted: str, points: Mapping[int, Summary]) -> Panel:
    logarithmic = unit == "s" and all(point.min > 0 for point in points.values())
    medians = [point.median for point in points.values()]
    scale = scale_for(unit, math.sqrt(medians[0] * medians[-1]) if logarithmic else max(medians))
    low, median, high = _scaled(list(points.values()), scale)
    reach = Reach(low, high, _SPAN) if (high > low).any() else None
    marks = [Line(list(points), median, "measured", width=1.8, marker="o", reach=reach)]
    known = {size: point.predicted / scale.factor for size, point in points.items() if point.predicted is not None}
    if known:
        marks.append(Line(list(known), list(known.values()), predicted, PREDICTED, DASHED, 1.8, "s"))
    x = Axis("Message size", "sizes", ticks=[(float(size), bytes_text(size)) for size in points])
    y = Axis(scale.name, "log", grid=True) if logarithmic else Axis(scale.name, low=0, grid=True)
    return Panel(marks, x, y, title, width=446, height=190)


def failure_charts(repeats: Sequence[FailureRepeat], prefix: str) -> list[Chart]:
    """Return the drawing of the first repeat of a load with failures; nothing for a load without."""
    if not repeats or not repeats[0]["pairs"]:
        return []
    first = repeats[0]
    moments: list[Stairs | Mark] = [
        Mark(event["at"] + after, name=name, colour=colour, dash=dash)
        for event in first["events"]
        for after, (name, colour, dash) in zip((0.0, event["takeover"], event["recovery"]), _MOMENTS, strict=True)
        if after is not None
    ]
    panels = []
    for number, pair in enumerate(first["pairs"], 1):
        edges = np.linspace(0.0, first["seconds"], len(pair["arrived"]) + 1)
        last = number == len(first["pairs"])
        aside = "" if number > 1 else "datagrams of each pair, by the time they were sent"
        x = Axis("Laboratory time (s)" if last else "", low=0, high=first["seconds"], ticks=None if last else ())
        y = Axis(
            low=0,
            high=1.1 * max(1, *pair["sent"]),
            ticks=[(0.55 * max(1, *pair["sent"]), f"{pair['src']}→{pair['dst']}")],
        )
        marks = [Stairs(edges, pair["arrived"]), Stairs(edges, pair["sent"], MUTED, filled=False), *moments]
        panels.append(Panel(marks, x, y, aside=aside, width=970, height=40))
    words = "; ".join(event_words(event) for event in first["events"])
    svg = for_page(Picture([Block(panels)]), prefix, f"Datagrams that arrived while things died. {words}")
    more = f" (the first of {len(repeats)} repeats)" if len(repeats) > 1 else ""
    return [
        Chart(
            svg,
            f"Datagrams of each watched pair that arrived, by the time they were sent{more}. {words}.",
            (arrivals(first["pairs"]),),
        )
    ]


def event_words(event: Failure) -> str:
    """An event and what it cost, in words."""
    steers = event.get("manager_takeover")
    parts = [] if steers is None else [f"next manager after {format_seconds(steers)}"]
    if event["detection"] is not None:
        parts.append(f"noticed after {format_seconds(event['detection'])}")
    elif " manager" not in event["event"]:
        parts.append("not noticed")
    if event["takeover"] is not None:
        parts.append(f"backup path after {format_seconds(event['takeover'])}")
    if event["recovery"] is not None:
        parts.append(f"new tables after {format_seconds(event['recovery'])}")
    parts.append(f"{event['frames_lost']} datagrams lost")
    if event["cut_off"]:
        parts.append(f"{event['cut_off']} pairs cut off")
    if event["without_backup"]:
        parts.append(f"{event['without_backup']} pairs without backup")
    return f"{event['event']}: {', '.join(parts)}"
