"""The loads there are, as one table that can be read: all that is known of a kind without a lab. All of it is pure.

How a kind is run in a lab, and how it is simulated, is in RUNNERS of testbed.experiments.run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.base.errors import Problem
from testbed.base.model import Topology
from testbed.scenario.workloads import mpi_placement, npb, ping, rr, script, spec
from testbed.scenario.workloads.pairs import PairTool
from testbed.scenario.workloads.timeline import timeline_problems


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a load sends when it sends most."""

    # who sends to whom; None = every host to every other, as fast as the bottleneck channel lets them
    pattern: str | None
    protocol: str = "tcp"  # `tcp` or `udp`
    payload: int = 0  # bytes in a datagram
    share: float = 1.0  # of the max-min fair goodput
    bursts: bool = False  # whether it comes in bursts, and not at a steady rate


def _return_nothing(*given: object) -> list[Any]:
    del given
    return []


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """One entry of the table."""

    spec: type[Any]  # dataclass of its parameters
    summary: str  # one line for `testbed list`
    labels: tuple[str, ...] = ()  # parameters whose values tell a load from others of its kind
    needs: tuple[str, ...] = ()  # names of the capabilities of a machine that it needs
    # why the simulator cannot run it; empty where it can
    why_not_simulated: Callable[[Any], str] = lambda parameters: ""
    # what is wrong with parameters that are each right alone; keys are those of the workload
    check: Callable[[Any], list[Problem]] = _return_nothing
    # what of them does not go with a topology; likewise
    check_hosts: Callable[[Any, Topology], list[Problem]] = _return_nothing
    # those of its keys that are bytes of a datagram, which must fit a frame
    datagrams: Callable[[Any], Mapping[str, int]] = lambda parameters: {}
    # those of some keys that say nothing beside the other parameters, each with a sentence
    list_inapplicable: Callable[[Any, Sequence[str]], list[Problem]] = _return_nothing
    traffic: Callable[[Any], Traffic | None] = lambda parameters: None  # what it sends at most; None = little
    ranks: Callable[[Any, Topology], int] = lambda parameters, topology: 0  # how many MPI ranks it is
    # what it needs beside the project and its parameters, given the environment's variables
    outside: Callable[[Any, Mapping[str, str]], list[Problem]] = _return_nothing
    own_file: bool = False  # whether it always needs a file of this machine
    metrics: Mapping[str, str] = field(default_factory=dict)  # metric that no other kind has → its name in reports
    pairs: PairTool | None = None  # how it measures pairs of hosts, if that is what it does


def _in_time(load: spec.Iperf3 | spec.Probe) -> list[Problem]:
    key = spec.events_key(load)
    found = timeline_problems(key, getattr(load, key), spec.load_seconds(load))
    if key == "timeline" and load.failures:
        found.append(Problem("failures", "stands beside timeline, which takes failures, too; write all events there"))
    return found


def _flows(load: spec.Iperf3) -> Traffic:
    return Traffic(load.pattern, load.protocol, load.payload, load.offered_load if load.protocol == "udp" else 1.0)


def _other_tcp(load: spec.Iperf3) -> str:
    modelled = load.protocol == "udp" or load.congestion == "reno"
    return "" if modelled else f"of TCP reno is modelled, not {load.congestion}"


def _other_folder(load: spec.Mpi, environment: Mapping[str, str]) -> list[Problem]:
    del environment
    if "/" not in load.job:
        return []
    return [Problem("job", f'"{load.job}" is outside the project; put the job into mpi_jobs/')]


def _official(load: spec.Npb, environment: Mapping[str, str]) -> list[Problem]:
    del load
    if not environment.get(npb.VARIABLE):
        return []
    return [Problem("", f"{npb.VARIABLE} names a folder outside the project; unset it")]


_PROGRAM = "the program would have to run"
_MPI = ("mpich", "compiler")

WORKLOADS: dict[str, WorkloadKind] = {
    "iperf3": WorkloadKind(
        spec.Iperf3,
        "TCP or UDP goodput of all flows of a pattern at once",
        labels=("protocol", "pattern"),
        needs=("iperf3",),
        why_not_simulated=_other_tcp,
        check=_in_time,
        datagrams=lambda load: {"payload": load.payload} if load.protocol == "udp" else {},
        list_inapplicable=spec.Iperf3.list_inapplicable,
        traffic=_flows,
    ),
    "ping": WorkloadKind(
        spec.Ping,
        "round-trip time of the pairs of a pattern, one after the other",
        labels=("pattern",),
        needs=("ping",),
        why_not_simulated=lambda load: (
            "it measures programs and processors, which the simulator has none of; testbed simulate gives latencies"
        ),
        datagrams=lambda load: {"size": load.size},
        pairs=ping.PAIRS,
    ),
    "rr": WorkloadKind(
        rr.RequestResponse,
        "latency of requests and responses over TCP or UDP, and transactions a second",
        labels=("protocol", "pattern"),
        why_not_simulated=lambda load: rr.WHY_NOT_SIMULATED,
        check=rr.check,
        datagrams=rr.datagrams,
        metrics=rr.METRICS,
        pairs=rr.PAIRS,
    ),
    "probe": WorkloadKind(
        spec.Probe,
        "what failures of links, ports and switches cost: frames and time",
        why_not_simulated=lambda load: "nothing fails in the simulator",
        check=_in_time,
    ),
    "mpi": WorkloadKind(
        spec.Mpi,
        "an MPI job of mpi_jobs/, or of a folder of your own",
        labels=("job", "pattern"),
        needs=_MPI,
        why_not_simulated=lambda load: _PROGRAM,
        check_hosts=mpi_placement.placement_problems,
        traffic=lambda load: Traffic(load.pattern, bursts=True),
        ranks=lambda load, topology: len(mpi_placement.place_ranks(load, topology)),
        outside=_other_folder,
    ),
    "npb": WorkloadKind(
        spec.Npb,
        "a kernel of the NAS Parallel Benchmarks, its result verified",
        labels=("kernel", "class_"),
        needs=_MPI,
        why_not_simulated=lambda load: _PROGRAM,
        check=npb.problems,
        check_hosts=npb.placement_problems,
        traffic=lambda load: Traffic(None, bursts=True),
        ranks=lambda load, topology: len(mpi_placement.place_ranks(npb.as_mpi(load, topology.host_count), topology)),
        outside=_official,
    ),
    "script": WorkloadKind(
        script.Script,
        "a program or script of your own in some hosts at once, and the time it takes",
        labels=("run",),
        why_not_simulated=lambda load: script.WHY_NOT_SIMULATED,
        check_hosts=script.host_problems,
        traffic=lambda load: Traffic(None),
        outside=lambda load, environment: script.outside(load),
        own_file=True,
        metrics=script.METRICS,
    ),
}
