"""The JSON lines that the project's own MPI jobs print, as may others; mpi_jobs/README.md describes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from testbed.base.model import Sample
from testbed.scenario.workloads.mpi_output import JobOutputError, ParsedJob, over_ranks, shorten_line


def parse(text: str) -> ParsedJob:
    """Read the lines of a job.

    Times come as min, median or mean, and max, named by the label `statistic`: over a test's repeats, or with the
    label `over: ranks` over the mean times of the ranks. Rates follow from the middle one, over ranks from the largest.

    - pingpong: `mpi_latency` (s), half the round trip, and `mpi_bandwidth` (bit/s); labels src, dst, bytes
    - pingping: `mpi_pingping_time`, `mpi_pingping_bandwidth`, one direction; labels src, dst, bytes
    - multi_pingping: the same of all pairs of ranks (0, 1), (2, 3), … at once; labels ranks, bytes
    - alltoall: `mpi_alltoall_time`, `mpi_alltoall_bandwidth` of what a rank sends to all others; labels ranks, bytes
    - allreduce: `mpi_allreduce_time`; labels ranks, bytes
    - barrier: `mpi_barrier_time`; label ranks
    - pattern: `goodput` (bit/s) of a pair while all pairs send; labels src, dst, message_bytes

    Returns:
        The samples in the order of the output, the bytes moved, and whether they were verified.

    Raises:
        JobOutputError: a line is not one of the expected objects, or the end line is missing, comes too
            early, or contradicts the lines before it.
    """
    samples: list[Sample] = []
    fabric_bytes = 0
    end: _Line | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        if not raw.strip():
            continue
        if end is not None:
            raise JobOutputError(f'Line {number} of the job\'s output comes after its end line: "{shorten_line(raw)}".')
        line = _Line(number, raw)
        test = line.object.get("test")
        if test == "end":
            end = line
        elif isinstance(test, str) and test in _READERS:
            samples += _READERS[test](line)
            fabric_bytes += line.count("fabric_bytes")
        else:
            raise line.error("names no test that is known")
    if end is None:
        raise JobOutputError("The job's output has no end line, so the job did not finish.")
    if end.count("fabric_bytes") != fabric_bytes:
        raise end.error(f"does not give the {fabric_bytes} bytes that its tests add up to")
    verified = end.object.get("verified")
    if not isinstance(verified, bool):
        raise end.error('does not say "verified" true or false')
    return ParsedJob(tuple(samples), fabric_bytes, verified)


class _Line:
    """One object of the output, whose values are asked for by name and type."""

    def __init__(self, number: int, raw: str) -> None:
        self.number = number
        self.raw = raw
        try:
            self.object: dict[str, object] = json.loads(raw)
        except (ValueError, RecursionError):
            raise self.error("is not a JSON object") from None
        if not isinstance(self.object, dict):
            raise self.error("is not a JSON object")

    def error(self, fault: str) -> JobOutputError:
        return JobOutputError(f'Line {self.number} of the job\'s output {fault}: "{shorten_line(self.raw)}".')

    def count(self, key: str) -> int:
        value = self.object.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise self.error(f'has no whole number "{key}"')
        return value

    def seconds(self, key: str) -> float:
        value = self.object.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            raise self.error(f'has no time "{key}"')
        return float(value)

    def samples(self, metric: str, bits: int, labels: Mapping[str, str], time: str = "time") -> list[Sample]:
        """Return the three times of a test and, where bits are given, its rate."""
        middle = "mean" if "seconds_mean" in self.object else "median"
        times = {statistic: self.seconds(f"seconds_{statistic}") for statistic in ("min", middle, "max")}
        over = self.object.get("over")
        if over == "ranks":
            return over_ranks(metric, times["min"], times[middle], times["max"], labels, bits)
        if over is not None:
            raise self.error('has a value of "over" that is not known')
        samples = [Sample(f"{metric}_{time}", value, "s", {**labels, "statistic": key}) for key, value in times.items()]
        if bits > 0 and times[middle] > 0:
            rate = bits / times[middle]
            samples.append(Sample(f"{metric}_bandwidth", rate, "bit/s", {**labels, "statistic": middle}))
        return samples

    def pair(self) -> dict[str, str]:
        return {"src": str(self.count("from")), "dst": str(self.count("to"))}


def _pingpong(line: _Line) -> list[Sample]:
    size = line.count("bytes")
    return line.samples("mpi", 8 * size, {**line.pair(), "bytes": str(size)}, "latency")


def _pingping(line: _Line) -> list[Sample]:
    size = line.count("bytes")
    return line.samples("mpi_pingping", 8 * size, {**line.pair(), "bytes": str(size)})


def _multi_pingping(line: _Line) -> list[Sample]:
    size = line.count("bytes")
    return line.samples("mpi_multi_pingping", 8 * size, {"ranks": str(line.count("ranks")), "bytes": str(size)})


def _alltoall(line: _Line) -> list[Sample]:
    size, ranks = line.count("bytes"), line.count("ranks")
    return line.samples("mpi_alltoall", 8 * size * (ranks - 1), {"ranks": str(ranks), "bytes": str(size)})


def _allreduce(line: _Line) -> list[Sample]:
    size = line.count("bytes")
    return line.samples("mpi_allreduce", 0, {"ranks": str(line.count("ranks")), "bytes": str(size)})


def _barrier(line: _Line) -> list[Sample]:
    return line.samples("mpi_barrier", 0, {"ranks": str(line.count("ranks"))})


def _pattern(line: _Line) -> list[Sample]:
    size, messages, seconds = line.count("bytes"), line.count("messages"), line.seconds("seconds")
    if seconds <= 0:
        raise line.error("has no time in which its messages came")
    labels = {**line.pair(), "message_bytes": str(size)}
    return [Sample("goodput", 8 * size * messages / seconds, "bit/s", labels)]


_READERS: dict[str, Callable[[_Line], list[Sample]]] = {
    "pingpong": _pingpong,
    "pingping": _pingping,
    "multi_pingping": _multi_pingping,
    "alltoall": _alltoall,
    "allreduce": _allreduce,
    "barrier": _barrier,
    "pattern": _pattern,
}
