"""What each repeat of each load of a run came to, all its flows together."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.base.errors import InputError
from testbed.base.model import Sample
from testbed.experiments.compare.axis_values import LABELS, SweptAxis
from testbed.planning import Plan
from testbed.results import Run
from testbed.results.read_run import LoadHead, load_heads, texts
from testbed.scenario.parameter_models import key_of

_SEVERITY = ("pass", "warn", "invalid", "fail")
# How long or how often something is measured makes it no other load.
_MEASURING = ("seconds", "omit", "repeats", "count", "time_limit", "trace")
# Labels over which flows are combined, and those that the load or the repeat already tells.
_COMBINED = frozenset({"src", "dst", "channel"})
_TOLD = frozenset({"load", "kind", "protocol", "pattern", "job", "kernel", "class", "repeat", "unheld"})
# Of a job's own statistics over its repeats, the one that is taken; over ranks it is the slowest that counts.
_CENTRES = ("median", "mean", "avg")
_SLOWEST = ("max", "max time")
# Mean over flows, as Koibuchi et al. 2011, section 5.3, but for these.
_COMBINE: dict[str, Callable[[Sequence[float]], float]] = {"rtt_min": min, "rtt_max": max, "retransmits": sum}

Detail = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ComparedLoad:
    """A load that several runs may have in common."""

    title: str  # in words
    settings: tuple[tuple[str, str], ...] = ()  # what it is, without how long it is measured, as (key, value) pairs


@dataclass(frozen=True, slots=True)
class Judged:
    """A load of a run with its verdict."""

    run: int  # position of the run
    load: ComparedLoad  # what was running
    verdict: str  # `pass`, `warn`, `invalid` or `fail`
    reasons: tuple[str, ...]  # of the verdict
    x: float | None  # place on the axis of a swept key; None without one, or where each flow has its own
    dilation: float  # of the lab


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure of one repeat."""

    run: int  # position of the run
    load: ComparedLoad  # what was running
    metric: str  # as in the samples
    unit: str  # of the figures, as in the samples
    detail: Detail  # what tells it from other figures of its metric, such as (("bytes", "1024"),)
    x: float | None  # place on the axis of a swept parameter; None without one
    value: float  # all flows combined
    predicted: float | None  # likewise of their predictions; None where one lacks
    verdict: str  # of the load in this run


def worse_verdict(one: str, other: str) -> str:
    """The worse of two verdicts."""
    return max(one, other, key=_SEVERITY.index)


def is_usable(verdict: str) -> bool:
    """Whether figures of this verdict may be used."""
    return verdict in ("pass", "warn")


def read(runs: Sequence[Run], swept: str | None = None) -> tuple[list[Reading], list[Judged]]:
    """Return the readings of all runs and the verdicts of their loads; a load that failed has no reading.

    `swept` is what the axis means, see SweptAxis.

    Raises:
        InputError: a run has no number at the swept key, or its verdict is none.
    """
    central = [_central(run.samples) for run in runs]
    telling = _telling_labels(central)
    readings: list[Reading] = []
    judged: list[Judged] = []
    for number, run in enumerate(runs):
        axis = SweptAxis.from_run(run, swept)
        for head in _heads(run):
            load = _load(run.plan, head, swept)
            judged.append(Judged(number, load, head.verdict, head.reasons, axis.place, head.dilation or run.dilation))
            if head.verdict != "fail":
                samples = [sample for sample in central[number] if sample.labels.get("load", "") == head.label]
                readings += _readings(samples, judged[-1], axis, telling)
    return readings, judged


def _heads(run: Run) -> list[LoadHead]:
    """The loads, with the verdict of the run where that is worse than all of theirs: then it holds for each."""
    heads = load_heads(run.manifest, (sample.labels["load"] for sample in run.samples if "load" in sample.labels))
    whole, worst = str(run.manifest.get("verdict")), "pass"
    for verdict in (whole, *(head.verdict for head in heads)):
        if verdict not in _SEVERITY:
            sentence = f'is damaged: "{verdict}" is not a verdict; there are {", ".join(_SEVERITY)}'
            raise InputError.one(str(run.path / "manifest.json"), sentence)
    for head in heads:
        worst = worse_verdict(worst, head.verdict)
    if worse_verdict(worst, whole) == worst:
        return heads
    return [dataclasses.replace(head, verdict=whole, reasons=texts(run.manifest.get("reasons"))) for head in heads]


