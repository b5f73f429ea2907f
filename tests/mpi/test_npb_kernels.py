"""The eight kernels of mpi_jobs/npb: what they compute is right, and they would notice if it were not."""

from __future__ import annotations

import json

import pytest

from testbed.scenario.workloads import npb
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks
from testbed.scenario.workloads.spec import Npb
from tests.mpi.programs import ROOT, make, mpirun, needs_compiler

pytestmark = [needs_compiler, pytest.mark.slow]
FOLDER = ROOT / "mpi_jobs" / "npb"
KERNELS = ["IS", "EP", "CG", "MG", "FT", "LU", "SP", "BT"]


@pytest.fixture(scope="module", autouse=True)
def built():
    make(FOLDER, "-j2")


def run(kernel, class_, ranks, folder="build"):
    return mpirun(ranks, str(FOLDER / folder / kernel.lower()), class_)


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_class_s_verifies(kernel, ranks):
    done = run(kernel, "S", ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    parsed = npb.parse(done.stdout, Ranks((0,) * ranks))
    assert parsed.verified
    figures = {sample.metric: sample.value for sample in parsed.samples if sample.labels.get("statistic") != "median"}
    assert 0 < figures["npb_lab_time"] < 60
    assert figures["npb_lab_rate"] > 0
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["kernel"], said["class"], said["ranks"]) == (kernel, "S", ranks)
    times = [sum(parts) for parts in zip(said["computation_seconds"], said["communication_seconds"], strict=True)]
    # Of a rank that a busy machine holds up before its clock starts it can be anything below.
    assert max(times) == pytest.approx(said["seconds"], abs=2e-6)
    assert min(times) > 0


@pytest.mark.parametrize("kernel", ["IS", "CG", "MG"])
def test_class_w_verifies(kernel):
    done = run(kernel, "W", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert npb.parse(done.stdout, Ranks((0, 0))).verified


@pytest.fixture(scope="module")
def perturbed():
    make(FOLDER, "-j2", "PERTURB=1")


@pytest.mark.usefixtures("perturbed")
@pytest.mark.parametrize("kernel", KERNELS)
def test_one_changed_constant_is_noticed(kernel):
    done = run(kernel, "S", 1, "build/perturbed")
    assert done.returncode not in (0, 2), done.stdout
    assert npb.failure(done.stdout) == "its result is wrong: Verification = UNSUCCESSFUL"
    assert not json.loads(done.stdout.splitlines()[-1])["verified"]
    with pytest.raises(JobOutputError, match="Verification = UNSUCCESSFUL"):
        npb.parse(done.stdout, Ranks((0,)))


# Where the table of testbed/scenario/workloads/npb.py ends, so that it is the kernels' own.
@pytest.mark.parametrize(
    ("kernel", "class_", "ranks"), [("LU", "S", 32), ("SP", "S", 25), ("BT", "S", 25), ("FT", "W", 64)]
)
def test_the_most_ranks_are_those_that_a_scenario_may_ask_for(kernel, class_, ranks):
    assert npb.most_ranks(Npb(kernel, class_), 1024) < ranks
    (problem,) = npb.problems(Npb(kernel, class_, ranks))
    done = run(kernel, class_, ranks)
    assert done.returncode == 2, done.stdout + done.stderr
    most = npb.most_ranks(Npb(kernel, class_), 1024)
    assert f"cannot be shared out to {ranks} ranks: it should be {most} at most" in done.stderr
    assert problem.sentence.startswith(f"should be {most} or less")


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_illegal_number_of_ranks_is_a_sentence(kernel):
    done = run(kernel, "S", 3)
    if npb.is_legal(kernel, 3):
        assert done.returncode == 0
        return
    assert done.returncode == 2
    rule = "a square" if kernel in ("SP", "BT") else "a power of two"
    assert f"cannot run on 3 ranks: the number should be {rule}" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["C"], "there is no class 'C': it should be S, W, A or B."),
        (["SS"], "there is no class 'SS'"),
        ([""], "there is no class ''"),
        ([], "needs one argument, the class"),
        (["S", "W"], "needs one argument, the class"),
    ],
)
def test_an_illegal_class_is_a_sentence(arguments, sentence):
    done = mpirun(1, str(FOLDER / "build" / "is"), *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_too_little_memory_is_told_before_it_is_taken():
    limited = 'ulimit -v 700000 && exec "$@"'
    done = mpirun(1, "sh", "-c", limited, "sh", str(FOLDER / "build" / "ft"), "B")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "MiB of memory" in done.stderr
