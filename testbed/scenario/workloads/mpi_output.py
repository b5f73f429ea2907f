"""What the output of an MPI job says, whatever its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.base.model import Sample

MICROSECOND = 1e-6
# The benchmarks' Mbyte.
MEGABYTE = 1e6


class JobOutputError(ValueError):
    """The output of a job is not what it should be; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ParsedJob:
    """What the output of a job says."""

    # the measured figures, in SI base units and laboratory time. Ranks in the labels are numbers.
    samples: tuple[Sample, ...] = field(default=())
    fabric_bytes: int = 0  # least payload bytes that the job has moved between hosts
    verified: bool = False  # the job has checked the data that it received, or its result, and found it right
    # share of the measured time that the median rank computed and did not communicate; None = not known
    computing: float | None = None


def shorten_line(text: str) -> str:
    """Return a line, cut where it gets long."""
    return text if len(text) <= 80 else text[:79] + "…"


def over_ranks(
    metric: str, least: float, mean: float, largest: float, labels: Mapping[str, str], bits: float
) -> list[Sample]:
    """Return the time of a test as benchmarks give it, and the rate that goes with it.

    Times are s, of the ranks' mean times; `bits` is what the rate counts, moved in the largest time, 0 = no rate.
    """
    labels = {**labels, "over": "ranks"}
    times = {"min": least, "mean": mean, "max": largest}
    samples = [Sample(f"{metric}_time", value, "s", {**labels, "statistic": key}) for key, value in times.items()]
    if bits > 0 and largest > 0:
        samples.append(Sample(f"{metric}_bandwidth", bits / largest, "bit/s", {**labels, "statistic": "max time"}))
    return samples
