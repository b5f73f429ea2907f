"""MPI jobs: how one is started with one rank a host, and what its output says. Pure: this runs nothing.

A job's ranks talk TCP over their hosts' interfaces and nothing else. Left alone, MPICH would notice that all
ranks run on one machine and use shared memory instead, with figures that have nothing to do with the fabric.
Three things prevent that: the settings of `launch`, a `/dev/shm` of its own for each rank, and
`ParsedJob.fabric_bytes`, which the caller must compare with what the hosts' interfaces have sent.

`mpiexec` itself stays in the laboratory's own network namespace and needs no network there: it reaches the
ranks through pipes, so its control traffic never touches the emulated network. It does look up the machine's
host name, and goes on when there is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from testbed.model import Sample

# Each rank becomes a process of the host of its number. Entering a host keeps environment, working directory
# and open files; paths are then those of the host's mount namespace. A rank's own /dev/shm frees what a
# killed job leaves there and holds nothing that two ranks could share.
_WRAPPER = """\
#!/bin/sh
# Runs one rank of an MPI job in the host of its number. Each word is the process id of a host.
if [ -n "$LD_PRELOAD" ] && [ ! -r "$LD_PRELOAD" ]; then
    echo "The library $LD_PRELOAD, which MPI ranks are to load, cannot be read." >&2
    exit 127
fi
number=0
for host in {pids}; do
    if [ "$number" -eq "$PMI_RANK" ]; then
        exec mnexec -a "$host" unshare --mount -- \\
            sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' rank "$@"
    fi
    number=$((number + 1))
done
echo "There is no host for rank $PMI_RANK." >&2
exit 127
"""


class JobOutputError(ValueError):
    """The output of a job is not what it should be; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class MpiJob:
    """A job of `mpi_jobs/`, as its `job.yaml` describes it.

    Attributes:
        name: name of the job's folder.
        binary: absolute path of the program, visible in every host.
        success: regular expression that must match somewhere in the output; `^` and `$` match at lines.
        args: arguments of the program.
        time_limit: laboratory seconds after which the job is to be ended.
        output: `json` for the lines that `parse` understands, `free` for anything else.
        fabric_bytes: for `free` output, the least payload bytes that a run must move between hosts.
    """

    name: str
    binary: str
    success: str
    args: tuple[str, ...] = ()
    time_limit: float = 60.0
    output: Literal["json", "free"] = "json"
    fabric_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a job.

    Start `argv` as root in the laboratory's own namespaces, with standard input empty. To end it early, send
    SIGKILL to the started process: it is the parent of a PID namespace, so everything that the job has
    started dies with it. (Ranks lead sessions of their own, so a signal to the process group does not reach
    them, and they may ignore others.)

    Attributes:
        argv: the command.
        env: its whole environment; nothing of the caller's own belongs in it.
        wrapper: text of the shell script to be stored, executable, at the `wrapper_path` given to `launch`.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    wrapper: str


@dataclass(frozen=True, slots=True)
class ParsedJob:
    """What the output of a job says.

    Attributes:
        samples: the measured figures, in SI base units and laboratory time; see `parse`.
        fabric_bytes: least payload bytes that the job has moved between hosts.
        verified: the job has checked the data that it received and found it right.
    """

    samples: tuple[Sample, ...] = field(default=())
    fabric_bytes: int = 0
    verified: bool = False


def launch(
    job: MpiJob,
    ranks: int,
    *,
    mpiexec: str,
    shim: str | None,
    wrapper_path: str,
    host_pids: Sequence[int],
    interface: str = "eth0",
) -> Launch:
    """Describe how to start a job with rank i on host i.

    Args:
        job: what to start.
        ranks: number of ranks.
        mpiexec: absolute path of MPICH's `mpiexec`, with its proxy beside it.
        shim: absolute path of the library that lets waiting ranks sleep (`mpi_jobs/shim`), or None to let
            them spin.
        wrapper_path: absolute path at which the caller stores `Launch.wrapper`.
        host_pids: for each host, in the order of the ranks, the id of a process that runs in its namespaces.
        interface: name, the same in every host, of the interface that carries the ranks' messages.

    Returns:
        Command, environment and wrapper script.

    Raises:
        ValueError: fewer than one rank, more ranks than hosts, a lone colon as an argument, or a shim path
            that the dynamic linker cannot take.
    """
    if ranks < 1:
        raise ValueError(f"MPI job {job.name} needs at least one rank, not {ranks}.")
    if ranks > len(host_pids):
        raise ValueError(f"MPI job {job.name} needs {ranks} hosts, one a rank, but there are {len(host_pids)}.")
    if ":" in job.args:
        raise ValueError(f'MPI job {job.name} has ":" as an argument, which mpiexec takes for its own.')
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/",
        "LC_ALL": "C",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": interface,
        "MPIR_CVAR_NOLOCAL": "1",
    }
    if shim is not None:
        if re.search(r"[\s:]", shim):
            raise ValueError(
                f'The library "{shim}" cannot be loaded into MPI ranks, because its path has a space '
                "or a colon: copy it to a path without."
            )
        env["LD_PRELOAD"] = shim
    argv = (
        *("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--"),
        *(mpiexec, "-launcher", "fork", "-rmk", "user", "-hosts", "127.0.0.1", "-localhost", "127.0.0.1"),
        *("-n", str(ranks), wrapper_path, job.binary, *job.args),
    )
    pids = " ".join(str(int(pid)) for pid in host_pids[:ranks])
    return Launch(argv, env, _WRAPPER.format(pids=pids))


