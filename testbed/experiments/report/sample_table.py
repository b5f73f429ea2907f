"""Samples summarised: one row for each load, metric and message size."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.base.model import Sample
from testbed.base.units import Scale, bytes_text, gap_text, scale_for
from testbed.base.untrusted_text import escape_line
from testbed.dataplane.predict.bounds import AT_LEAST, AT_MOST
from testbed.results import Run
from testbed.results.read_run import load_heads
from testbed.scenario.workloads import WORKLOADS

if TYPE_CHECKING:
    from rich.table import Table

METRICS: dict[str, str] = {
    "goodput": "Goodput",
    "goodput_mean": "Goodput, mean",
    "goodput_warmup": "Goodput in the warm-up",
    "accepted": "Accepted traffic",
    "completion_time": "Completion time",
    "loss": "Datagram loss",
    "jitter": "Jitter",
    "retransmits": "Retransmissions",
    "latency_mean": "Latency, mean",
    "latency_p99": "Latency, p99",
    "host_paused": "Hosts paused",
    "channel_paused": "Channels paused",
    "rtt_min": "Round trip, min",
    "rtt_mean": "Round trip, mean",
    "rtt_max": "Round trip, max",
    "ping_loss": "Echo loss",
    "mpi_latency": "MPI latency",
    "mpi_bandwidth": "MPI bandwidth",
    "mpi_alltoall_time": "MPI all-to-all time",
    "mpi_alltoall_bandwidth": "MPI all-to-all rate",
    "mpi_barrier_time": "MPI barrier time",
    "mpi_allreduce_time": "MPI all-reduce time",
    "mpi_pingping_time": "MPI ping-ping time",
    "mpi_pingping_bandwidth": "MPI ping-ping bandwidth",
    "mpi_multi_pingping_time": "MPI multi-ping-ping time",
    "mpi_multi_pingping_bandwidth": "MPI multi-ping-ping bandwidth",
    "mpi_stream_bandwidth": "MPI one-way bandwidth",
    "mpi_bidirectional_bandwidth": "MPI two-way bandwidth",
    "mpi_bytes_moved": "MPI bytes between hosts, min",
    "mpi_bytes_crossed": "Bytes that crossed the fabric",
    "mpi_frames_crossed": "Frames that carried them",
    "mpi_lab_time": "MPI program, start to end (not dilated)",
    "hpl_lab_time": "HPL time (not dilated)",
    "hpl_lab_rate": "HPL rate (not dilated)",
    "hpl_residual": "HPL residual",
    "npb_lab_time": "NPB time (not dilated)",
    "npb_lab_communication_time": "NPB communication of a rank (not dilated)",
    "npb_lab_computation_time": "NPB computation of a rank (not dilated)",
    "npb_lab_rate": "NPB rate (not dilated)",
    "mpi_bytes_sent": "MPI bytes of a pair of hosts",
    "frames_sent": "Numbered frames sent",
    "frames_lost": "Numbered frames lost",
    "frames_twice": "Numbered frames duplicated",
    "frames_overtaken": "Numbered frames reordered",
    "connections": "TCP connections",
    "connections_broken": "TCP connections that broke",
    "one_way_min": "One-way time, min",
    "one_way_mean": "One-way time, mean",
    "one_way_max": "One-way time, max",
    "longest_gap": "Longest gap between frames",
    "path_changes": "Changes of paths",
    "change_lab_time": "Duration of a path change (not dilated)",
    "frame_bandwidth_min": "Frame bandwidth, min",
    "frame_bandwidth_mean": "Frame bandwidth, mean",
    "frame_bandwidth_max": "Frame bandwidth, max",
    "switch_power": "Power of all switches",
    "power_saved": "Power saved",
    "links_off": "Links off",
    "links_slower": "Links at a lower speed",
    "switch_energy": "Energy of all switches, modelled",
    "energy_ratio": "Energy of a load, links off to all on",
    "link_use": "Link utilisation",
    "member_use": "Member utilisation",
    "bundle_imbalance": "Max / mean member utilisation",
    "hash_share": "LAG hash efficiency",
    "link_imbalance": "Max / mean link utilisation",
    "queue_frames": "Queue, mean",
    "queue_max": "Queue, max",
    "queue_drops": "Tail drops",
    "departure_error": "Inter-departure time error",
    "lateness": "Lateness",
    "detection": "Detection time (not dilated)",
    "takeover": "Switchover time (not dilated)",
    "manager_takeover": "Manager failover time (not dilated)",
    "recovery": "Reconvergence time (not dilated)",
    "cpu_idle": "CPU idle",
    "cpu_pressure": "CPU pressure (PSI)",
    "cpu_network": "CPU in interrupts",
    "cpu_switches": "CPU of the switches, % of one core",
    "cpu_programs": "CPU of hosts' programs, % of one core",
    "cpu_agent": "CPU of telemetry, % of one core",
    **{metric: name for kind in WORKLOADS.values() for metric, name in kind.metrics.items()},
}
# What the terminal leaves out; the page and samples.csv have all.
PAGE_ONLY = frozenset(
    {
        "goodput_warmup", "queue_frames", "queue_max", "queue_drops", "link_imbalance", "cpu_network", "cpu_switches",
        "cpu_programs", "cpu_agent",
    }
)  # fmt: skip
# Metrics whose prediction is a bound and no expectation.
BOUNDS = {**dict.fromkeys(AT_LEAST, "≥"), **dict.fromkeys(AT_MOST, "≤")}
BOUND_NAMES = {"≥": "lower bound", "≤": "upper bound"}
# Behind the name of a figure of which the lab's ports do not hold all of the time that links need.
UNHELD_MARK = "†"
UNHELD_NOTE = (
    "† the lab's ports let a frame that finds them idle go at once: a share of the time that links need (unheld in "
    "samples.csv) is missing in what was measured, and in its place is software's time divided by the dilation"
)
# A link predicted to be used less than this carries little but acknowledgements; its gap says nothing.
MIN_LINK_USE = 0.01
WIDE = 100  # columns of a terminal that holds all figures beside the names
_STYLES = {"pass": "green", "warn": "yellow", "invalid": "red", "fail": "red"}


@dataclass(frozen=True, slots=True)
class ResultRow:
    """All samples of a load, metric and message size."""

    load: str  # label of the load, empty without one
    metric: str  # as in the samples
    detail: str  # what tells the row from others of its metric, such as a message size; mostly empty
    unit: str  # of value, as in the samples
    count: int  # number of samples
    median: float  # of the values
    minimum: float  # of the values
    maximum: float  # of the values
    predicted: float | None  # median of the predictions; None where there are none
    mean_gap: float | None  # mean of measured / predicted - 1
    worst_gap: float | None  # the one of largest size
    unheld: float = 0.0  # largest share of the links' time that the lab's ports do not hold

    @property
    def name(self) -> str:
        """Metric in words, with the detail."""
        name = METRICS.get(self.metric, self.metric.replace("_", " "))
        return f"{name}{f', {self.detail}' if self.detail else ''}{f' {UNHELD_MARK}' if self.unheld else ''}"

    @property
    def scale(self) -> Scale:
        """Unit that suits the row."""
        return scale_for(self.unit, self.median or self.maximum)

    @property
    def predicted_text(self) -> str:
        """Prediction in the unit of the row, marked where it is a bound; empty without one."""
        if self.predicted is None:
            return ""
        return f"{BOUNDS.get(self.metric, '')} {self.scale.text(self.predicted)}".lstrip()


def gap(sample: Sample) -> float | None:
    """Measured / predicted - 1, or None where that says nothing."""
    least = MIN_LINK_USE if sample.metric == "link_use" else 0.0
    if sample.predicted is None or not math.isfinite(sample.predicted) or sample.predicted <= least:
        return None
    return sample.value / sample.predicted - 1


def unheld_share(samples: Iterable[Sample]) -> float:
    """Largest share of what links need that the lab's ports do not hold; 0 where they hold all of it."""
    return max((float(sample.labels.get("unheld", 0)) for sample in samples), default=0.0)


