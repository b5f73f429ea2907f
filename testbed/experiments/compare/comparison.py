"""Several runs as rows: each load and metric by scenario, relative to a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.experiments.compare.caveats import notes_of
from testbed.experiments.compare.comparison_rows import ComparedRow, relative_rows, rows_of
from testbed.experiments.compare.repeat_values import ComparedLoad, Judged, Reading, is_usable, read
from testbed.experiments.compare.variants import NO_WORDS, Variant, find_baseline, variants
from testbed.results import Run

# Shown only when asked for: they stand beside another figure, or tell of the lab and not of the fabric.
BESIDE = frozenset(
    {
        "loss", "jitter", "retransmits", "rtt_min", "rtt_max", "ping_loss", "link_use", "link_imbalance", "cpu_idle",
        "cpu_pressure", "cpu_network", "cpu_switches", "cpu_programs", "cpu_agent", "queue_frames", "queue_max",
        "queue_drops", "departure_error", "lateness", "goodput_mean", "goodput_warmup", "latency_mean", "latency_p99",
        "host_paused", "channel_paused",
        "member_use", "bundle_imbalance", "hash_share",
        "mpi_bytes_moved", "mpi_bytes_crossed", "mpi_bytes_sent", "mpi_frames_crossed", "mpi_alltoall_bandwidth",
        "mpi_pingping_time", "mpi_multi_pingping_time", "npb_lab_rate",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Remark:
    """A load of a run that is not simply `pass`: what, where and why."""

    scenario: str
    folder: str
    load: str
    verdict: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What several runs have in common, and how they differ."""

    baseline: str  # what the relative figures refer to
    swept: str | None  # what the x of the rows is, or None
    variants: tuple[Variant, ...]  # the scenarios with their settings, the baseline first
    rows: tuple[ComparedRow, ...]  # by load, metric, detail, scenario and x
    left_out: tuple[Remark, ...]  # loads of runs that are invalid or failed, and so in no median
    warned: tuple[Remark, ...]  # loads of runs that are used with warnings
    notes: tuple[str, ...]  # what a reader must know, one sentence each


def compare(
    runs: Sequence[Run],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] = (),
    swept: str | None = None,
    each: bool = False,
    alone: bool = False,
    keys: Sequence[str] = (),
    words: Mapping[str, str] = NO_WORDS,
) -> Comparison:
    """Compare runs.

    Args:
        runs: two or more.
        baseline: label of a variant, name of a scenario or of a run's folder; None takes the flat topology, else the
            tree, else the first run.
        metrics: which to compare; none = those shown by default.
        swept: what the axis means, see SweptAxis; None for none.
        each: every run is a variant, also repeats of one scenario.
        alone: also what only one variant has; meant for sweeps.
        keys: of the scenario, by which variants of one name are told apart; none = as few as tell them apart.
        words: what settings are called, see label_of.

    Raises:
        InputError: nothing can be compared, or an option names what is not there.
    """
    if len(runs) < 2 and not alone:
        raise InputError.one("", "a comparison needs two result folders or more")
    groups = variants(runs, swept, each=each, keys=keys, words=words)
    if len(groups) < 2 and swept is None and not alone:
        one_by_one = f"{argument('each', value=True)} compares them one by one"
        sentence = f"all {len(runs)} runs are repeats of {groups[0].label}; {one_by_one}"
        raise InputError.one("", sentence)
    reference = find_baseline(groups, runs, baseline)
    groups = reference.order_variants(groups)
    readings, judged = read(runs, swept)
    readings = _choose_readings(readings, metrics)
    common = _common(groups, judged, 1 if alone or swept is not None else 2)
    if not common:
        raise InputError(_nothing_in_common(groups, judged))
    titles = _titles(common)
    rows = rows_of(groups, [r for r in readings if r.load in titles], judged, titles)
    if not any(row.spread for row in rows):
        raise InputError.one("", "no run has a figure to compare: " + _why(judged))
    rows = relative_rows(rows, reference, groups)
    lonely = [load.title for load in dict.fromkeys(one.load for one in judged) if load not in titles]
    label = {run: group.label for group in groups for run in group.runs}
    remarks = [
        Remark(label[j.run], str(runs[j.run].path), titles.get(j.load, j.load.title), j.verdict, j.reasons)
        for j in judged
        if j.verdict != "pass"
    ]
    return Comparison(
        reference.label,
        swept,
        groups,
        tuple(rows),
        tuple(remark for remark in remarks if not is_usable(remark.verdict)),
        tuple(remark for remark in remarks if is_usable(remark.verdict)),
        tuple(notes_of(groups, runs, rows, baseline=reference.label, swept=swept, alone=lonely)),
    )


def _choose_readings(readings: Iterable[Reading], metrics: Sequence[str]) -> list[Reading]:
    readings = list(readings)
    there = dict.fromkeys(reading.metric for reading in readings)
    unknown = [metric for metric in metrics if metric not in there]
    if unknown:
        known = f"There are: {', '.join(there)}" if there else "There is none at all"
        raise InputError([Problem(m, f"no run has this metric.{did_you_mean(m, there)} {known}") for m in unknown])
    return [reading for reading in readings if (reading.metric in metrics if metrics else reading.metric not in BESIDE)]


def _common(groups: Sequence[Variant], judged: Sequence[Judged], least: int) -> list[ComparedLoad]:
    """Loads that enough variants have, in the order they are met."""
    having: dict[ComparedLoad, set[int]] = {}
    for number, group in enumerate(groups):
        for one in judged:
            if one.run in group.runs:
                having.setdefault(one.load, set()).add(number)
    return [load for load in dict.fromkeys(one.load for one in judged) if len(having[load]) >= least]


def _nothing_in_common(groups: Sequence[Variant], judged: Sequence[Judged]) -> list[Problem]:
    """One problem: what each variant has."""
    loads = {
        group.label: ", ".join(dict.fromkeys(one.load.title for one in judged if one.run in group.runs)) or "no load"
        for group in groups
    }
    has = "; ".join(f"{label} has {titles}" for label, titles in loads.items())
    more = " Equal titles are different loads where their settings differ" if len(set(loads.values())) == 1 else ""
    if any(group.label.endswith("(simulated)") for group in groups):
        more += (
            " A simulation has those iperf3 loads of its scenario whose pattern it sends at rate 1: "
            "testbed simulate --pattern PATTERN --loads 1"
        )
    return [Problem("", f"these runs cannot be compared, no load is common to two of them: {has}.{more}".rstrip("."))]


def _why(judged: Iterable[Judged]) -> str:
    return "; ".join(
        dict.fromkeys(f"{j.load.title} {j.verdict}: {', '.join(j.reasons) or 'no reason'}" for j in judged)
    )


def _titles(loads: Sequence[ComparedLoad]) -> dict[ComparedLoad, str]:
    """Loads by their titles, with the settings that tell those of one title apart."""
    found = {}
    for load in loads:
        namesakes = [dict(other.settings) for other in loads if other.title == load.title]
        differing = [
            f"{key} {value}" for key, value in load.settings if len({str(other.get(key)) for other in namesakes}) > 1
        ]
        found[load] = ", ".join([load.title, *differing])
    return found
