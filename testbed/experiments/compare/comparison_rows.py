"""Rows of a comparison: one figure of one scenario, its repeats summarised."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from testbed.base.units import bytes_text
from testbed.experiments.compare.confidence_interval import Spread, spread
from testbed.experiments.compare.repeat_values import ComparedLoad, Detail, Judged, Reading, is_usable, worse_verdict
from testbed.experiments.compare.variants import Baseline, Variant
from testbed.experiments.report.sample_table import METRICS


def detail_text(labels: Detail) -> str:
    """Labels in words, a message size in its unit."""
    return ", ".join(
        bytes_text(int(value)) if label == "bytes" and value.isdecimal() else f"{label} {value}"
        for label, value in labels
    )


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One figure of one scenario."""

    load: str  # title of the load
    metric: str  # as in the samples
    labels: Detail  # what tells it from other figures of its metric, such as (("bytes", "1024"),); mostly empty
    unit: str  # of all figures
    scenario: str  # label of the variant
    x: float | None  # place on the axis of a swept parameter; None without one
    verdict: str  # the worst of the runs whose figures these are; `fail` and no figure where none has any
    spread: Spread | None  # of the repeats; None where all failed
    over: Literal["runs", "repeats"]  # whether a repeat is a whole run, or a repeat inside the only one
    predicted: float | None  # median of the repeats' predictions; None where one lacks
    relative: float | None  # median / that of the baseline; None where either is unusable or there is no counterpart
    dilation: float  # of the lab
    left_out: int  # runs whose figures are not in these, being invalid or failed

    @property
    def detail(self) -> str:
        """The labels in words: a message size or the like."""
        return detail_text(self.labels)

    @property
    def is_usable(self) -> bool:
        """Whether the figures may be used."""
        return self.spread is not None and is_usable(self.verdict)

    @property
    def gap(self) -> float | None:
        """Median / prediction - 1; None without a prediction."""
        return self.spread.median / self.predicted - 1 if self.spread and self.predicted else None


def rows_of(
    groups: Sequence[Variant],
    readings: Sequence[Reading],
    judged: Sequence[Judged],
    titles: Mapping[ComparedLoad, str],
) -> list[ComparedRow]:
    """Rows by load, metric, detail, variant and x, not yet relative to anything.

    `titles` has the loads to show, in their order, and what each is called.
    """
    group_of = {run: number for number, group in enumerate(groups) for run in group.runs}
    blocks: dict[tuple[ComparedLoad, str, str, Detail], dict[tuple[int, float | None], list[Reading]]] = {}
    for reading in readings:
        block = blocks.setdefault((reading.load, reading.metric, reading.unit, reading.detail), {})
        block.setdefault((group_of[reading.run], reading.x), []).append(reading)
    loads, metrics = list(titles), list(METRICS)

    def order(key: tuple[ComparedLoad, str, str, Detail]) -> tuple[int, int, str, list[tuple[str, int, str]]]:
        load, metric, _, detail = key
        place = metrics.index(metric) if metric in metrics else len(metrics)
        return loads.index(load), place, metric, [(k, int(v) if v.isdecimal() else 0, v) for k, v in detail]

    rows = []
    for key in sorted(blocks, key=order):
        load, metric, unit, detail = key
        of_load = [one for one in judged if one.load == load]
        dilations = {one.run: one.dilation for one in of_load}
        cells = dict(blocks[key])
        for one in of_load:  # what failed has no reading, and yet a row
            group = group_of[one.run]
            if one.verdict == "fail" and (one.x is not None or all(group != other for other, _ in cells)):
                cells.setdefault((group, one.x), [])
        for (group, x), cell in sorted(cells.items(), key=lambda item: (item[0][0], item[0][1] or 0.0)):
            # A run that failed along paths or message sizes has no place of its own.
            bad = {
                one.run
                for one in of_load
                if group_of[one.run] == group and one.x in (x, None) and not is_usable(one.verdict)
            }
            verdict, figures, over, predicted = _figures(cell)
            rows.append(
                ComparedRow(
                    titles[load], metric, detail, unit, groups[group].label, x, verdict, figures, over,
                    predicted,
                    relative=None,
                    dilation=dilations[min([*(reading.run for reading in cell), *bad])],
                    left_out=len(bad) if is_usable(verdict) else 0,
                )
            )  # fmt: skip
    return rows


def _figures(cell: Sequence[Reading]) -> tuple[str, Spread | None, Literal["runs", "repeats"], float | None]:
    """Verdict, spread, what it is over, and prediction; of the usable readings where there is one."""
    used = [reading for reading in cell if is_usable(reading.verdict)] or cell
    if not used:
        return "fail", None, "repeats", None
    verdict = "pass"
    of_run: dict[int, list[float]] = {}
    for reading in used:
        verdict = worse_verdict(verdict, reading.verdict)
        of_run.setdefault(reading.run, []).append(reading.value)
    predicted = [reading.predicted for reading in used if reading.predicted is not None]
    expected = statistics.median(predicted) if len(predicted) == len(used) else None
    if len(of_run) == 1:
        return verdict, spread([reading.value for reading in used]), "repeats", expected
    # What differs from one lab to the next is seen only between runs, so these are the repeats where there are any.
    return verdict, spread([statistics.median(part) for part in of_run.values()]), "runs", expected


def relative_rows(rows: Sequence[ComparedRow], baseline: Baseline, groups: Sequence[Variant]) -> list[ComparedRow]:
    """Rows with their medians divided by those of the baseline, where both are usable."""
    medians = {
        (row.load, row.metric, row.labels, row.unit, row.x, row.scenario): row.spread.median
        for row in rows
        if row.is_usable and row.spread is not None
    }
    reference = {group.label: baseline.counterpart(group) for group in groups}
    found = []
    for row in rows:
        of = reference[row.scenario]
        base = None if of is None else medians.get((row.load, row.metric, row.labels, row.unit, row.x, of.label))
        if row.is_usable and row.spread is not None and base:
            found.append(replace(row, relative=row.spread.median / base))
        else:
            found.append(row)
    return found