def result_rows(samples: Iterable[Sample]) -> list[ResultRow]:
    """Summarise samples, in the order of loads in them, of metrics in METRICS, and of message sizes."""
    groups: dict[tuple[str, str, str, str], list[Sample]] = {}
    for sample in samples:
        if math.isfinite(sample.value):
            key = (
                sample.labels.get("load", ""),
                sample.metric,
                sample.unit,
                next((sample.labels[key] for key in ("bytes", "quantile", "event") if sample.labels.get(key)), ""),
            )
            groups.setdefault(key, []).append(sample)
    loads = {load: index for index, load in enumerate(dict.fromkeys(key[0] for key in groups))}
    metrics = {metric: index for index, metric in enumerate(METRICS)}

    def order(key: tuple[str, str, str, str]) -> tuple[int, int, int]:
        return loads[key[0]], metrics.get(key[1], len(metrics)), int(key[3]) if key[3].isdigit() else 0

    return [_row(key, groups[key]) for key in sorted(groups, key=order)]


def _row(key: tuple[str, str, str, str], samples: list[Sample]) -> ResultRow:
    load, metric, unit, size = key
    values = [sample.value for sample in samples]
    predicted = [s.predicted for s in samples if s.predicted is not None and math.isfinite(s.predicted)]
    gaps = [value for value in map(gap, samples) if value is not None]
    return ResultRow(
        load=load,
        metric=metric,
        detail=bytes_text(int(size)) if size.isdigit() else size,
        unit=unit,
        count=len(values),
        median=statistics.median(values),
        minimum=min(values),
        maximum=max(values),
        predicted=statistics.median(predicted) if predicted else None,
        mean_gap=statistics.fmean(gaps) if gaps else None,
        worst_gap=max(gaps, key=abs) if gaps else None,
        unheld=unheld_share(samples),
    )


