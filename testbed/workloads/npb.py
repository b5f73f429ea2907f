"""The NAS Parallel Benchmarks as MPI jobs: which numbers of ranks they run on, and where these are placed. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from testbed.errors import Problem
from testbed.model import Topology
from testbed.workloads import mpi_placement
from testbed.workloads.spec import Kernel, Mpi, Npb, ProblemClass

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
