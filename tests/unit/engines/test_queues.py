"""Workers by Slurm's jobs: the script that is submitted, and the whole way with a queue that starts jobs at once."""

from __future__ import annotations

import gc
import re
import shlex
import sys
import time
from pathlib import Path

import dask
import dask_jobqueue  # noqa: F401 - its defaults are part of the configuration
import pytest

from testbed.base.errors import CapabilityError, InputError
from testbed.base.files import code_digest
from testbed.base.python_isolation import make_module_prefix
from testbed.engines.local_machine.batch_queues import Queue, submit_workers
from testbed.engines.local_machine.cluster import open_cluster, worker_code

# dask-jobqueue never closes the files with the keys that it makes for workers.
pytestmark = [pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")]

ROOT = Path(__file__).parents[3]
# What Slurm does, without waiting: the job runs until it is cancelled.
_SBATCH = """#!/bin/sh
cp "$1" "$QUEUE/job.sh"
cd "$QUEUE" || exit 1
setsid sh -c 'PYTHONPATH=%s exec bash job.sh' >job.log 2>&1 &
echo $! >job.pid
echo "Submitted batch job 7"
"""
_SCANCEL = """#!/bin/sh
echo "$1" >"$QUEUE/cancelled"
kill -- -"$(cat "$QUEUE/job.pid")"
"""


@pytest.fixture(autouse=True)
def nothing_for_others():
    """What is left open is collected here, and not in a test of something else."""
    yield
    gc.collect()


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A folder with what is submitted; Slurm's commands are in the path."""
    for name, text in (("sbatch", _SBATCH % ROOT), ("scancel", _SCANCEL)):
        file = tmp_path / name
        file.write_text(text)
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("QUEUE", str(tmp_path))
    settings = {"cores": 1, "memory": "2GB", "walltime": "01:00:00", "queue": "short", "interface": "lo"}
    with (
        dask.config.set({f"jobqueue.slurm.{key}": value for key, value in settings.items()}),
        dask.config.set({"jobqueue.slurm.shared-temp-directory": str(tmp_path)}),
    ):
        yield tmp_path


_SCRIPT = """#!/usr/bin/env bash

#SBATCH -J dask-worker
#SBATCH -p short
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=2G
#SBATCH -t 01:00:00

ISOLATED -m distributed.cli.dask_worker tls://127.0.0.1:PORT --name NAME --nthreads 1 --memory-limit 1.86GiB \
--nanny --death-timeout 60 --interface lo --protocol tls:// --tls-ca-file FILE --tls-cert FILE --tls-key FILE
"""


@pytest.mark.slow
def test_a_job_of_slurm_starts_a_worker_and_is_cancelled(slurm):
    said: list[str] = []
    with open_cluster("slurm:1", said.append) as workers:
        assert (workers.slots, workers.lab_slots) == (1, 0)
        assert workers.submit(worker_code).result() == code_digest()
        script = (slurm / "job.sh").read_text()
    until = time.monotonic() + 20
    while not (slurm / "cancelled").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    assert (slurm / "cancelled").read_text() == "7\n"
    assert said == [
        "submitting 1 jobs to slurm, and waiting for the first of them", "1 of 1 threads of slurm:1 are there",
    ]  # fmt: skip
    script = script.replace(shlex.join(make_module_prefix()), "ISOLATED")
    script = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", script)
    script = re.sub(r"--name \S+", "--name NAME", script)
    script = re.sub(r"(--tls-\S+) \S+", r"\1 FILE", script)
    assert script == _SCRIPT


def _begin(queue: Queue) -> None:
    with submit_workers(queue, insecure=True):
        pytest.fail("there is no such queue")


# What Dask leaves of a cluster that could not be made.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed cluster")
def test_a_missing_refusing_or_unset_queue_is_told(slurm, monkeypatch):
    (slurm / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition specified: short' >&2\nexit 1\n")
    with pytest.raises(
        CapabilityError, match=r"slurm refuses the job: sbatch: error: invalid partition specified: short"
    ):
        _begin(Queue("slurm", 1))
    with monkeypatch.context() as patch:
        patch.setattr("shutil.which", lambda name: None)
        sentence = r"sbatch is not installed here, so no job can be submitted to slurm; run this on a machine where"
        with pytest.raises(CapabilityError, match=sentence):
            _begin(Queue("slurm", 1))
    with dask.config.set({"jobqueue.slurm.cores": None}):
        wrong = r"the configuration of slurm is not whole: .*cores.*; write it into .*jobqueue\.yaml, .*me\}\}\}$"
        with pytest.raises(InputError, match=wrong):
            _begin(Queue("slurm", 1))
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(CapabilityError, match=r"cluster slurm needs dask-jobqueue, which is not installed"):
        _begin(Queue("slurm", 1))
