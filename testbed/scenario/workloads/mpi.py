"""MPI jobs: how one is started, each rank on its host, and whether it has succeeded. Pure: this runs nothing.

A job's ranks talk TCP over their hosts' interfaces and nothing else. Left alone, MPICH would notice that all
ranks run on one machine and use shared memory instead, with figures that have nothing to do with the fabric.
Three things prevent that: the settings of `launch`, a `/dev/shm` of its own for each rank, and
`ParsedJob.fabric_bytes`, which the caller must compare with what the hosts' interfaces have sent. Ranks of one
host talk TCP as well, but over the host's loopback, so what they send each other is no part of `fabric_bytes`.

`mpiexec` itself stays in the laboratory's own network namespace and needs no network there: it reaches the
ranks through pipes, so its control traffic never touches the emulated network. It does look up the machine's
host name, and goes on when there is no answer. Over several machines see `mpi_machines`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from testbed.base.trust import JobFolder
from testbed.scenario.workloads import mpi_hpl, mpi_imb, mpi_json, mpi_osu, npb
from testbed.scenario.workloads.mpi_machines import PORT, Proxy, starting
from testbed.scenario.workloads.mpi_output import JobOutputError, ParsedJob, shorten_line
from testbed.scenario.workloads.mpi_placement import Ranks

# Entering a host keeps environment and open files; paths, also that of the working directory, are then those of the
# host's mount namespace. A rank's own /dev/shm frees what a killed job leaves there and holds nothing that two ranks
# could share.
_WRAPPER = """\
#!/bin/sh
# Runs one rank of an MPI job in its host: its number and the id of a process there.
if [ -n "$LD_PRELOAD" ] && [ ! -r "$LD_PRELOAD" ]; then
    echo "The library $LD_PRELOAD, which MPI ranks are to load, cannot be read." >&2
    exit 127
fi
group=
case "$PMI_RANK" in
{places}
*)
    echo "There is no host for rank $PMI_RANK." >&2
    exit 127
    ;;
esac
if [ -n "$group" ] && ! echo $$ >"$group"; then
    echo "Rank $PMI_RANK cannot join its host's share of the processors." >&2
    exit 127
fi
export TESTBED_HOST
# The tracing library brings MPI's own with it, which only the program itself needs.
exec nsenter --target "$process" --net --mount -- unshare --mount -- \\
    sh -c 'mount -t tmpfs tmpfs /dev/shm && cd "$0" && exec {guard}{trace}"$@"' "$(pwd)" "$@"