def check(job: MpiJob, text: str) -> ParsedJob:
    """Decide whether a job has succeeded, and read its figures.

    Args:
        job: the job that has run.
        text: its standard output.

    Returns:
        The figures; of a job with free output only that it succeeded, which counts as verified.

    Raises:
        JobOutputError: the success pattern does not match, `parse` cannot read the output, or the output says
            itself that its data is not verified.
    """
    if not re.search(job.success, text, re.MULTILINE):
        last = text.rstrip().rpartition("\n")[2]
        ending = f'it ends with "{_short(last)}"' if last else "it is empty"
        raise JobOutputError(
            f'The output of MPI job {job.name} does not match its success pattern "{job.success}": {ending}.'
        )
    if job.output == "free":
        return ParsedJob((), job.fabric_bytes, True)
    parsed = parse(text)
    if not parsed.verified:
        raise JobOutputError(f"MPI job {job.name} says that the data it received is not verified.")
    return parsed


def parse(text: str) -> ParsedJob:
    """Read the JSON lines that `fabric_bench` prints, as may other jobs.

    Each test gives these samples, with `statistic` min, median or max over its repeats as a label; rates
    follow from the median time:

    - pingpong: `mpi_latency` (s), half the round trip, and `mpi_bandwidth` (bit/s); labels src and dst, which
      are rank numbers, and bytes
    - alltoall: `mpi_alltoall_time` (s) and `mpi_alltoall_bandwidth` (bit/s), what each host sends to all
      others; labels ranks and bytes
    - barrier: `mpi_barrier_time` (s); label ranks

    Args:
        text: the whole standard output of the job.

    Returns:
        The samples in the order of the output, the bytes moved, and whether they were verified.

    Raises:
        JobOutputError: a line is not one of the expected objects, or the end line is missing, comes too
            early, or contradicts the lines before it.
    """
    samples: list[Sample] = []
    fabric_bytes = 0
    end: _Line | None = None
    for number, raw in enumerate(text.splitlines(), start=1):
        if not raw.strip():
            continue
        if end is not None:
            raise JobOutputError(f'Line {number} of the job\'s output comes after its end line: "{_short(raw)}".')
        line = _Line(number, raw)
        test = line.object.get("test")
        if test == "end":
            end = line
        elif isinstance(test, str) and test in _READERS:
            samples += _READERS[test](line)
            fabric_bytes += line.count("fabric_bytes")
        else:
            raise line.error("names no test that is known")
    if end is None:
        raise JobOutputError("The job's output has no end line, so the job did not finish.")
    if end.count("fabric_bytes") != fabric_bytes:
        raise end.error(f"does not give the {fabric_bytes} bytes that its tests add up to")
    verified = end.object.get("verified")
    if not isinstance(verified, bool):
        raise end.error('does not say "verified" true or false')
    return ParsedJob(tuple(samples), fabric_bytes, verified)


class _Line:
    """One object of the output, whose values are asked for by name and type."""

    def __init__(self, number: int, raw: str) -> None:
        self.number = number
        self.raw = raw
        try:
            self.object: dict[str, Any] = json.loads(raw)
        except (ValueError, RecursionError):
            raise self.error("is not a JSON object") from None
        if not isinstance(self.object, dict):
            raise self.error("is not a JSON object")

    def error(self, fault: str) -> JobOutputError:
        return JobOutputError(f'Line {self.number} of the job\'s output {fault}: "{_short(self.raw)}".')

    def count(self, key: str) -> int:
        value = self.object.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
            raise self.error(f'has no whole number "{key}"')
        return value

    def seconds(self, statistic: str) -> float:
        value = self.object.get(f"seconds_{statistic}")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
            raise self.error(f'has no time "seconds_{statistic}"')
        return float(value)

    def samples(self, time: str, rate: str | None, bits: int, labels: Mapping[str, str]) -> list[Sample]:
        """Return the three times under one metric and, where there is one, the rate under the other."""
        times = {statistic: self.seconds(statistic) for statistic in ("min", "median", "max")}
        samples = [Sample(time, value, "s", {**labels, "statistic": key}) for key, value in times.items()]
        if rate is not None and bits > 0 and times["median"] > 0:
            samples.append(Sample(rate, bits / times["median"], "bit/s", {**labels, "statistic": "median"}))
        return samples


def _pingpong(line: _Line) -> list[Sample]:
    size = line.count("bytes")
    labels = {"src": str(line.count("from")), "dst": str(line.count("to")), "bytes": str(size)}
    return line.samples("mpi_latency", "mpi_bandwidth", 8 * size, labels)


def _alltoall(line: _Line) -> list[Sample]:
    size, ranks = line.count("bytes"), line.count("ranks")
    labels = {"ranks": str(ranks), "bytes": str(size)}
    return line.samples("mpi_alltoall_time", "mpi_alltoall_bandwidth", 8 * size * (ranks - 1), labels)


def _barrier(line: _Line) -> list[Sample]:
    return line.samples("mpi_barrier_time", None, 0, {"ranks": str(line.count("ranks"))})


_READERS = {"pingpong": _pingpong, "alltoall": _alltoall, "barrier": _barrier}


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
