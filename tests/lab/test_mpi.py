"""An MPI job over the fabric: its data verified, its bytes counted, and the proof able to fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.emulate.build import build_lab
from testbed.errors import WorkloadError
from testbed.run import load_mpi
from testbed.run.context import Context
from testbed.workloads import mpi
from testbed.workloads.spec import Mpi

from .conftest import plan_of

_ARGS = ("--tests", "pingpong,alltoall,barrier", "--sizes", "1,4096", "--alltoall-bytes", "4000", "--repeats", "3")


@pytest.fixture(scope="module")
def context():
    plan = plan_of("topology: {kind: torus, sizes: [4, 2]}\nlab: {dilation: 50}")
    with build_lab(plan) as lab:
        yield Context(plan, lab, {"load": "1"}, lambda name, text: None, lambda text: None)


def test_a_job_runs_and_its_bytes_cross_the_fabric(context):
    outcome = load_mpi.run_mpi(context, Mpi("fabric_bench", _ARGS))
    found = {sample.metric: sample for sample in outcome.samples}
    assert found["mpi_bytes_crossed"].value >= found["mpi_bytes_moved"].value > 8 * 7 * 4000
    assert 0 < found["mpi_latency"].value < 1
    whole = [sample for sample in outcome.samples if sample.metric == "mpi_alltoall_time"]
    assert all(sample.predicted is not None and sample.value > 0.98 * sample.predicted for sample in whole)


def test_with_shared_memory_allowed_the_byte_proof_fails(context, monkeypatch):
    forced = mpi.launch

    def unforced(*arguments, **options):
        launch = forced(*arguments, **options)
        kept = {key: value for key, value in launch.env.items() if key not in ("MPIR_CVAR_NOLOCAL", "LD_PRELOAD")}
        # Also without the /dev/shm of its own that each rank gets.
        wrapper = launch.wrapper.replace("mount -t tmpfs tmpfs /dev/shm && ", "")
        return replace(launch, env=kept, wrapper=wrapper)

    monkeypatch.setattr(mpi, "launch", unforced)
    with pytest.raises(WorkloadError, match="its ranks used another way"):
        load_mpi.run_mpi(context, Mpi("fabric_bench", _ARGS))


def test_a_job_that_hangs_is_ended(context):
    with pytest.raises(WorkloadError, match=r"did not end in 1 s"):
        load_mpi.run_mpi(context, Mpi("fabric_bench", ("--tests", "barrier", "--repeats", "1000000"), time_limit=1.0))


def test_wrong_arguments_are_a_sentence(context):
    with pytest.raises(WorkloadError, match="exit code 2"):
        load_mpi.run_mpi(context, Mpi("fabric_bench", ("--tests", "nonsense")))
