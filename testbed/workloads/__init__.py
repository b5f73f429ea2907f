"""The loads there are, as one table that can be read. Commands and parsers are pure; the lab runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.errors import Problem
from testbed.workloads import npb, spec
from testbed.workloads.timeline import timeline_problems


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One entry of the table.

    Attributes:
        spec: dataclass of its parameters.
        summary: one line for `testbed list`.
        check: what is wrong with parameters that are each right alone; places are keys of the workload.
    """

    spec: type[Any]
    summary: str
    check: Callable[[Any], list[Problem]] = lambda parameters: []


def _in_time(load: spec.Iperf3 | spec.Probe) -> list[Problem]:
    return timeline_problems(load.failures, spec.load_seconds(load))


WORKLOADS: dict[str, WorkloadKind] = {
    "iperf3": WorkloadKind(spec.Iperf3, "TCP or UDP goodput of all flows of a pattern at once", _in_time),
    "ping": WorkloadKind(spec.Ping, "round-trip time of the pairs of a pattern, one after the other"),
    "probe": WorkloadKind(spec.Probe, "what failures of links, ports and switches cost: frames and time", _in_time),
    "mpi": WorkloadKind(spec.Mpi, "an MPI job of mpi_jobs/, or of a folder of your own"),
    "npb": WorkloadKind(spec.Npb, "a kernel of the NAS Parallel Benchmarks, its result verified", npb.problems),
}
