"""Tables in the form of the OSU micro-benchmarks, as the job `osu` and mpi4py's demonstrations print them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from testbed.base.model import Sample
from testbed.scenario.workloads.mpi_output import (
    MEGABYTE,
    MICROSECOND,
    JobOutputError,
    ParsedJob,
    over_ranks,
    shorten_line,
)
from testbed.scenario.workloads.mpi_placement import Ranks

_TITLE = re.compile(r"^# (?:OSU(?:-style)? )?MPI (.*\S) Test\b")
_RANKS = re.compile(r"^# Ranks (\d+) (\d+)\s*$")
_WINDOW = re.compile(r"^# Window (\d+)\s*$")
_HEADER = re.compile(r"^# *Size\b")
_TESTS = {
    "Latency": "latency",
    "Bandwidth": "bw",
    "Bi-Directional Bandwidth": "bibw",
    "All-to-All Latency": "alltoall",
    "All-to-All Personalized Exchange Latency": "alltoall",
}
_MEANS = ("latency", "avg latency")


@dataclass(slots=True)
class _OsuTable:
    """One test and what its comments and columns say."""

    title: str
    test: str
    pair: tuple[int, int] = (0, 1)
    window: int = 1
    columns: list[str] = field(default_factory=list)
    rows: int = 0


def parse(text: str, ranks: Ranks) -> ParsedJob:
    """Read all tables.

    - Latency: `mpi_latency` (s), half the round trip; labels src, dst, bytes
    - Bandwidth: `mpi_stream_bandwidth` (bit/s) of windows of messages; labels src, dst, bytes
    - Bi-Directional Bandwidth: `mpi_bidirectional_bandwidth`, both directions together
    - All-to-All: `mpi_alltoall_time`, over ranks where there are three times, and `mpi_alltoall_bandwidth`

    Bytes between hosts are counted from the columns Size and Iterations and the window, each 1 where it is not printed.

    A test of two ranks is between 0 and 1 unless a line `# Ranks 0 5` says otherwise.

    Raises:
        JobOutputError: there is no table, one is not understood, or data was found to be wrong.
    """
    samples: list[Sample] = []
    fabric_bytes, verified = 0, True
    tables: list[_OsuTable] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        if match := _TITLE.match(line):
            if match[1] not in _TESTS:
                raise JobOutputError(f'The output has a test that is not known: "{shorten_line(match[1])}".')
            tables.append(_OsuTable(match[1], _TESTS[match[1]]))
        elif not tables:
            continue
        elif match := _RANKS.match(line):
            tables[-1].pair = (int(match[1]), int(match[2]))
        elif match := _WINDOW.match(line):
            tables[-1].window = int(match[1])
        elif _HEADER.match(line):
            tables[-1].columns = _columns(line)
        elif not line.startswith("#"):
            row = _row(tables[-1], line)
            tables[-1].rows += 1
            samples += _samples(tables[-1], row, len(ranks))
            fabric_bytes += _bytes(tables[-1], row, ranks)
            verified = verified and "validation" in row
    if not tables:
        raise JobOutputError("The output has no table of an OSU test.")
    for table in tables:
        if not table.rows:
            raise JobOutputError(f'The output has no figure for "{shorten_line(table.title)}".')
    return ParsedJob(tuple(samples), fabric_bytes, verified)


def _columns(header: str) -> list[str]:
    """Names in small letters without units: size, latency, avg latency, bandwidth, iterations, validation."""
    words = re.split(r"\s{2,}", header.lstrip("# ").strip())
    return [re.sub(r"\s*[(\[].*", "", word).lower() for word in words]


def _row(table: _OsuTable, line: str) -> dict[str, str]:
    words = line.split()
    row = dict(zip(table.columns, words, strict=False))
    numbers = [word for column, word in row.items() if column != "validation"]
    if len(words) != len(table.columns) or not all(re.fullmatch(r"\d+(\.\d+)?", word) for word in numbers):
        raise JobOutputError(
            f'The output of "{shorten_line(table.title)}" has a line that is not known: "{shorten_line(line)}".'
        )
    if row.get("validation", "Pass") != "Pass":
        raise JobOutputError(f'"{shorten_line(table.title)}" received wrong data at {row["size"]} bytes.')
    return row


def _samples(table: _OsuTable, row: dict[str, str], ranks: int) -> list[Sample]:
    size = int(row["size"])
    labels = {"src": str(table.pair[0]), "dst": str(table.pair[1]), "bytes": str(size), "statistic": "mean"}
    if table.test in ("bw", "bibw"):
        metric = "mpi_stream_bandwidth" if table.test == "bw" else "mpi_bidirectional_bandwidth"
        return [Sample(metric, _figure(table, row, "bandwidth") * 8 * MEGABYTE, "bit/s", labels)]
    mean = _figure(table, row, *_MEANS) * MICROSECOND
    if table.test == "latency":
        return [Sample("mpi_latency", mean, "s", labels)]
    labels = {"ranks": str(ranks), "bytes": str(size)}
    bits = 8 * size * (ranks - 1)
    if "max latency" in row:
        least, largest = (float(row[f"{which} latency"]) * MICROSECOND for which in ("min", "max"))
        return over_ranks("mpi_alltoall", least, mean, largest, labels, bits)
    samples = [Sample("mpi_alltoall_time", mean, "s", {**labels, "statistic": "mean"})]
    if bits > 0 and mean > 0:
        samples.append(Sample("mpi_alltoall_bandwidth", bits / mean, "bit/s", {**labels, "statistic": "mean"}))
    return samples


def _figure(table: _OsuTable, row: dict[str, str], *columns: str) -> float:
    for column in columns:
        if column in row:
            return float(row[column])
    raise JobOutputError(f'The output of "{shorten_line(table.title)}" has no column {" or ".join(columns)}.')


def _bytes(table: _OsuTable, row: dict[str, str], ranks: Ranks) -> int:
    size, iterations = int(row["size"]), int(row.get("iterations", 1))
    if max(table.pair) >= len(ranks):
        raise JobOutputError(f"The output is of rank {max(table.pair)}, but there are {len(ranks)} ranks.")
    if table.test == "alltoall":
        return ranks.pairs_apart() * size * iterations
    messages = {"latency": 2, "bw": table.window, "bibw": 2 * table.window}[table.test]
    return messages * size * iterations if ranks.on_different_hosts(*table.pair) else 0
