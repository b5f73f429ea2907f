"""Workers that a queue of batch jobs starts, such as Slurm's, by dask-jobqueue."""

from __future__ import annotations

import logging
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from testbed.base.errors import CapabilityError, InputError, Problem, argument
from testbed.base.python_isolation import make_module_prefix
from testbed.base.resources import install_extra

_LOOK = 0.1  # s
HTTP = "127.0.0.1:0"  # of a scheduler of our own: unless told, it takes port 8787 and complains where that is taken
# Name of a queue → its class in dask_jobqueue.
QUEUES = {
    "slurm": "SLURMCluster", "pbs": "PBSCluster", "sge": "SGECluster", "lsf": "LSFCluster", "oar": "OARCluster",
    "htcondor": "HTCondorCluster",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Queue:
    """What is asked for."""

    kind: str  # of QUEUES
    jobs: int  # how many


@contextmanager
def submit_workers(queue: Queue, *, insecure: bool = False) -> Iterator[Any]:
    """Submit the jobs of workers, whose scheduler runs in this program; they are cancelled with the block.

    Cores, memory and whatever the queue wants to know come from Dask's configuration (`jobqueue.<kind>`), as
    dask-jobqueue reads it. Scheduler and workers use TLS with certificates made for them, in the folder that its
    `shared-temp-directory` names, unless `insecure`.

    Raises:
        InputError: its configuration is not whole.
        CapabilityError: dask-jobqueue or the queue's commands are not there, or the queue refuses the job.
    """
    try:
        import dask_jobqueue  # noqa: PLC0415 - only who names a queue needs it
        from distributed.core import Status  # noqa: PLC0415 - likewise
    except ImportError as error:
        raise CapabilityError(
            f"{argument('cluster')} {queue.kind} needs dask-jobqueue, which is not installed: {error}; "
            f"{install_extra('cluster')}, or start workers by jobs of your own and name their scheduler"
        ) from None
    kind = getattr(dask_jobqueue, QUEUES[queue.kind])
    program = kind.job_cls.submit_command.split()[0]
    if shutil.which(program) is None:
        raise CapabilityError(
            f"{program} is not installed here, so no job can be submitted to {queue.kind}; run this on a machine where "
            "jobs are submitted"
        )
    refused: list[str] = []

    class Told(kind.job_cls):  # type: ignore[misc, name-defined]
        async def _submit_job(self, script: str) -> Any:
            try:
                return await super()._submit_job(script)
            except RuntimeError as error:  # else nobody hears of it
                refused.append(str(error))
                raise

    try:
        options = {"dashboard_address": HTTP, "dashboard": False}
        # Jobs begin in the folder that they are submitted from, which may be somebody else's.
        python = shlex.join(make_module_prefix())
        cluster = kind(job_cls=Told, security=None if insecure else True, scheduler_options=options, python=python)
    except (ValueError, TypeError) as error:
        sentence = (
            f"the configuration of {queue.kind} is not whole: {' '.join(str(error).split())}; write it into "
            f"~/.config/dask/jobqueue.yaml, such as {{jobqueue: {{{queue.kind}: {{cores: 1, memory: 4GB, "
            "shared-temp-directory: /home/me}}}"
        )
        raise InputError([Problem(argument("cluster"), sentence)]) from None
    logging.getLogger("tornado").setLevel(logging.CRITICAL + 1)
    with cluster:
        cluster.scale(jobs=queue.jobs)
        while not cluster.scheduler_info["workers"]:
            if refused:
                for job in cluster._created:  # Dask closes only what has begun
                    job.status = Status.closed
                lines = [line for line in refused[0].splitlines() if line.strip()]
                raise CapabilityError(f"{queue.kind} refuses the job: {lines[-1]}")
            time.sleep(_LOOK)
        yield cluster