def _load(plan: Plan, head: LoadHead, swept: str | None) -> ComparedLoad:
    """A load by what the scenario asks of it."""
    number = int(head.label) - 1 if head.label.isdecimal() else -1
    if not 0 <= number < len(plan.scenario.workloads):
        return ComparedLoad(head.title)
    workload = plan.scenario.workloads[number]
    values = {"kind": workload.kind, **{key_of(name): v for name, v in dataclasses.asdict(workload.spec).items()}}
    hidden = {*_MEASURING, str(swept).removeprefix(f"workloads.{number}.")}
    return ComparedLoad(head.title, tuple((key, _text(value)) for key, value in values.items() if key not in hidden))


def _text(value: object) -> str:
    """A setting in words; of a command line its words."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _readings(
    samples: Iterable[Sample], of: Judged, axis: SweptAxis, telling: Mapping[str, frozenset[str]]
) -> list[Reading]:
    hidden = {LABELS[axis.swept]} if axis.swept in LABELS else set()
    groups: dict[tuple[str, str, Detail, float | None, str], list[Sample]] = {}
    for sample in samples:
        x = axis.place_sample(sample)
        if not math.isfinite(sample.value) or (axis.swept is not None and x is None):
            continue
        labels = sample.labels.items()
        detail = tuple(sorted(pair for pair in labels if pair[0] in telling[sample.metric] - hidden))
        key = (sample.metric, sample.unit, detail, x, sample.labels.get("repeat", ""))
        groups.setdefault(key, []).append(sample)
    found = []
    for (metric, unit, detail, x, _), group in groups.items():
        combine = _COMBINE.get(metric, statistics.fmean)
        predicted = [s.predicted for s in group if s.predicted is not None and math.isfinite(s.predicted)]
        found.append(
            Reading(
                of.run, of.load, metric, unit, detail, x,
                value=float(combine([sample.value for sample in group])),
                predicted=float(combine(predicted)) if len(predicted) == len(group) else None,
                verdict=of.verdict,
            )
        )  # fmt: skip
    return found


def _central(samples: Sequence[Sample]) -> list[Sample]:
    """Of what a job itself has summarised only what is taken for it; of a job that names no such figure, all."""
    given: dict[tuple[str, str, str], set[str]] = {}
    for sample in samples:
        over = sample.labels.get("over", "")
        given.setdefault((*_metric_of(sample), over), set()).add(sample.labels.get("statistic", ""))
    chosen = {
        of: next((name for name in (_SLOWEST if of[2] == "ranks" else _CENTRES) if name in names), None)
        for of, names in given.items()
    }
    kept = []
    for sample in samples:
        of = (*_metric_of(sample), sample.labels.get("over", ""))
        wanted = chosen[of]
        if wanted is None:
            kept.append(sample)
        elif sample.labels.get("statistic") == wanted:
            labels = {label: text for label, text in sample.labels.items() if label != "statistic"}
            kept.append(dataclasses.replace(sample, labels=labels))
    return kept


def _metric_of(sample: Sample) -> tuple[str, str]:
    return sample.labels.get("load", ""), sample.metric


def _telling_labels(of_runs: Iterable[Iterable[Sample]]) -> dict[str, frozenset[str]]:
    """Metric → labels that tell its figures apart: the message size, and what else varies within a load."""
    found: dict[str, set[str]] = {}
    for samples in of_runs:
        values: dict[tuple[str, str, str], set[str]] = {}
        for sample in samples:
            found.setdefault(sample.metric, {"bytes"})
            for label, text in sample.labels.items():
                values.setdefault((*_metric_of(sample), label), set()).add(text)
        for (_, metric, label), texts_given in values.items():
            if len(texts_given) > 1:
                found[metric].add(label)
    return {metric: frozenset(labels - _COMBINED - _TOLD) for metric, labels in found.items()}