"""
# ms that a waiting rank sleeps at most, where links are no slower than usual, and ever; see mpi_jobs/shim.
_POLL_MS, _MOST_POLL_MS = 5, 1000
# Linux takes no longer argument; with what `mpiexec` adds.
_MAX_ARGUMENT = 120_000

# A PID namespace, with which everything in it ends.
_TOGETHER = ("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--")
# What mpiexec prints of a rank that a signal has ended, and unshare of mpiexec.
_RANK_DIED = re.compile(r"APPLICATION TERMINATED WITH THE EXIT STRING: (.+?) \(signal (\d+)\)")
_STARTER_DIED = "unshare: sigprocmask unblock failed"

Output = Literal["json", "free", "imb", "osu", "hpl", "npb"]
Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class MpiJob:
    """A job, as its `job.yaml` describes it."""

    name: str  # what it is called
    binary: str  # absolute path of the program, visible in every host
    success: str  # regular expression that must match somewhere in the output; `^` and `$` match at lines
    args: tuple[str, ...] = ()  # arguments of the program
    time_limit: float = 60.0  # laboratory seconds after which the job is to be ended
    # form of the output: `json` as mpi_json reads it, `imb`, `osu`, `hpl`, `npb`, or `free` for anything else
    output: Output = "json"
    fabric_bytes: int = 0  # for `free` output, the least payload bytes that a run must move between hosts
    interpreter: str = ""  # absolute path of the program that runs `binary`; empty where it runs by itself
    # whether the program takes the pairs of a traffic pattern as `--pairs 0-1,…`
    pattern: Literal["none", "optional", "required"] = "none"
    folder: str = ""  # absolute path of its folder
    trace: bool = False  # whether it is always traced, since its output does not tell what it has moved
    make: tuple[str, ...] = ()  # further arguments of its make, such as a target; none = its default
    # of a job that a scenario names by a path what it is built from, as the caller trusts it; `folder` is its copy
    sources: JobFolder | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a job.

    Start `argv` as root in the laboratory's own namespaces, with standard input empty. To end it early, send
    SIGKILL to the started process: it is the parent of a PID namespace, so everything that the job has
    started dies with it. (Ranks lead sessions of their own, so a signal to the process group does not reach
    them, and they may ignore others.)
    """

    argv: tuple[str, ...]  # the command
    env: Mapping[str, str]  # its whole environment; nothing of the caller's own belongs in it
    files: Mapping[str, str]  # name → text of what is to be stored in the `folder` given to `launch`, `.sh` executable
    port: int | None = None  # TCP port at which `argv` waits for proxies; None where there are none
    proxies: tuple[Proxy, ...] = ()  # to be started likewise, each on the machine of its ranks


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of output."""

    parse: Callable[[str, Ranks], ParsedJob]  # how it is read
    # what its program's arguments must keep to
    problems: Callable[[Sequence[str], int], list[str]] = lambda args, ranks: []
    data_file: Callable[[Sequence[str], int], str] | None = None  # a file made from them
    failure: Callable[[str], str] = lambda text: ""  # what the output of a program that failed says of it


_FORMS: Mapping[str, _Form] = {
    "json": _Form(lambda text, ranks: mpi_json.parse(text)),
    "imb": _Form(mpi_imb.parse, mpi_imb.problems),
    "osu": _Form(mpi_osu.parse),
    "hpl": _Form(mpi_hpl.parse, mpi_hpl.problems, mpi_hpl.data_file),
    "npb": _Form(npb.parse, failure=npb.failure),
}
_DATA_FILE = "data.txt"
TRACE_FILE = "trace.json"


def argument_problems(job: MpiJob, ranks: int, pairs: Pairs | None) -> list[tuple[str, str]]:
    """What is wrong with a job's arguments.

    `pairs`: (sender, receiver) ranks of a pattern, or None where the scenario names none.

    Returns:
        Key of the workload, and the sentence that says what is wrong with it.
    """
    found = []
    if job.pattern == "required" and pairs is None:
        found.append(("pattern", f"is required: {job.name} needs to know who sends to whom, as in pattern: neighbour"))
    if job.pattern == "none" and pairs is not None:
        found.append(("pattern", f"{job.name} takes no pattern; leave it out"))
    if ":" in job.args:
        found.append(("args", 'has ":" as an argument, which mpiexec takes for its own'))
    longest = max(map(len, [*job.args, _pairs_text(pairs or ())]), default=0)
    if longest > _MAX_ARGUMENT:
        found.append(
            ("pattern" if pairs else "args", f"makes an argument of {longest} characters, more than Linux takes")
        )
    form = _FORMS.get(job.output)
    return found + [("args", sentence) for sentence in (form.problems(job.args, ranks) if form else [])]


def launch(
    job: MpiJob,
    ranks: Ranks,
    *,
    mpiexec: str,
    libraries: str,
    shim: str | None,
    folder: str,
    interface: str,
    host_pids: Sequence[int],
    shared: str = "",
    guard: Sequence[str] = (),
    groups: Sequence[str] = (),
    pairs: Pairs | None = None,
    tracer: str | None = None,
    machines: Sequence[int] = (),
    slowness: float = 1.0,
) -> Launch:
    """Describe how to start a job.

    Args:
        job: what to start; argument_problems has found nothing.
        ranks: where its ranks run.
        mpiexec: absolute path of MPICH's `mpiexec`, with its proxy beside it.
        libraries: absolute path of the folder of MPICH's libraries, for programs that do not name it themselves.
        shim: absolute path of the library that lets waiting ranks sleep (`mpi_jobs/shim`), or None to let
            them spin.
        folder: absolute path of the folder in which the caller stores `Launch.files`.
        shared: name of a folder in it that ranks can write to; empty = itself.
        guard: command that becomes the program of a rank, with no more rights than that shall have.
        host_pids: for each host, the id of a process that runs in its namespaces.
        groups: for each host, the file by which its ranks join its share of the processors; empty where hosts have
            none.
        pairs: (sender, receiver) ranks of the traffic pattern, or None.
        tracer: absolute path of the library that records what ranks send each other (`mpi_jobs/trace`), which then
            is in the file TRACE_FILE of `folder`; or None.
        interface: name, the same in every host, of the interface that carries the ranks' messages.
        machines: for each host, the number of its machine; empty where there is one.
        slowness: how many times slower than usual the lab's links are. Waiting ranks look around as many times less
            often; a message ends their sleep at once.

    Returns:
        Command, environment and files.

    Raises:
        ValueError: a rank on a host that is not there, or a path that the dynamic linker cannot take.
    """
    if max(ranks.hosts) >= len(host_pids):
        raise ValueError(f"MPI job {job.name} has a rank on host {max(ranks.hosts)}, but hosts are {len(host_pids)}.")
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/",
        "TESTBED_JOB": job.folder,
        "LC_ALL": "C",
        "LD_LIBRARY_PATH": libraries,
        "OPENBLAS_NUM_THREADS": "1",  # where BLAS is OpenBLAS, each rank would start a thread a core
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "FI_PROVIDER": "tcp",
        "FI_TCP_IFACE": interface,
        "MPIR_CVAR_NOLOCAL": "1",
    }
    for library in (shim, tracer):
        if library is not None and re.search(r"[\s:]", library):
            raise ValueError(
                f'The library "{library}" cannot be loaded into MPI ranks, because its path has a space '
                "or a colon: copy it to a path without."
            )
    if shim is not None:
        env["LD_PRELOAD"] = shim
        env["TESTBED_POLL_MS"] = f"{min(_MOST_POLL_MS, max(1.0, slowness) * _POLL_MS):.0f}"
    if tracer is not None:
        env["TESTBED_TRACE"] = str(PurePosixPath(folder, shared, TRACE_FILE))
        env["TESTBED_TRACER"] = tracer
    places = "\n".join(
        f"{rank}) TESTBED_HOST={host} process={int(host_pids[host])}{f' group={groups[host]}' if groups else ''} ;;"
        for rank, host in enumerate(ranks.hosts)
    )
    trace = 'env LD_PRELOAD="$LD_PRELOAD:$TESTBED_TRACER" ' if tracer is not None else ""
    guarding = "".join(f"{word} " for word in guard)
    files = {"rank.sh": _WRAPPER.format(places=places, guard=guarding, trace=trace)}
    args = job.args
    form = _FORMS.get(job.output)
    if form is not None and form.data_file is not None:
        data = PurePosixPath(shared, _DATA_FILE)
        files[str(data)] = form.data_file(args, len(ranks))
        args = (f"{folder}/{data}",)
    if pairs is not None:
        args = ("--pairs", _pairs_text(pairs), *args)
    options: tuple[str, ...] = ("-launcher", "fork", "-rmk", "user", "-hosts", "127.0.0.1", "-localhost", "127.0.0.1")
    proxies: tuple[Proxy, ...] = ()
    if machines:
        env["MPIEXEC_PORT_RANGE"] = f"{PORT}:{PORT}"
        options, proxies = starting(mpiexec, [machines[host] for host in ranks.hosts])
        proxies = tuple(replace(proxy, argv=(*_TOGETHER, *proxy.argv)) for proxy in proxies)
    argv = (
        *_TOGETHER,
        *(mpiexec, *options),
        *("-n", str(len(ranks)), f"{folder}/rank.sh"),
        *((job.interpreter, job.binary) if job.interpreter else (job.binary,)),
        *args,
    )
    return Launch(argv, env, files, PORT if proxies else None, proxies)


def check(job: MpiJob, text: str, ranks: Ranks) -> ParsedJob:
    """Decide whether a job has succeeded, and read its figures.

    Returns:
        The figures; of a job with free output only that it succeeded, which counts as verified.

    Raises:
        JobOutputError: the success pattern does not match, the output cannot be read, or it says itself that its data
            is not verified.
    """
    if not re.search(job.success, text, re.MULTILINE):
        last = text.rstrip().rpartition("\n")[2]
        ending = f'it ends with "{shorten_line(last)}"' if last else "it is empty"
        raise JobOutputError(
            f'The output of MPI job {job.name} does not match its success pattern "{job.success}": {ending}.'
        )
    if job.output == "free":
        return ParsedJob((), job.fabric_bytes, True)
    try:
        parsed = _FORMS[job.output].parse(text, ranks)
    except JobOutputError:
        raise
    except (ValueError, LookupError, ArithmeticError, RecursionError) as error:
        # Whatever a program has printed, it is no fault of the one that reads it.
        raise JobOutputError(f"The output of MPI job {job.name} is not of the form {job.output}: {error!r}.") from error
    if job.output == "json" and not parsed.verified:
        raise JobOutputError(f"MPI job {job.name} says that the data it received is not verified.")
    return parsed


def failure(job: MpiJob, text: str) -> str:
    """What the output of a job that ended with a failure says of it; empty where nothing that is known."""
    if _STARTER_DIED in text:
        return "mpiexec was killed, as by SIGKILL, and with it all ranks"
    killed = _RANK_DIED.search(text)
    if killed and not (job.output in _FORMS and _FORMS[job.output].failure(text)):
        return f"a rank was killed by signal {killed[2]} ({killed[1]})"
    return _FORMS[job.output].failure(text) if job.output in _FORMS else ""


def _pairs_text(pairs: Pairs) -> str:
    return ",".join(f"{source}-{destination}" for source, destination in pairs)
