"""Traffic between hosts as a matrix: of a pattern, as a run has recorded it, or as a lab has it now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from testbed.base.errors import InputError, LabError, Problem, argument
from testbed.base.ethernet import wire_bits
from testbed.base.messages import LinkReadings, PairReadings
from testbed.base.model import Floats, Topology
from testbed.engines.session import Session
from testbed.fabric.routing.paths import traffic_load
from testbed.fabric.traffic import PatternError, flows, is_pattern, no_pattern
from testbed.planning import Plan
from testbed.planning.rates import channel_rates
from testbed.results import Run, load_run
from testbed.results.samples import MPI_SENT, mpi_matrix
from testbed.results.telemetry import Names, load_telemetry

_MAX_NAMED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """What hosts send each other."""

    name: str  # of the pattern, or of the load that was recorded
    matrix: Floats  # (H, H) from each host (row) to each (column); bytes, or for a pattern flows of one rate
    source: str  # where it comes from, in words


def of_pattern(pattern: str, topology: Topology, seed: int) -> Traffic:
    """Traffic of a pattern: every flow counts as much.

    Raises:
        InputError: there is no such pattern, it does not fit the number of hosts, or gives no flow.
    """
    if not is_pattern(pattern):
        raise InputError.one(argument("pattern"), no_pattern(pattern))
    matrix = np.zeros((topology.host_count, topology.host_count))
    try:
        for source, destination in flows(pattern, topology, seed):
            matrix[source, destination] = 1.0
    except PatternError as error:
        raise InputError.one(argument("pattern"), str(error)) from error
    if not matrix.any():
        raise InputError.one(argument("pattern"), f'"{pattern}" maps each host to itself here; use another pattern')
    return Traffic(pattern, matrix, f"the pattern {pattern}")


def read_traffic(path: Path, topology: Topology) -> list[Traffic]:
    """Traffic of the loads of a run.

    `path` is a result folder: of each load what MPI sent (`trace: true`), or else what was counted in the fabric; or
    one `telemetry-<load>.npz` of it. The hosts must be those of the topology.

    Raises:
        InputError: it is neither, or of other hosts, or nothing was recorded.
    """
    place = argument("matrix", path)
    if path.is_dir():
        found = list(_of_run(load_run(path), topology, place))
        if found:
            return found
        raise InputError.one(
            place,
            "has no traffic matrix: no load was recorded. iperf3 and MPI loads are, unless lab.telemetry is false or "
            "the kernel cannot count pairs of hosts; MPI loads with trace: true always",
        )
    load = path.name.removeprefix("telemetry-").removesuffix(".npz")
    if path.name != f"telemetry-{load}.npz":
        raise InputError.one(place, "should be a result folder, or a file telemetry-<load>.npz of one")
    found = list(_read_counted(path.parent, load, f"load {load}", topology, place))
    if not found:
        there = (
            "holds no traffic matrix: the kernel could not count pairs of hosts" if path.exists() else "is not a file"
        )
        raise InputError.one(place, there)
    return found


def _of_run(run: Run, topology: Topology, place: str) -> Iterator[Traffic]:
    for load in run.manifest["loads"]:
        number, title = str(load["load"]), str(load["title"])
        sent = [sample for sample in run.samples if sample.metric == MPI_SENT and sample.labels.get("load") == number]
        if sent:
            hosts = [run.plan.topology.host_name(host) for host in range(run.plan.topology.host_count)]
            _require_hosts(hosts, topology, place)
            matrix = mpi_matrix(sent, run.plan.topology).astype(np.float64)
            yield Traffic(title, matrix, f"bytes that MPI sent, {run.path.name}")
        else:
            yield from _read_counted(run.path, number, title, topology, place)


def _read_counted(folder: Path, load: str, title: str, topology: Topology, place: str) -> Iterator[Traffic]:
    telemetry = load_telemetry(folder, load)
    if telemetry is not None and len(telemetry.traffic_bytes):
        _require_hosts(telemetry.hosts, topology, place)
        matrix = telemetry.traffic_matrix().astype(np.float64)
        yield Traffic(title, matrix, f"bytes counted in the fabric, {folder.name}")


def _require_hosts(found: Sequence[str] | Names, topology: Topology, place: str) -> None:
    wanted = [topology.host_name(host) for host in range(topology.host_count)]
    if list(found) != wanted:
        raise InputError.one(
            place,
            f"is a matrix of {_hosts(found)} and this fabric has {_hosts(wanted)}; use one that was recorded with "
            "these hosts",
        )


def _hosts(names: Sequence[str] | Names) -> str:
    shown = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
    return f"{len(names)} host{'s' * (len(names) != 1)} ({shown})"


def gather(
    patterns: Sequence[str], files: Sequence[Path], topology: Topology, seed: int
) -> tuple[list[Traffic], list[Problem]]:
    """All traffic that is asked for, and all that is wrong with it."""
    asked: list[Callable[[], list[Traffic]]] = [
        *(partial(_list_of_pattern, pattern, topology, seed) for pattern in patterns),
        *(partial(read_traffic, file, topology) for file in files),
    ]
    found: list[Traffic] = []
    problems: list[Problem] = []
    for ask in asked:
        try:
            found += ask()
        except InputError as error:
            problems += error.problems
    return found, problems


def read_pairs(lab: Session) -> PairReadings:
    """Bytes that hosts have sent each other in a lab so far.

    Raises:
        LabError: they cannot be counted.
    """
    found = lab.read_pairs()
    if found.why_not:
        raise LabError(f"what hosts send each other cannot be counted: {found.why_not}")
    return found


def bytes_between(first: PairReadings, last: PairReadings, hosts: int) -> Floats:
    """(H, H) bytes that hosts sent each other from one reading to another."""
    matrix = np.zeros((hosts, hosts))
    for readings, sign in ((last, 1), (first, -1)):
        for source, destination, size in readings.pairs:
            matrix[source, destination] += sign * size
    np.fill_diagonal(matrix, 0)
    return np.maximum(matrix, 0)


def compute_peak_utilisation(before: LinkReadings, after: LinkReadings, channels: int, tag: int = 0) -> float:
    """Share of its rate that the busiest channel between switches carried from one reading to the next.

    `tag`: bytes of the tag that frames have there.
    """
    seconds = after.time - before.time
    bits = (
        wire_bits(after.bytes[one] - before.bytes[one], after.frames[one] - before.frames[one], tag)
        for one in range(channels)
    )
    return max((sent / seconds / rate for sent, rate in zip(bits, after.rates, strict=False)), default=0.0)


def uses_of(plans: Sequence[Plan], rung: int, traffic: Floats, measured: float) -> list[float]:
    """What the busiest link would be used on each rung; links of a bundle are taken to be used alike.

    Args:
        plans: of the rungs.
        rung: that is in force.
        traffic: (H, H) bytes from each host to each, of the time of `measured`.
        measured: how much the busiest link was used on that rung.
    """
    loads = [traffic_load(plan.topology, plan.routes, traffic) / channel_rates(plan) for plan in plans]
    most = [float(load.max(initial=0.0)) for load in loads]
    return [measured * one / most[rung] if most[rung] else measured for one in most]


def _list_of_pattern(pattern: str, topology: Topology, seed: int) -> list[Traffic]:
    return [of_pattern(pattern, topology, seed)]
