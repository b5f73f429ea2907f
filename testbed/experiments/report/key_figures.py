"""The three figures that say most of a run, for the last lines of a command."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.base.model import Sample
from testbed.base.units import gap_text, scale_for
from testbed.experiments.report.sample_table import BOUND_NAMES, BOUNDS, ResultRow, result_rows

# What is asked of a load first, in this order.
_OF_A_LOAD = (
    "goodput_mean", "goodput", "completion_time", "rtt_mean", "transactions", "npb_lab_time", "hpl_lab_rate",
    "mpi_alltoall_time", "mpi_allreduce_time", "mpi_bandwidth", "mpi_latency", "script_lab_time", "frames_lost",
)  # fmt: skip
_MOST = 3


def headline(samples: Sequence[Sample]) -> list[str]:
    """Up to three figures in words: the first of each load, then the fullest link and the most that was lost.

    Those that are software's and not the network's are left out.
    """
    rows = result_rows(samples)
    loads = list(dict.fromkeys(row.load for row in rows))
    kind = {sample.labels.get("load", ""): sample.labels.get("kind", "") for sample in samples}
    found = []
    for load in loads:
        mine = [row for row in rows if row.load == load and row.metric in _OF_A_LOAD and not row.unheld]
        if mine:
            first = min(mine, key=lambda row: _OF_A_LOAD.index(row.metric))
            found.append(_words(first, kind.get(load, "")))
    for metric, name in (("link_use", "fullest link"), ("loss", "most datagrams lost"), ("cpu_idle", "CPU idle")):
        values = [sample for sample in samples if sample.metric == metric]
        if values and len(found) < _MOST:
            worst = (min if metric == "cpu_idle" else max)(values, key=lambda sample: sample.value)
            found.append(f"{name} {_figure(worst.value, worst.unit)}")
    return found[:_MOST]


def _words(row: ResultRow, kind: str) -> str:
    name = row.name if not kind or row.name.lower().startswith(kind) else f"{kind}: {row.name}"
    text = f"{name} {row.scale.text(row.median)} {row.scale.name}".rstrip()
    held_against = BOUND_NAMES.get(BOUNDS.get(row.metric, ""), "prediction")
    return text if row.mean_gap is None else f"{text} ({gap_text(row.mean_gap)} from the {held_against})"


def _figure(value: float, unit: str) -> str:
    scale = scale_for(unit, value)
    return f"{scale.text(value)} {scale.name}".rstrip()
