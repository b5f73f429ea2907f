"""An MPI job whose hosts are on several machines: how mpiexec and its proxies are started there. Pure, as `mpi`.

Nothing logs in anywhere. `mpiexec` on the first machine waits at a port, and with its launcher `manual` it prints what
somebody is to start: a proxy for every run of successive ranks on one machine, which calls at that port and starts its
ranks. What it would print is known, so the proxies are processes of the load like any other. They call by addresses
that exist between the parts of the fabric only, and not in its hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import groupby
from pathlib import PurePosixPath

# Where mpiexec waits in the first machine's part, in which nothing else does.
PORT = 7070
_FIRST = IPv4Address("169.254.64.1")  # link-local: no network between machines has it
_PRINTED = "HYDRA_LAUNCH"


@dataclass(frozen=True, slots=True)
class Proxy:
    """What starts successive ranks on one machine."""

    rank: int  # the first one
    argv: tuple[str, ...]


def control_address(machine: int) -> str:
    """IP address of a machine's part, by which mpiexec and its proxies reach each other; they count from 0."""
    return str(_FIRST + machine)


def starting(mpiexec: str, machines: Sequence[int]) -> tuple[tuple[str, ...], tuple[Proxy, ...]]:
    """Arguments of mpiexec, and its proxies.

    Args:
        mpiexec: absolute path, the same on all machines, with its proxy beside it.
        machines: number of the machine of each rank.
    """
    runs = [(machine, len(list(ranks))) for machine, ranks in groupby(machines)]
    places = ",".join(f"{control_address(machine)}:{count}" for machine, count in runs)
    program = str(PurePosixPath(mpiexec).parent / "hydra_pmi_proxy")
    first, proxies = 0, []
    for number, (_, count) in enumerate(runs):
        proxies.append(Proxy(first, (
            program, "--control-port", f"{control_address(0)}:{PORT}", "--rmk", "user", "--launcher", "manual",
            "--demux", "poll", "--pgid", "0", "--retries", "10", "--usize", "-1", "--pmi-port", "0",
            "--gpus-per-proc", "-2", "--gpu-subdevs-per-proc", "-2", "--proxy-id", str(number),
        )))  # fmt: skip
        first += count
    options = ("-launcher", "manual", "-rmk", "user", "-hosts", places, "-localhost", control_address(0))
    return options, tuple(proxies)


def said_by_ranks(text: str) -> str:
    """What mpiexec printed, without what it says of its proxies."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_PRINTED))
