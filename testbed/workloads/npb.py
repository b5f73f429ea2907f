"""The NAS Parallel Benchmarks as MPI jobs: which numbers of ranks they run on, and where these are placed. Pure."""

from __future__ import annotations

import math

from testbed.errors import Problem
from testbed.workloads.spec import Kernel, Mpi, Npb

# SP and BT share out a cube by diagonals of a square of ranks; EP needs no neighbours; all others halve.
_SQUARES = ("SP", "BT")
_ANY = ("EP",)
TIME_LIMIT = 300.0


def is_legal(kernel: Kernel, ranks: int) -> bool:
    """Whether a kernel runs on a number of ranks."""
    if kernel in _SQUARES:
        return math.isqrt(ranks) ** 2 == ranks
    return kernel in _ANY or ranks & (ranks - 1) == 0


def most_ranks(kernel: Kernel, hosts: int) -> int:
    """The largest number of ranks that a kernel runs on with at most one on each host; hosts are one or more."""
    return max(ranks for ranks in range(1, hosts + 1) if is_legal(kernel, ranks))


def problems(spec: Npb) -> list[Problem]:
    """What is wrong with the number of ranks; places are keys of the workload."""
    if isinstance(spec.placement, tuple) and not is_legal(spec.kernel, len(spec.placement)):
        sentence = f"lists the hosts of {len(spec.placement)} ranks, but {spec.kernel} needs {_rule(spec.kernel)}"
        return [Problem("placement", sentence)]
    if spec.ranks is not None and not is_legal(spec.kernel, spec.ranks):
        return [Problem("ranks", f"should be {_rule(spec.kernel)} for {spec.kernel}, not {spec.ranks}")]
    return []


def host_problems(spec: Npb, hosts: int) -> list[Problem]:
    """What is wrong where the number of ranks is to follow from that of the hosts; places as in problems."""
    if spec.ranks is not None or isinstance(spec.placement, tuple) or most_ranks(spec.kernel, hosts) > 1:
        return []
    sentence = f"{spec.kernel} needs {_rule(spec.kernel)}, more than the {hosts} hosts; give ranks: 4 to share hosts"
    return [Problem("ranks", sentence)]


def as_mpi(spec: Npb, hosts: int) -> Mpi:
    """The MPI job that a kernel is, for a number of hosts with which there is no problem."""
    ranks = spec.ranks
    if ranks is None and not isinstance(spec.placement, tuple):
        ranks = most_ranks(spec.kernel, hosts)
    return Mpi(
        f"npb {spec.kernel}", args=(spec.class_,), time_limit=spec.time_limit, ranks=ranks, placement=spec.placement,
        trace=spec.trace,
    )  # fmt: skip


def _rule(kernel: Kernel) -> str:
    return "a square (4, 9, 16, 25, …)" if kernel in _SQUARES else "a power of two (2, 4, 8, 16, …)"
