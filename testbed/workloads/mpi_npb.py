"""What a kernel of the NAS Parallel Benchmarks prints: the project's own, or NASA's."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.model import Sample
from testbed.workloads.mpi_output import JobOutputError, ParsedJob, short
from testbed.workloads.mpi_placement import Ranks

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
        raise JobOutputError(f'The last line of the NPB kernel has no whole number "fabric_bytes": "{short(last)}".')
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
        raise JobOutputError(f'The NPB kernel gives "{short(rows[name])}" as {name}, which is not a number.')
    return value


def _json(line: str) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(line)
    except (ValueError, RecursionError):
        raise JobOutputError(f'The last line of the NPB kernel is not a JSON object: "{short(line)}".') from None
    return found


def _seconds(split: Mapping[str, Any], key: str, ranks: int, line: str) -> Sequence[float]:
    values = split.get(key)
    if (
        not isinstance(values, list)
        or len(values) != ranks
        or not all(isinstance(value, int | float) and 0 <= value < 1e9 for value in values)
    ):
        raise JobOutputError(
            f'The last line of the NPB kernel has no "{key}" of each of {ranks} ranks: "{short(line)}".'
        )
    return [float(value) for value in values]
