"""Traffic matrices to replay: from a file, from what a run recorded, or the same for every pair."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.base.errors import InputError, Problem, argument, did_you_mean
from testbed.base.ethernet import WIRE_OVERHEAD
from testbed.base.files import read_text
from testbed.base.model import Longs, Sample, Topology
from testbed.base.untrusted_text import unescape_cell
from testbed.dataplane.predict.wire_overhead import TCP_PAYLOAD, transport
from testbed.fabric.collectives import COLLECTIVES, CollectiveError, Steps, make_steps
from testbed.fabric.schedules import Schedule, make_messages
from testbed.results import Run, load_run
from testbed.results.samples import MPI_SENT, mpi_matrix
from testbed.results.telemetry import load_telemetry

WIRE = transport("tcp", TCP_PAYLOAD).forward  # bytes a full frame takes on the wire
FRAME = WIRE - WIRE_OVERHEAD  # and as Linux counts it
COLUMNS = ("source", "destination", "bytes")
_TELEMETRY = "telemetry-"
_MAX_NAMED = 10


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """A traffic matrix and where it is from."""

    matrix: Longs  # (H, H) bytes from host (row) to host (column)
    carried: int  # bytes of it that a full frame carries: payload, or headers too where these were counted
    origin: str  # in words
    # of a collective or schedule, whose messages the matrix is the sum of; None where all begin at once
    steps: Steps | None = None
    notes: tuple[str, ...] = ()  # how it was read where that is not plain


def make_collective(topology: Topology, name: str, size: int) -> Recorded:
    """The messages of a collective, of a vector or messages of a size in bytes.

    Raises:
        InputError: not with that many hosts.
    """
    try:
        steps = make_steps(name, topology.host_count, size)
    except CollectiveError as error:
        raise InputError.one(argument("pattern"), str(error)) from error
    matrix = np.zeros((topology.host_count, topology.host_count), dtype=np.int64)
    np.add.at(matrix, (steps.source, steps.destination), steps.size)
    return Recorded(matrix, TCP_PAYLOAD, f"{name}, {size:,} bytes: {COLLECTIVES[name].summary}", steps)


def take_schedule(file: Path, schedule: Schedule, topology: Topology) -> Recorded:
    """The messages of a schedule, rank k on host k; what ranks compute takes no time.

    Raises:
        InputError: it has more ranks than there are hosts.
    """
    ranks, hosts = len(schedule.ranks), topology.host_count
    if ranks > hosts:
        sentence = f"has {ranks:,} ranks and this fabric {hosts:,} hosts; take one with {ranks:,} or more"
        raise InputError.one(str(file), sentence)
    steps = make_messages(schedule)
    if not len(steps.size):
        raise InputError.one(str(file), "has no message, so nothing is sent")
    matrix = np.zeros((hosts, hosts), dtype=np.int64)
    np.add.at(matrix, (steps.source, steps.destination), steps.size)
    calculations = sum(one.kind == "calc" for rank in schedule.ranks for one in rank)
    notes = [*schedule.notes]
    if calculations:
        notes.append(f"{calculations:,} computations take no time here")
    return Recorded(matrix, TCP_PAYLOAD, f"{file}: {ranks:,} ranks", steps, tuple(notes))


def make_all_to_all(topology: Topology, message: int) -> Recorded:
    """A message from each host to each other one.

    Raises:
        InputError: there is no other host.
    """
    if topology.host_count < 2:
        raise InputError.one(argument("pattern"), "all_to_all needs two hosts or more and this topology has one")
    matrix = np.full((topology.host_count, topology.host_count), message, dtype=np.int64)
    np.fill_diagonal(matrix, 0)
    return Recorded(matrix, TCP_PAYLOAD, f"all to all, messages of {message:,} bytes")


def read_matrix(file: Path, topology: Topology) -> Recorded:
    """Read `telemetry-<load>.npz` of a result folder, or a CSV file with the columns source, destination, bytes.

    Raises:
        InputError: it is neither, cannot be read or does not fit the fabric; all that is wrong with it.
    """
    if file.suffix == ".npz" and file.name.startswith(_TELEMETRY):
        return _telemetry(file.parent, file.stem.removeprefix(_TELEMETRY), topology, argument("matrix"))
    if file.suffix != ".csv":
        wanted = f"FILE.csv with the columns {', '.join(COLUMNS)}, or telemetry-<load>.npz of a result folder"
        raise InputError.one(argument("matrix"), f'should be {wanted}, not "{file}"')
    try:
        text = read_text(file)
    except OSError as error:
        raise InputError.one(str(file), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError.one(str(file), f"is no text: {error}") from error
    return Recorded(_csv_matrix(file, text, topology), TCP_PAYLOAD, str(file))


def read_run(folder: Path, load: str | None, topology: Topology) -> Recorded:
    """Read what the ranks of an MPI job, or the hosts, have sent each other in a load of a finished run.

    What ranks have sent is taken where it was recorded, else the traffic matrix of the telemetry.

    `load` is None where only one has a matrix.

    Raises:
        InputError: no run, no such load, no matrix, or another number of hosts.
    """
    run = load_run(folder)
    titles = {str(entry.get("load", "")): str(entry.get("title", "load")) for entry in run.manifest["loads"]}
    having = [number for number in titles if _mpi_sent(run, number) or _has_traffic(folder, number)]
    if not having:
        sentence = (
            "has no load with a traffic matrix; run it with lab.telemetry on a machine that can count pairs of hosts, "
            "or an MPI job with trace: true"
        )
        raise InputError.one(str(folder), sentence)
    if load is None and len(having) > 1:
        raise InputError.one(
            argument("trace_load"), f"is required, as several loads have a matrix: {_format_loads(having, titles)}"
        )
    chosen = having[0] if load is None else load
    if chosen not in having:
        sentence = f'there is no load "{chosen}" with a matrix in {folder}; there are: {_format_loads(having, titles)}'
        raise InputError.one(argument("trace_load"), sentence)
    if _mpi_sent(run, chosen):
        return _mpi(run, chosen, topology)
    return _telemetry(folder, chosen, topology, argument("trace"))


def _format_loads(numbers: list[str], titles: Mapping[str, str]) -> str:
    return ", ".join(f"{number} ({titles[number]})" for number in numbers)


def _mpi_sent(run: Run, load: str) -> list[Sample]:
    return [sample for sample in run.samples if sample.metric == MPI_SENT and sample.labels.get("load") == load]


def _has_traffic(folder: Path, load: str) -> bool:
    telemetry = load_telemetry(folder, load)
    return telemetry is not None and len(telemetry.traffic_bytes) > 0


def _mpi(run: Run, load: str, topology: Topology) -> Recorded:
    recorded = run.plan.topology
    _require_hosts(argument("trace"), recorded.host_count, topology)
    matrix = mpi_matrix(_mpi_sent(run, load), recorded)
    return Recorded(matrix, TCP_PAYLOAD, f"{run.path}, load {load}: what ranks sent each other")


def _telemetry(folder: Path, load: str, topology: Topology, place: str) -> Recorded:
    telemetry = load_telemetry(folder, load)
    if telemetry is None:
        raise InputError.one(place, f"there is no file {folder / (_TELEMETRY + load + '.npz')}")
    if not len(telemetry.traffic_bytes):
        raise InputError.one(place, f"load {load} of {folder} has no traffic matrix: pairs of hosts were not counted")
    _require_hosts(place, len(telemetry.hosts), topology)
    matrix = telemetry.traffic_matrix(0)
    if not matrix.any():
        raise InputError.one(place, f"load {load} of {folder} has an empty traffic matrix: nothing was sent")
    return Recorded(matrix, FRAME, f"{folder}, load {load}: frames of its first repeat")


def _require_hosts(place: str, hosts: int, topology: Topology) -> None:
    if hosts != topology.host_count:
        sentence = f"was recorded on {hosts} hosts and this fabric has {topology.host_count}; take one with as many"
        raise InputError.one(place, sentence)


def _csv_matrix(file: Path, text: str, topology: Topology) -> Longs:
    reader = csv.reader(io.StringIO(text))
    head = next(reader, [])
    if tuple(head) != COLUMNS:
        sentence = f'should begin with the line "{",".join(COLUMNS)}", not "{",".join(head)}"'
        raise InputError.one(f"{file}:1", sentence)
    number = {topology.host_name(host): host for host in range(topology.host_count)}
    matrix = np.zeros((topology.host_count, topology.host_count), dtype=np.int64)
    problems: list[Problem] = []
    for cells in reader:
        if not cells:
            continue
        row = list(map(unescape_cell, cells))
        place = f"{file}:{reader.line_num}"
        if len(row) != len(COLUMNS):
            problems.append(Problem(place, f"should have {len(COLUMNS)} columns, not {len(row)}"))
            continue
        before = len(problems)
        problems += [
            Problem(place, f'there is no host "{name}" among h1 to h{topology.host_count}.{did_you_mean(name, number)}')
            for name in row[:2]
            if name not in number
        ]
        if not (row[2].isdecimal() and 0 < int(row[2]) < 1 << 50):
            problems.append(Problem(place, f'bytes should be a whole number above 0 and below 2^50, not "{row[2]}"'))
        if len(problems) > before:
            continue
        source, destination = number[row[0]], number[row[1]]
        if source == destination:
            problems.append(Problem(place, f"{row[0]} sends to itself; take the line away"))
        elif matrix[source, destination]:
            problems.append(Problem(place, f"{row[0]} to {row[1]} is listed twice; add the two up"))
        else:
            matrix[source, destination] = int(row[2])
    if problems:
        more = len(problems) - _MAX_NAMED
        shown = problems[:_MAX_NAMED] + ([Problem(str(file), f"{more} more lines are wrong")] if more > 0 else [])
        raise InputError(shown)
    if not matrix.any():
        raise InputError.one(str(file), "has no line with bytes, so nothing is sent")
    return matrix