def rich_table(run: Run | Iterable[Sample], width: int = WIDE) -> Table:
    """Return the rows as a table for the terminal; of a run with the titles and verdicts of its loads.

    In fewer columns than WIDE it leaves least and largest figures to the report, so that names stay whole.
    """
    from rich.table import Table  # noqa: PLC0415 - only the terminal needs it
    from rich.text import Text  # noqa: PLC0415

    samples, manifest = (run.samples, run.manifest) if isinstance(run, Run) else (run, {})
    rows = [row for row in result_rows(samples) if row.metric not in PAGE_ONLY]
    cells = {row: _cells(row) for row in rows}
    titles: tuple[str, ...] = ("", "n", "median", "min", "max", "unit", "predicted", "gap", "worst")
    if all(row.predicted is None for row in rows):
        titles = titles[:6]
    if width < WIDE:
        kept = [number for number, title in enumerate(titles) if title not in ("min", "max")]
        titles = tuple(titles[number] for number in kept)
        cells = {row: tuple(line[number] for number in kept) for row, line in cells.items()}
    widths = [max(map(len, column)) for column in zip(titles, *cells.values(), strict=False)]

    def part(lines: Iterable[Iterable[str]], style: str) -> Table:
        table = Table(box=None, pad_edge=False, collapse_padding=True, show_header=False)
        for title, wide in zip(titles, widths, strict=True):
            left = title in ("", "unit")
            # The first column has no width of its own, so that it is the one to give way in a narrow terminal.
            table.add_column(justify="left" if left else "right", width=wide if title else None, style=style)
        for name, *rest in lines:
            table.add_row(Text(escape_line(name).ljust(widths[0])), *rest[: len(titles) - 1])
        return table

    whole = Table.grid()
    whole.add_row(part([titles], "bold"))
    for load in load_heads(manifest, (row.load for row in rows)):
        head = Text(escape_line(f"{load.label}  {load.title}  ").lstrip(), style="bold")
        head.append(escape_line(load.verdict), style=_STYLES.get(load.verdict, ""))
        for one in load.attempts:
            head.append(f"  at dilation {load.dilation:g}; {one.verdict} at {one.dilation:g}", style="dim")
        whole.add_row(head)
        lines = [cells[row] for row in rows if row.load == load.label]
        if lines:
            whole.add_row(part(lines, "dim" * load.is_unfaithful))
        else:  # such as of a job that came to a stop
            whole.add_row(Text(escape_line(f"  {'; '.join(load.reasons) or 'no figures'}")))
    if any(row.unheld for row in rows):
        whole.add_row(Text(UNHELD_NOTE, style="dim"))
    return whole


def _cells(row: ResultRow) -> tuple[str, ...]:
    figures = (row.scale.text(value) for value in (row.median, row.minimum, row.maximum))
    gaps = (gap_text(row.mean_gap), gap_text(row.worst_gap))
    return f"  {row.name}", str(row.count), *figures, row.scale.name, row.predicted_text, *gaps
