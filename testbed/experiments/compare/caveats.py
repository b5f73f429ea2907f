"""What a reader of a comparison must know about its runs, as sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from testbed.base.units import format_rate
from testbed.experiments.compare.comparison_rows import ComparedRow
from testbed.experiments.compare.variants import Variant
from testbed.results import Run

METHODS = {
    "student": "Student's t over the repeats (2 to 5 of them), for their mean",
    "ranks": "by ranks over the repeats (6 or more), for their median",
}
_MACHINE = (
    "engine", "machine", "processors", "kernel", "datapath", "open_vswitch", "switches", "tools", "testbed", "python",
)  # fmt: skip
_MAX_SHOWN = 4
_HOSTS = "hosts"


def notes_of(
    variants: Sequence[Variant],
    runs: Sequence[Run],
    rows: Sequence[ComparedRow],
    *,
    baseline: str,
    swept: str | None,
    alone: Sequence[str],
) -> list[str]:
    """Return what differs between runs beside what is compared.

    `alone` are titles of loads that only one variant has.
    """
    notes = []
    methods = {row.spread.method for row in rows if row.spread is not None}
    shown = [text for method, text in METHODS.items() if method in methods]
    if shown:
        notes.append(f"95 % confidence intervals are {'; '.join(shown)}.")
    if "none" in methods:
        notes.append("A single value has no interval: repeat the run, or the load in it.")
    lacking = [f"{row.load} of {row.scenario}" for row in rows if row.is_usable and row.relative is None]
    if lacking:
        notes.append(
            f"Not relative, for {baseline} has no usable figure beside it: "
            f"{_shorten_names(list(dict.fromkeys(lacking)))}."
        )
    for key, what, of, consequence in _DIFFERENCES:
        meant = key == swept or (key == _HOSTS and str(swept).startswith("topology."))
        if not meant and len({of(run) for run in runs} - {""}) > 1:
            notes.append(f"{what}: {_by_value(variants, runs, of)}. {consequence}")
    different = [key for key in _MACHINE if len({_plain(run.environment.get(key)) for run in runs}) > 1]
    if different:
        notes.append(f"The runs were not made under equal conditions: {', '.join(different)} differ.".replace("_", " "))
    if alone:
        notes.append(f"Only one scenario has these loads, so they are not compared: {', '.join(dict.fromkeys(alone))}.")
    return notes


def _by_value(variants: Sequence[Variant], runs: Sequence[Run], of: Callable[[Run], str]) -> str:
    scenarios: dict[str, dict[str, None]] = {}
    for variant in variants:
        for number in variant.runs:
            scenarios.setdefault(of(runs[number]), {})[variant.label] = None
    return "; ".join(f"{value} in {_shorten_names(list(labels))}" for value, labels in scenarios.items() if value)


def _shorten_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(names[:_MAX_SHOWN]) + more


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _rates(run: Run) -> str:
    links = run.plan.scenario.links
    hosts = "" if links.edge_rate == links.rate else f", hosts {format_rate(links.edge_rate)}"
    single = "".join(f", {name} {format_rate(rate)}" for name, rate in (links.rates or {}).items())
    return format_rate(links.rate) + hosts + single


def _npb_programs(run: Run) -> str:
    """Whose NPB kernels a run has run; empty without any."""
    return ", ".join(sorted({s.labels["code"] for s in run.samples if s.metric == "npb_lab_time"}))


# key, what differs, how it is written, what follows
_DIFFERENCES: tuple[tuple[str, str, Callable[[Run], str], str], ...] = (
    (
        "lab.dilation",
        "Dilations differ",
        lambda run: "" if run.is_simulated else " and ".join(f"{one:g}" for one in run.dilations),
        "Delays of the software are divided by it, so times of short messages are not comparable.",
    ),
    ("links.rate", "Link rates differ", _rates, "Only relative figures can then be compared."),
    (
        _HOSTS,
        "Numbers of hosts differ",
        lambda run: str(run.plan.topology.host_count),
        "A pattern over another number of hosts is another load.",
    ),
    ("", "Programs of NPB differ", _npb_programs, "Times of different programs are not those of their fabrics."),
)
