"""What ranks have sent each other: the file that the tracer of `mpi_jobs/trace` writes, as a traffic matrix."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from testbed.scenario.workloads.mpi_output import JobOutputError

Matrix = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Trace:
    """The messages of a whole run, at the level of MPI."""

    message_bytes: Matrix  # payload of single messages, [sender, receiver], ranks × ranks; exact
    message_count: Matrix  # how many
    # what collective operations carry by their meaning, whatever way the library takes; mpi_jobs/README.md says how
    # each is counted
    collective_bytes: Matrix
    collective_count: Matrix  # how many pairs of ranks they have brought together
    seconds: tuple[float, ...]  # of each rank between MPI_Init and MPI_Finalize, laboratory s
    seconds_in_mpi: tuple[float, ...]  # of those, inside of calls of MPI
    not_counted: tuple[str, ...]  # names of calls that moved data and are in no matrix; mostly empty

    @property
    def computing(self) -> float:
        """Share of its time that the median rank was outside of MPI."""
        pairs = zip(self.seconds_in_mpi, self.seconds, strict=True)
        return 1 - statistics.median(inside / max(whole, 1e-9) for inside, whole in pairs)

    def between_hosts(self, hosts: Sequence[int], count: int) -> Matrix:
        """All bytes by host, [sender, receiver], hosts × hosts; what stays on a host is on the diagonal.

        `hosts`: host of each rank; `count` of hosts.
        """
        found = np.zeros((count, count), dtype=np.int64)
        where = np.asarray(hosts)
        np.add.at(found, (where[:, None], where[None, :]), self.message_bytes + self.collective_bytes)
        return found

    def least_between_hosts(self, hosts: Sequence[int]) -> int:
        """Bytes that have surely gone from host to host.

        Of collective operations nothing is sure where ranks share hosts: one copy may serve all ranks of a host.
        """
        where = np.asarray(hosts)
        alone = len(set(hosts)) == len(hosts)
        sent = self.message_bytes + self.collective_bytes if alone else self.message_bytes
        return int(sent[where[:, None] != where[None, :]].sum())


def parse(text: str, ranks: int) -> Trace:
    """Read the file.

    Raises:
        JobOutputError: there is none, or it is not of this job.
    """
    if not text:
        raise JobOutputError("The job has left no trace; it ended without MPI_Finalize, or it is not an MPI program.")
    try:
        raw = json.loads(text)
        if (raw["form"], raw["version"]) != ("testbed-mpi-trace", 1):
            raise JobOutputError(f"The trace is of the form {raw['form']} {raw['version']}, not testbed-mpi-trace 1.")
        if raw["ranks"] != ranks:
            raise JobOutputError(f"The trace is of {raw['ranks']} ranks, and the job had {ranks}.")
        messages, collectives = raw["messages"], raw["collectives"]
        return Trace(
            _matrix(messages["bytes"], ranks), _matrix(messages["count"], ranks),
            _matrix(collectives["bytes"], ranks), _matrix(collectives["count"], ranks),
            _seconds(raw["seconds"], ranks), _seconds(raw["seconds_in_mpi"], ranks),
            tuple(sorted(str(name) for name in raw["not_counted"])),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        if isinstance(error, JobOutputError):
            raise
        raise JobOutputError(f"The trace is damaged: {error!r}.") from error


def _matrix(rows: Any, ranks: int) -> Matrix:
    found: Matrix = np.array(rows, dtype=np.int64)
    if found.shape != (ranks, ranks):
        raise ValueError(f"a matrix of {found.shape} for {ranks} ranks")
    return found


def _seconds(values: Any, ranks: int) -> tuple[float, ...]:
    found = tuple(float(value) for value in values)
    if len(found) != ranks:
        raise ValueError(f"{len(found)} times for {ranks} ranks")
    return found
