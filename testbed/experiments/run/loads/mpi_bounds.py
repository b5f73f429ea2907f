"""What links allow the figures of MPI jobs at most, whatever the MPI.

Only payload and the headers of TCP are counted. What a library adds, such as its own header, or asking before it sends
a long message (rendezvous), takes more time and can make no figure better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from testbed.base.ethernet import MAX_WIRE_FRAME
from testbed.base.model import Sample
from testbed.base.units import LATE_AT_ONCE
from testbed.dataplane.predict import Least, exchange_bound, transport
from testbed.planning import Plan
from testbed.planning.rates import wires_of
from testbed.planning.wire_time import zero_load_latency

# MPICH's all-to-all of blocks up to this size sends them by way of other ranks, so that channels between switches carry
# other amounts; what hosts receive at least stays (MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE).
_RELAYED_BYTES = 256


def mpi_bound(plan: Plan, hosts: Sequence[int], sample: Sample, *, exact: bool) -> Least | None:
    """Least real-world time of what a sample is about; None where none is known.

    Args:
        plan: with its links' rates.
        hosts: of each rank.
        sample: of a job, with numbers of ranks for `src` and `dst`.
        exact: whether the lab's ports hold every frame for its time on the wire.
    """
    seconds = _SECONDS.get(_test(sample))
    # A rank whose own messages avoid the fullest link may be done before the others.
    if seconds is None or ("over" in sample.labels and sample.labels["statistic"] not in ("max", "max time")):
        return None
    return Least.from_load(lambda held: seconds(_Job(plan, hosts, held), sample.labels), exact=exact)


def payload_bits(sample: Sample) -> float:
    """Bits of payload that a rate counts for the time of mpi_bound()."""
    test = _test(sample)
    count = int(sample.labels["ranks"]) - 1 if test == "mpi_alltoall" else _COUNTED.get(test, 1)
    return 8.0 * int(sample.labels.get("bytes", 0)) * count


def _test(sample: Sample) -> str:
    return sample.metric.rpartition("_")[0]


@dataclass(frozen=True, slots=True)
class _Job:
    """Ranks on hosts of a plan, and whether its ports hold every frame."""

    plan: Plan
    hosts: Sequence[int]
    held: bool

    def message(self, source: int, destination: int, size: int) -> float:
        """Seconds of one message between ranks."""
        return zero_load_latency(self.plan, self.hosts[source], self.hosts[destination], size, "tcp", held=self.held)

    def exchange(self, sent: Mapping[tuple[int, int], float], *, edges_only: bool = False) -> float:
        """Seconds in which all bytes between ranks arrive, which the fullest link decides."""
        between: dict[tuple[int, int], float] = {}
        for (source, destination), size in sent.items():
            ends = self.hosts[source], self.hosts[destination]
            between[ends] = between.get(ends, 0) + size
        bundles = self.plan.bundles
        members = 1 if bundles is None else int(bundles.sizes.max())  # each lets as much go at once
        wires = wires_of(self.plan, transport("tcp", 0, self.plan.scenario.links.mtu))
        at_once = 0 if self.held else members * (1 + LATE_AT_ONCE) * MAX_WIRE_FRAME
        return exchange_bound(wires, self.plan.routes, between, at_once=at_once, edges_only=edges_only)

    def compute_min_latency(self, ranks: int) -> float:
        """Seconds of an empty message between the nearest of the first ranks on different hosts; 0 if all share one."""
        there = set(self.hosts[:ranks])
        pairs = [(a, b) for a in there for b in there if a != b]
        return min((zero_load_latency(self.plan, a, b, 0, "tcp", held=self.held) for a, b in pairs), default=0.0)


_Labels = Mapping[str, str]
_Seconds = Callable[[_Job, _Labels], float]


def _both_ways(job: _Job, labels: _Labels) -> tuple[float, float]:
    one, other, size = int(labels["src"]), int(labels["dst"]), int(labels["bytes"])
    return job.message(one, other, size), job.message(other, one, size)


def _stream(job: _Job, labels: _Labels) -> float:
    """A message's share of a stream. Of a stream of one message the ports hold as much as of that message."""
    one, other, size = int(labels["src"]), int(labels["dst"]), int(labels["bytes"])
    held = _Job(job.plan, job.hosts, held=True)
    whole = held.message(one, other, size)
    return held.exchange({(one, other): size}) * job.message(one, other, size) / whole if whole else 0.0


def _exchange(partners: Callable[[int], Sequence[tuple[int, int]]]) -> _Seconds:
    """Time of an exchange in which every given pair of ranks sends a message, some perhaps several."""

    def seconds(job: _Job, labels: _Labels) -> float:
        size, sent = int(labels["bytes"]), dict[tuple[int, int], float]()
        for pair in partners(int(labels["ranks"])):
            sent[pair] = sent.get(pair, 0) + size
        return job.exchange(sent)

    return seconds


def _alltoall(job: _Job, labels: _Labels) -> float:
    ranks, size = range(int(labels["ranks"])), int(labels["bytes"])
    return job.exchange({(a, b): size for a in ranks for b in ranks}, edges_only=size <= _RELAYED_BYTES)


def _all_receive(job: _Job, labels: _Labels) -> float:
    """Some rank's host has to receive a whole message, and at least one frame has to come all the way."""
    ranks = range(int(labels["ranks"]))
    apart = next(((0, rank) for rank in ranks if job.hosts[rank] != job.hosts[0]), None)
    if apart is None:
        return 0.0
    return max(job.compute_min_latency(len(ranks)), job.exchange({apart: int(labels["bytes"])}, edges_only=True))


_RING: _Seconds = _exchange(lambda ranks: [(rank, (rank + 1) % ranks) for rank in range(ranks)])
_SECONDS: dict[str, _Seconds] = {
    "mpi": lambda job, labels: sum(_both_ways(job, labels)) / 2,
    "mpi_pingping": lambda job, labels: max(_both_ways(job, labels)),
    "mpi_multi_pingping": _exchange(lambda ranks: [(rank, rank ^ 1) for rank in range(ranks - ranks % 2)]),
    "mpi_sendrecv": _RING,
    "mpi_exchange": _exchange(
        lambda ranks: [(rank, (rank + step) % ranks) for rank in range(ranks) for step in (1, -1)]
    ),
    "mpi_stream": _stream,
    "mpi_bidirectional": _stream,
    "mpi_alltoall": _alltoall,
    "mpi_allreduce": _all_receive,
    "mpi_bcast": _all_receive,
    "mpi_barrier": lambda job, labels: job.compute_min_latency(int(labels["ranks"])),
}
# Messages that a rate counts for one of these, where it is more than one.
_COUNTED = {"mpi_sendrecv": 2, "mpi_exchange": 4, "mpi_bidirectional": 2}
