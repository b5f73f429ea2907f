"""Figures of one load in two states of the fabric, side by side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.model import Sample

# What stands for a load: times of jobs, and rates of flows.
_TIMES = ("npb_lab_time", "hpl_lab_time", "mpi_alltoall_time", "rtt_mean")
_RATES = ("goodput_mean",)
_SAID = ("protocol", "pattern", "kernel", "class", "bytes")


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """One figure of a load in both states.

    Attributes:
        title: of the load, with what tells figures of its metric apart.
        metric: as in the samples.
        unit: likewise.
        before: the figure of each round in the first state.
        after: likewise in the second.
    """

    title: str
    metric: str
    unit: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Median after over median before."""
        return statistics.median(self.after) / statistics.median(self.before)

    @property
    def is_time(self) -> bool:
        """Whether less is better."""
        return self.metric in _TIMES

    @property
    def slowdown(self) -> float:
        """By which share of the first state the second one is worse; negative where it is better."""
        return self.ratio - 1 if self.is_time else 1 / self.ratio - 1

    @property
    def within_noise(self) -> bool:
        """Whether the two overlap, so that the difference may be chance."""
        return max(self.before) >= min(self.after) and max(self.after) >= min(self.before)

    @property
    def spread(self) -> float:
        """Largest minus least of the first state, as a share of its median."""
        return (max(self.before) - min(self.before)) / statistics.median(self.before)


def before_and_after(samples: Sequence[Sample], before: str, after: str) -> list[BeforeAfter]:
    """Pair the figures of loads by their labels `links` and `round`; pairs of hosts count by their mean."""
    found: dict[tuple[str, str, str], dict[str, dict[str, list[float]]]] = {}
    for sample in samples:
        state = sample.labels.get("links")
        if sample.metric not in (*_TIMES, *_RATES) or state not in (before, after):
            continue
        # A kernel's job is named after it.
        said = _SAID if "kernel" in sample.labels else ("job", *_SAID)
        title = " ".join([sample.labels.get("kind", ""), *(sample.labels[key] for key in said if key in sample.labels)])
        of_state = found.setdefault((title, sample.metric, sample.unit), {before: {}, after: {}})
        of_state[state].setdefault(sample.labels.get("round", ""), []).append(sample.value)
    return [
        BeforeAfter(
            *key, *(tuple(statistics.fmean(values) for values in of_state[state].values()) for state in (before, after))
        )
        for key, of_state in found.items()
        if of_state[before] and of_state[after]
    ]
