"""Simulations in other processes and on other machines, by Dask."""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from testbed.base.errors import CapabilityError, InputError, Problem, WorkloadError, argument
from testbed.base.files import code_digest
from testbed.base.resources import install_extra
from testbed.engines.local_machine.batch_queues import HTTP, QUEUES, Queue, submit_workers
from testbed.engines.local_machine.local_workers import LocalWorkers

_CONNECT_LIMIT = 10  # s
_FORMS = "local, local:4 (processes), slurm:8 (jobs), tcp://scheduler:8786 or tls://scheduler:8786"
_MOST = 1024  # processes or jobs
_NO_WORKERS = "120s"  # until what waits for a worker is given up


@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers that run functions of the testbed."""

    client: Any  # dask's
    slots: int  # functions they run at a time
    lab_slots: int = 0  # labs they run at a time: what their resources named lab add up to

    def share(self, value: object) -> object:
        """Give every worker a value, once; what this returns stands for it in submit().

        On one of them alone it would be lost with that one, and all that needs it cancelled.
        """
        return self.client.scatter(value, broadcast=True)

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Run a function of this package on some worker; once more on another one if that dies meanwhile."""
        return cast("Future[Any]", self.client.submit(function, *arguments, pure=False))

    def submit_lab(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Likewise one that builds a lab, on a worker that has said that it may."""
        return cast("Future[Any]", self.client.submit(function, *arguments, pure=False, resources={"lab": 1}))


def worker_code() -> str:
    """What a worker says its code is."""
    return code_digest()


@contextmanager
def open_cluster(address: str, progress: Callable[[str], None], *, insecure: bool = False) -> Iterator[Cluster]:
    """Start workers on this machine, or find those of a scheduler; workers that were started end with this.

    `address`: `local` (a worker process a processor), `local:N`, a queue and a number of jobs such as `slurm:8`, or a
    Dask scheduler's, with TLS by Dask's own configuration; `insecure`: take a scheduler that others can reach without
    TLS, too.

    Raises:
        InputError: no such address, nobody there, or whoever is there is open to others.
        CapabilityError: Dask is not installed, or workers have other code.
    """
    where = _parse_address(address)
    try:
        import distributed  # noqa: PLC0415 - takes half a second
    except ImportError as error:
        raise CapabilityError(
            f"{argument('cluster')} needs Dask, which is not installed: {error}; {install_extra('cluster')}; or leave "
            "it out: runs are then threads of this program"
        ) from None
    # Dask tells of every connection that ends, also those that are meant to; what matters is told in sentences.
    for name in ("distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    if isinstance(where, int):
        progress(f"starting {where} worker process{'es' if where > 1 else ''}")
        with _local(where) as client, _explain_lost_tasks("this machine"):
            yield Cluster(client, where)
        return
    if isinstance(where, Queue):
        progress(f"submitting {where.jobs} jobs to {where.kind}, and waiting for the first of them")
        with (
            submit_workers(where, insecure=insecure) as jobs,
            distributed.Client(jobs) as client,  # type: ignore[no-untyped-call]
            _explain_lost_tasks(address),
        ):
            client.wait_for_workers(1)
            _same_code(client, address)
            slots = where.jobs * max(client.nthreads().values())
            progress(f"{sum(client.nthreads().values())} of {slots} threads of {address} are there")
            yield Cluster(client, slots, _lab_slots(client))
        return
    if where.startswith("tls:"):
        _require_certificates()
    try:
        found = distributed.Client(where, timeout=_CONNECT_LIMIT)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        sentence = (
            f"no scheduler answers at {where} within {_CONNECT_LIMIT} s ({_first_line(error)}); start one with "
            "`dask scheduler --host ADDRESS`, and workers with `dask worker ADDRESS:8786 --nthreads 1`"
        )
        raise InputError([Problem(argument("cluster"), sentence)]) from None
    except MemoryError:  # Dask takes the first bytes of an answer for its length, such as "HTTP/1.1"
        sentence = f"what answers at {where} is no Dask scheduler; name the address that `dask scheduler` prints"
        raise InputError([Problem(argument("cluster"), sentence)]) from None
    with found as client:
        listens = client.scheduler_info(n_workers=-1)["address"]
        if not insecure and (_open(where) or _open(listens)):
            sentence = (
                f"the scheduler listens at {listens} without TLS, so whoever reaches it runs code on its workers; use "
                "tls:// with certificates in Dask's configuration (distributed.comm.tls), a scheduler on 127.0.0.1, "
                f"or {argument('insecure', value=True)} on a network of your own"
            )
            raise InputError([Problem(argument("cluster"), sentence)])
        _same_code(client, where)
        slots = sum(client.nthreads().values())
        progress(f"{slots} threads of {len(client.nthreads())} workers at {where}; dashboard {client.dashboard_link}")
        with _explain_lost_tasks(where):
            yield Cluster(client, slots, _lab_slots(client))


@contextmanager
def _local(count: int) -> Iterator[Any]:
    """A client of a scheduler in this program and of so many workers on this machine.

    Whoever reaches a scheduler runs code, and other users of the machine reach 127.0.0.1: so there are certificates.

    Raises:
        CapabilityError: the workers cannot be started.
    """
    import dask  # noqa: PLC0415 - as above
    import distributed  # noqa: PLC0415 - as above
    from distributed.worker_memory import parse_memory_limit  # noqa: PLC0415 - as above

    try:
        security = distributed.Security.temporary()  # type: ignore[no-untyped-call]
    except ImportError as error:
        raise CapabilityError(
            f"{argument('cluster')} local makes certificates: {error}; {install_extra('cluster')}"
        ) from None
    certificate = {
        "ca-file": security.tls_ca_file, "cert": security.tls_worker_cert, "key": security.tls_worker_key,
    }  # fmt: skip
    memory = parse_memory_limit("auto", 1, count, logger=logging.getLogger("distributed"))
    workers = LocalWorkers(count, certificate, memory or 0)
    settings = {
        "temporary-directory": str(workers.folder),
        "distributed.scheduler.no-workers-timeout": _NO_WORKERS,
        "distributed.scheduler.http.routes": [],  # pages would be there for all users of the machine
    }
    try:
        with dask.config.set(settings):
            cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=0, threads_per_worker=1, host="127.0.0.1", protocol="tls://", security=security,
                dashboard_address=HTTP, scheduler_kwargs={"dashboard": False}, silence_logs=logging.CRITICAL,
            )  # fmt: skip
        with cluster, distributed.Client(cluster) as client:  # type: ignore[no-untyped-call]
            try:
                workers.start(cluster.scheduler_address)
                workers.await_all(lambda: len(client.nthreads()))
                yield client
            finally:
                workers.end()
    finally:
        workers.remove()


def _require_certificates() -> None:
    """Raise InputError where Dask's configuration has no certificates, or none that can be used."""
    from distributed import Security  # noqa: PLC0415 - as above

    try:
        made = Security().get_connection_args("client")["ssl_context"]  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        why = f"those of Dask's configuration cannot be used: {_first_line(error)}"
    else:
        if made is not None:
            return
        why = "Dask's configuration names none"
    sentence = (
        f"tls:// takes certificates, and {why}; write distributed.comm.tls.ca-file, .client.cert and .client.key into "
        "~/.config/dask/distributed.yaml"
    )
    raise InputError([Problem(argument("cluster"), sentence)])


def _lab_slots(client: Any) -> int:
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return int(sum(one["resources"].get("lab", 0) for one in workers))


@contextmanager
def _explain_lost_tasks(where: str) -> Iterator[None]:
    """Say what tasks that ended without a result mean."""
    from distributed import KilledWorker  # noqa: PLC0415 - as above
    from distributed.comm.core import CommClosedError  # noqa: PLC0415 - as above
    from distributed.scheduler import NoWorkerError  # noqa: PLC0415 - as above

    try:
        yield
    except KilledWorker as error:
        raise WorkloadError(
            f"a run was lost with every worker that tried it, the last one {error.last_worker.address}; see what "
            "ends them there (memory?)"
        ) from None
    except NoWorkerError:
        raise WorkloadError(f"all worker processes have ended, and none has come up for {_NO_WORKERS}") from None
    except (CancelledError, CommClosedError):
        raise WorkloadError(f"the scheduler at {where} went away; start it and its workers again") from None


def _parse_address(address: str) -> int | str | Queue:
    """A number of processes, a queue, or a scheduler's address.

    Raises:
        InputError: neither.
    """
    word, _, number = address.partition(":")
    if word == "local":
        if not number and ":" not in address:
            return len(os.sched_getaffinity(0))
        return _number(word, number, "processes")
    if word in QUEUES:
        return Queue(word, _number(word, number, "jobs"))
    try:
        parts = urlsplit(address)
        whole = parts.scheme in {"tcp", "tls"} and parts.hostname and parts.port and not parts.path.strip("/")
    except ValueError:
        whole = False
    if not whole:
        raise InputError([Problem(argument("cluster"), f"should be {_FORMS}, not {address!r}")])
    return address


def _number(word: str, number: str, what: str) -> int:
    if number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= _MOST:
        return int(number[:6])
    raise InputError(
        [Problem(argument("cluster"), f"{word}:N takes a number of {what} from 1 to {_MOST}, not {number!r}")]
    )


def _open(address: str) -> bool:
    """Whether other machines may reach an address, and without a certificate."""
    parts = urlsplit(address)
    if parts.scheme == "tls":
        return False
    if parts.hostname == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return True


def _same_code(client: Any, where: str) -> None:
    """Refuse workers with other code, whose results would be other ones.

    Raises:
        InputError: there is no worker.
        CapabilityError: a worker has other code, or none.
    """
    if not client.nthreads():
        sentence = f"the scheduler at {where} has no workers; start some with `dask worker {where} --nthreads 1`"
        raise InputError([Problem(argument("cluster"), sentence)])
    own = code_digest()
    said = client.run(worker_code, on_error="return")
    others = {worker: answer for worker, answer in said.items() if answer != own}
    if others:
        worker, answer = next(iter(others.items()))
        why = "has none" if isinstance(answer, BaseException) else f"has {answer[:8]}"
        raise CapabilityError(
            f"{len(others)} of {len(said)} workers have other code of the testbed than this program ({own[:8]}): "
            f"{worker} {why}; install the same version there and start them again"
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
