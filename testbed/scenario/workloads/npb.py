"""The NAS Parallel Benchmarks as MPI jobs: the numbers of ranks they run on, where these go, and their output. Pure."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.base.errors import Problem
from testbed.base.model import Sample, Topology
from testbed.scenario.workloads import mpi_placement
from testbed.scenario.workloads.mpi_output import JobOutputError, ParsedJob, shorten_line
from testbed.scenario.workloads.mpi_placement import Ranks
from testbed.scenario.workloads.spec import Kernel, Mpi, Npb, ProblemClass

TIME_LIMIT = 300.0
# The environment's, with the folder of NASA's own sources.
VARIABLE = "NPB_DIR"
# SP and BT share out a cube by diagonals of a square of ranks; EP needs no neighbours; all others halve.
_SQUARES = ("SP", "BT")
_ANY = ("EP",)
# Ranks to which a problem can be shared out; where there is no entry, more than a scenario can ask for.
_MAX_RANKS: Mapping[Kernel, Mapping[ProblemClass, int]] = {
    "IS": {"S": 512},
    "EP": {"S": 256, "W": 512},
    "FT": {"S": 64, "W": 32, "A": 128, "B": 256},
    "LU": {"S": 16, "W": 64, "A": 256},
    "SP": {"S": 16, "W": 144, "A": 441},
    "BT": {"S": 16, "W": 64, "A": 441},
}


def is_legal(kernel: Kernel, ranks: int) -> bool:
    """Whether a kernel runs on a number of ranks, whatever the class."""
    if kernel in _SQUARES:
        return math.isqrt(ranks) ** 2 == ranks
    return kernel in _ANY or ranks & (ranks - 1) == 0


def most_ranks(spec: Npb, hosts: int) -> int:
    """The largest number of ranks that a kernel runs on with at most one on each host; hosts are one or more."""
    most = min(hosts, _limit(spec))
    return max(ranks for ranks in range(1, most + 1) if is_legal(spec.kernel, ranks))


def problems(spec: Npb) -> list[Problem]:
    """What is wrong with the number of ranks; places are keys of the workload."""
    listed = isinstance(spec.placement, tuple)
    ranks = len(spec.placement) if listed else spec.ranks
    if ranks is None:
        return []
    if not is_legal(spec.kernel, ranks):
        right = f"{_rule(spec.kernel)} for {spec.kernel}"
    elif ranks > _limit(spec):
        right = f"{_limit(spec)} or less for {spec.kernel} class {spec.class_}, which cannot be shared out further"
    else:
        return []
    if listed:
        return [Problem("placement", f"lists the hosts of {ranks} ranks; their number should be {right}")]
    return [Problem("ranks", f"should be {right}, not {ranks}")]


def host_problems(spec: Npb, hosts: int) -> list[Problem]:
    """What is wrong where the number of ranks is to follow from that of the hosts; places as in problems."""
    if spec.ranks is not None or isinstance(spec.placement, tuple) or most_ranks(spec, hosts) > 1:
        return []
    sentence = (
        f"{spec.kernel} runs on {_rule(spec.kernel)} and this topology has {hosts} hosts; ranks: 4 puts several on one"
    )
    return [Problem("ranks", sentence)]


def placement_problems(spec: Npb, topology: Topology) -> list[Problem]:
    """What is wrong with ranks and their hosts on a topology; keys as in problems."""
    hosts = topology.host_count
    return host_problems(spec, hosts) or mpi_placement.placement_problems(as_mpi(spec, hosts), topology)


def as_mpi(spec: Npb, hosts: int) -> Mpi:
    """The MPI job that a kernel is, for a number of hosts with which there is no problem."""
    ranks = spec.ranks
    if ranks is None and not isinstance(spec.placement, tuple):
        ranks = most_ranks(spec, hosts)
    return Mpi(
        f"npb {spec.kernel}", args=(spec.class_,), time_limit=spec.time_limit, ranks=ranks, placement=spec.placement,
        trace=spec.trace,
    )  # fmt: skip


def _limit(spec: Npb) -> int:
    return _MAX_RANKS.get(spec.kernel, {}).get(spec.class_, 1024)


def _rule(kernel: Kernel) -> str:
    return "a square (4, 9, 16, 25, …)" if kernel in _SQUARES else "a power of two (2, 4, 8, 16, …)"


SUCCESS = r"^ Verification +=  +SUCCESSFUL *$"
_ROW = re.compile(r"^ ([A-Z][A-Za-z/ ]*?) *= *(\S.*?) *$", re.MULTILINE)
_NEEDED = ("Time in seconds", "Total processes", "Mop/s total", "Verification")
_MEGA = 1e6
# What kernels here print beside that: how the time of each rank divides.
_SPLIT = {"computation_seconds": "npb_lab_computation_time", "communication_seconds": "npb_lab_communication_time"}


def parse(text: str, ranks: Ranks) -> ParsedJob:
    """Read the result.

    Gives `npb_lab_time` (s) and `npb_lab_rate` (operations/s, by NPB's own count), and from the kernels of this
    project `npb_lab_computation_time` and `npb_lab_communication_time` (s), median and max over ranks. All are the
    laboratory's and stay so: links are slowed down there and processors are not, so no factor makes them real ones.
    The label `code` tells whose program it was.

    Raises:
        JobOutputError: a figure is missing, the verification failed, or the program ran on other ranks.
    """
    rows = dict(_ROW.findall(text[text.rfind("Benchmark Completed") :]))
    lacking = [name for name in _NEEDED if name not in rows]
    if lacking:
        raise JobOutputError(f"The output of the NPB kernel has no {', '.join(lacking)}.")
    if rows["Verification"] != "SUCCESSFUL":
        raise JobOutputError(f"The result of the NPB kernel is wrong: Verification = {rows['Verification']}.")
    if rows["Total processes"] != str(len(ranks)):
        raise JobOutputError(f"The NPB kernel ran on {rows['Total processes']} processes instead of {len(ranks)}.")
    code = f"NPB {rows['Version']}" if "Version" in rows else "testbed"
    labels = {"code": code, "time": "laboratory"}
    samples = [
        Sample("npb_lab_time", _number(rows, "Time in seconds"), "s", labels),
        Sample("npb_lab_rate", _number(rows, "Mop/s total") * _MEGA, "op/s", labels),
    ]
    last = text.rstrip().rpartition("\n")[2]
    if not last.startswith("{"):
        return ParsedJob(tuple(samples), 0, verified=True)
    split = _json(last)
    parts = [_seconds(split, key, len(ranks), last) for key in _SPLIT]
    for metric, seconds in zip(_SPLIT.values(), parts, strict=True):
        for statistic, value in (("median", statistics.median(seconds)), ("max", max(seconds))):
            samples.append(Sample(metric, value, "s", {**labels, "over": "ranks", "statistic": statistic}))
    moved = split.get("fabric_bytes")
    if isinstance(moved, bool) or not isinstance(moved, int) or moved < 0:
        raise JobOutputError(
            f'The last line of the NPB kernel has no whole number "fabric_bytes": "{shorten_line(last)}".'
        )
    shares = [computing / max(computing + waiting, 1e-9) for computing, waiting in zip(*parts, strict=True)]
    return ParsedJob(tuple(samples), moved, verified=True, computing=statistics.median(shares))


def failure(text: str) -> str:
    """What a program that ended with a failure says of it in its output; empty where nothing."""
    found: list[str] = re.findall(r"^ Verification +=  +(.+?) *$", text, re.MULTILINE)
    return f"its result is wrong: Verification = {found[-1]}" if found and found[-1] != "SUCCESSFUL" else ""


def _number(rows: Mapping[str, str], name: str) -> float:
    try:
        value = float(rows[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:  # Fortran prints stars where a figure does not fit
        raise JobOutputError(f'The NPB kernel gives "{shorten_line(rows[name])}" as {name}, which is not a number.')
    return value


def _json(line: str) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(line)
    except (ValueError, RecursionError):
        raise JobOutputError(f'The last line of the NPB kernel is not a JSON object: "{shorten_line(line)}".') from None
    return found


def _seconds(split: Mapping[str, Any], key: str, ranks: int, line: str) -> Sequence[float]:
    values = split.get(key)
    if (
        not isinstance(values, list)
        or len(values) != ranks
        or not all(isinstance(value, int | float) and 0 <= value < 1e9 for value in values)
    ):
        raise JobOutputError(
            f'The last line of the NPB kernel has no "{key}" of each of {ranks} ranks: "{shorten_line(line)}".'
        )
    return [float(value) for value in values]
