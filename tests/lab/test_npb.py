"""NPB kernels over the fabric: verified, their bytes counted, traced; and a wrong result without a figure."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from testbed.base.errors import WorkloadError
from testbed.engines.lab.hosts.build_mpi_jobs import npb_job
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.loads import run_mpi as load_mpi
from testbed.scenario.workloads import mpi_trace
from testbed.scenario.workloads.spec import Npb

STAND_IN = Path(__file__).parents[1] / "data" / "npb_official"


@pytest.fixture
def run(context):
    return lambda **keys: load_mpi.run_mpi(context, Npb(**keys))


def values(outcome, metric):
    return [sample.value for sample in outcome.samples if sample.metric == metric]


def test_integer_sort_verifies_with_the_traffic_of_all_to_all(run, kept):
    outcome = run(kernel="IS", trace=True)
    assert "Verification    =               SUCCESSFUL" in kept["output.txt"]
    (seconds,) = values(outcome, "npb_lab_time")
    assert f"{seconds:.4f}" in kept["output.txt"]  # not divided by the dilation
    (moved,), (crossed,) = values(outcome, "mpi_bytes_moved"), values(outcome, "mpi_bytes_crossed")
    assert 1e6 < moved <= crossed
    sent = {(s.labels["src"], s.labels["dst"]): s.value for s in outcome.samples if s.metric == "mpi_bytes_sent"}
    assert len(sent) == 12
    assert min(sent.values()) > 50_000  # 65,536 keys of 4 bytes, ten times and once more, in 16 parts
    trace = mpi_trace.parse(kept["trace.json"], 4)
    assert sum(sent.values()) == trace.message_bytes.sum() + trace.collective_bytes.sum()
    assert sum(sent.values()) >= moved
    assert all(verdict < Verdict.FAIL for verdict, _ in outcome.findings)


def test_a_wavefront_kernel_runs_with_two_ranks_a_host(run):
    outcome = run(kernel="LU", ranks=8, time_limit=120.0)
    assert len(values(outcome, "npb_lab_time")) == 1
    assert values(outcome, "mpi_bytes_sent") == []


def test_a_result_that_does_not_verify_gives_no_figure(run, kept, monkeypatch):
    def wrong(spec):
        job = npb_job(spec)
        binary = job.binary.replace("build/is", "build/perturbed/is")
        return dataclasses.replace(job, binary=binary, make=("PERTURB=1", "build/perturbed/is"))

    monkeypatch.setattr(load_mpi, "npb_job", wrong)
    with pytest.raises(WorkloadError, match="npb-is: exit code 3: its result is wrong: Verification = UNSUCCESSFUL"):
        run(kernel="IS")
    assert "UNSUCCESSFUL" in kept["failed-npb-is.txt"]


def test_the_official_program_is_run_and_traced_unasked(run, kept, monkeypatch):
    monkeypatch.setenv("NPB_DIR", str(STAND_IN))
    outcome = run(kernel="IS")
    assert values(outcome, "npb_lab_time") == [0.25]
    # An all-to-all of 40 bytes a pair: the stand-in does no more.
    assert values(outcome, "mpi_bytes_sent") == 12 * [40]
    assert values(outcome, "mpi_bytes_moved") == [12 * 40]
    with pytest.raises(WorkloadError, match=r"does not match its success pattern"):
        run(kernel="IS", class_="W")
    assert "UNSUCCESSFUL" in kept["output.txt"]
