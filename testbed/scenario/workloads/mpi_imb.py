"""The tables of the Intel MPI Benchmarks, IMB-MPI1 (user's guide, "IMB-MPI-1 Benchmarks" and "Output")."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
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

_TITLE = re.compile(r"^# Benchmarking (\S+)\s*$")
_PROCESSES = re.compile(r"^# #processes = (\d+)")
_GROUP = re.compile(r"^# Group +\d+: +([\d ]+?)\s*$")
_COLUMNS = ("#bytes", "#repetitions", "t[usec]", "t_min[usec]", "t_max[usec]", "t_avg[usec]", "Mbytes/sec", "Msg/sec")
# Benchmarks between the two ranks of a group; and how many messages' bytes the others' rate counts, as IMB's does.
_OF_TWO = ("PingPong", "PingPing", "PingPongSpecificSource", "PingPingSpecificSource", "PingPongAnySource")
_MESSAGES = {"PingPong": 1, "PingPing": 1, "Sendrecv": 2, "Exchange": 4}

Group = Sequence[int]


@dataclass(slots=True)
class _ImbTable:
    """One table: a benchmark, the groups of ranks that run it at once, and its rows."""

    name: str
    groups: list[list[int]] = field(default_factory=list)
    columns: tuple[str, ...] = ()
    rows: list[dict[str, float]] = field(default_factory=list)

    @property
    def benchmark(self) -> str:
        return self.name.removeprefix("Multi-")


def problems(args: Sequence[str], ranks: int) -> list[str]:
    """What of the command line would make the tables say less than is needed."""
    del ranks
    if "-map" in args:
        return ["has -map, which renumbers the ranks so that the tables no longer say who sent to whom; use placement"]
    return []


def parse(text: str, ranks: Ranks) -> ParsedJob:
    """Read all tables.

    PingPong gives `mpi_latency` and `mpi_bandwidth`, others `mpi_<benchmark>_time`, over ranks where IMB has three
    times, and a bandwidth where IMB has one; Alltoall that of what each rank sends to all others. IMB verifies nothing.
    Bytes between hosts are counted for those benchmarks of which they are known from the definition: what must
    cross for each repetition at least, warm-up left out.

    Raises:
        JobOutputError: there is no table, or one that is not understood.
    """
    tables = _tables(text, len(ranks))
    if not tables:
        raise JobOutputError("The output of IMB has no table.")
    samples: list[Sample] = []
    fabric_bytes = 0
    for table in tables:
        if not table.rows:
            raise JobOutputError(f"IMB has no figure for {table.name}.")
        for row in table.rows:
            samples += _samples(table, row)
            crossing = sum(_crossing(table.benchmark, group, ranks) for group in table.groups)
            fabric_bytes += int(crossing * row.get("#bytes", 0) * row["#repetitions"])
    return ParsedJob(tuple(samples), fabric_bytes, verified=False)


def _tables(text: str, ranks: int) -> list[_ImbTable]:
    tables: list[_ImbTable] = []
    table: _ImbTable | None = None
    for line in text.splitlines():
        if match := _TITLE.match(line):
            table = _ImbTable(match[1])
            tables.append(table)
        elif table is None:
            continue
        elif match := _PROCESSES.match(line):
            table.groups = [list(range(int(match[1])))]
        elif match := _GROUP.match(line):
            table.groups.append([int(number) for number in match[1].split()])
        elif line.split() and set(line.split()) <= set(_COLUMNS):
            table.columns = tuple(line.split())
        elif table.columns and not line.strip():
            table = None
        elif table.columns:
            table.rows.append(_row(table, line))
    for found in tables:
        if any(rank >= ranks for group in found.groups for rank in group):
            raise JobOutputError(f"IMB ran {found.name} on more than the {ranks} ranks there are.")
    return tables


def _row(table: _ImbTable, line: str) -> dict[str, float]:
    try:
        values = [float(word) for word in line.split()]
    except ValueError:
        values = []
    if len(values) != len(table.columns) or "#repetitions" not in table.columns:
        raise JobOutputError(f'IMB has no figure for {table.name} where it says "{shorten_line(line.strip())}".')
    return dict(zip(table.columns, values, strict=True))


def _samples(table: _ImbTable, row: dict[str, float]) -> list[Sample]:
    name = re.sub(r"\W+", "_", table.name.lower())
    size, group = int(row.get("#bytes", 0)), table.groups[0] if table.groups else []
    labels = {"bytes": str(size)} if "#bytes" in row else {}
    if table.benchmark in _OF_TWO and table.name == table.benchmark:
        labels = {"src": str(group[0]), "dst": str(group[1]), **labels}
    else:
        labels = {"ranks": str(sum(map(len, table.groups))), **labels}
    bits = 8 * size * _MESSAGES.get(table.benchmark, 0)
    if table.benchmark == "Alltoall":
        bits = 8 * size * (len(group) - 1)
    if "t[usec]" in row:
        seconds = row["t[usec]"] * MICROSECOND
        metric, time = ("mpi", "latency") if name == "pingpong" else (f"mpi_{name}", "time")
        samples = [Sample(f"{metric}_{time}", seconds, "s", {**labels, "statistic": "mean"})]
        if bits > 0 and seconds > 0:
            samples.append(Sample(f"{metric}_bandwidth", bits / seconds, "bit/s", {**labels, "statistic": "mean"}))
        return samples
    if "t_max[usec]" in row:
        least, mean, largest = (row[f"t_{statistic}[usec]"] * MICROSECOND for statistic in ("min", "avg", "max"))
        return over_ranks(f"mpi_{name}", least, mean, largest, labels, bits)
    if size == 0:
        return []
    return [Sample(f"mpi_{name}_bandwidth", 8 * MEGABYTE * row["Mbytes/sec"], "bit/s", {**labels, "statistic": "mean"})]


def _crossing(benchmark: str, group: Group, ranks: Ranks) -> int:
    """Messages' bytes that one repetition moves between hosts at least, in units of #bytes."""
    count = _CROSSING.get(benchmark)
    return count(group, ranks) if count else 0


def _two(group: Group, ranks: Ranks) -> int:
    return 2 * ranks.on_different_hosts(group[0], group[1])


def _chain(group: Group, ranks: Ranks) -> int:
    return sum(ranks.on_different_hosts(one, group[(place + 1) % len(group)]) for place, one in enumerate(group))


def _other_hosts(group: Group, ranks: Ranks) -> int:
    return ranks.hosts_of(group) - 1


def _every_host(group: Group, ranks: Ranks) -> int:
    hosts = ranks.hosts_of(group)
    return hosts if hosts > 1 else 0


_CROSSING: dict[str, Callable[[Group, Ranks], int]] = {
    **dict.fromkeys(_OF_TWO, _two),
    "Sendrecv": _chain,
    "Exchange": lambda group, ranks: 2 * _chain(group, ranks),
    "Alltoall": lambda group, ranks: ranks.pairs_apart(group),
    "Allreduce": _every_host,  # each must tell the others its part
    "Reduce": _other_hosts,
    "Bcast": _other_hosts,
}
