"""MPI jobs over the fabric: their data verified, their bytes counted, and the proof able to fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import trust
from testbed.base.errors import CapabilityError, InputError, WorkloadError
from testbed.base.model import Sample
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.hosts import build_mpi_jobs
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.loads import run_mpi as load_mpi
from testbed.experiments.run.loads.context import Context
from testbed.planning import make_plan
from testbed.scenario import load_scenario
from testbed.scenario.workloads import mpi
from testbed.scenario.workloads.spec import Mpi

from .conftest import plan_of

USER_JOB = Path(__file__).parent / "mpi_user_job"
SHORT = ("--tests", "pingpong,alltoall,barrier", "--sizes", "1,4096", "--alltoall-bytes", "4000", "--repeats", "3")


@pytest.fixture
def run(context):
    """Run a job in the lab; gives its samples by metric."""

    def run_job(*arguments, **keys):
        outcome = load_mpi.run_mpi(context, Mpi(*arguments, **keys))
        found: dict[str, list[Sample]] = {}
        for sample in outcome.samples:
            found.setdefault(sample.metric, []).append(sample)
        return found

    return run_job


def moved_and_crossed(found):
    return found["mpi_bytes_moved"][0].value, found["mpi_bytes_crossed"][0].value


@pytest.fixture
def user_job(tmp_path):
    """A job's folder far from the testbed's own, which is trusted."""
    with trust.allow_programs(True):
        yield Path(shutil.copytree(USER_JOB, tmp_path / "my_job", ignore=shutil.ignore_patterns("build")))


# --- the jobs -------------------------------------------------------------------------------------------------


@pytest.mark.quiet(seat=1)  # no time may be below what the wires take
def test_fabric_bench_runs_and_its_bytes_cross_the_fabric(run):
    found = run("fabric_bench", SHORT)
    moved, crossed = moved_and_crossed(found)
    # Five turns: 12 pairs of 4000 bytes, and both ways 1 and 4096 bytes.
    assert moved == 5 * (12 * 4000 + 2 * 4097)
    assert moved <= crossed < 1.5 * moved
    assert {(s.labels["src"], s.labels["dst"]) for s in found["mpi_latency"]} == {("h1", "h4")}
    assert all(0 < sample.value < 1 for sample in found["mpi_latency"])
    assert all(s.predicted is not None and s.value > 0.98 * s.predicted for s in found["mpi_alltoall_time"])


@pytest.mark.quiet(seat=1)  # likewise
def test_collectives_runs_all_its_tests(run):
    found = run("collectives", ("--repeats", "2", "--warmup", "1", "--sizes", "4,4096"))
    for test in ("pingping", "multi_pingping", "alltoall", "allreduce"):
        sizes = Counter(sample.labels["bytes"] for sample in found[f"mpi_{test}_time"])
        assert sizes == {"4": 3, "4096": 3}, test
    assert len(found["mpi_barrier_time"]) == 3
    moved, crossed = moved_and_crossed(found)
    assert moved == 3 * 4100 * (2 + 2 + 4 + 12 + 4)
    assert moved <= crossed
    whole = [s for s in found["mpi_alltoall_time"] if s.labels["bytes"] == "4096"]
    assert [s.predicted is None for s in whole] == [True, True, False]
    assert whole[2].value > whole[2].predicted


def test_pattern_measures_each_pair_beside_its_prediction(run):
    found = run("pattern", ("--seconds", "1", "--omit", "0", "--bytes", "8192"), pattern="complement")
    pairs = {(s.labels["src"], s.labels["dst"]): s for s in found["goodput"]}
    assert set(pairs) == {("h1", "h4"), ("h2", "h3"), ("h3", "h2"), ("h4", "h1")}
    for sample in pairs.values():
        assert sample.predicted is not None
        assert 0.05 * sample.predicted < sample.value < 1.1 * sample.predicted
    moved, crossed = moved_and_crossed(found)
    assert 4 * 8192 < moved <= crossed < 1.2 * moved


def test_osu_runs_and_its_bytes_cross_the_fabric(run):
    found = run("osu", ("--iterations", "2", "--sizes", "1,4096", "--window", "4"))
    assert len(found["mpi_latency"]) == len(found["mpi_stream_bandwidth"]) == 2
    assert len(found["mpi_bidirectional_bandwidth"]) == 2
    assert len(found["mpi_alltoall_time"]) == 6
    moved, crossed = moved_and_crossed(found)
    assert moved == 2 * 4097 * (2 + 4 + 8 + 12)
    assert moved <= crossed


def test_hpl_solves_its_system_and_says_so(run, kept):
    try:
        found = run("hpl", ("--n", "200", "--nb", "32"))
    except CapabilityError as error:
        if "is there no network?" not in str(error) or os.environ.get("TESTBED_REQUIRE_LAB") == "1":
            raise
        pytest.skip(str(error))
    assert 0 <= found["hpl_residual"][0].value < 16
    assert found["hpl_lab_time"][0].labels["n"] == "200"
    assert (found["hpl_lab_time"][0].labels["p"], found["hpl_lab_time"][0].labels["q"]) == ("2", "2")
    # What was printed, not what it would be at full speed.
    assert f"{found['hpl_lab_time'][0].value:.2f}" in kept["output.txt"]
    moved, crossed = moved_and_crossed(found)
    assert 100_000 < moved <= crossed


@pytest.fixture
def imb():
    """Intel's binary; it is fetched only where a lab test may not be skipped."""
    if not (build_mpi_jobs.FOLDER / "imb" / "build" / "IMB-MPI1").exists():
        if os.environ.get("TESTBED_REQUIRE_LAB") != "1":
            pytest.skip("IMB-MPI1 is not here; get it with `make -C mpi_jobs/imb get`")
        with build_mpi_jobs.building(build_mpi_jobs.FOLDER / "imb"):
            subprocess.run(["make", "-C", str(build_mpi_jobs.FOLDER / "imb"), "get"], check=True, capture_output=True)


@pytest.mark.usefixtures("imb")
def test_the_unmodified_imb_runs(run):
    tests = ("PingPong", "Alltoall", "Barrier")
    found = run("imb", ("-npmin", "64", "-iter", "3", "-iter_policy", "off", "-msglog", "11:12", *tests))
    assert [(s.labels["bytes"], s.labels["dst"]) for s in found["mpi_latency"]] == [
        ("0", "h2"),
        ("2048", "h2"),
        ("4096", "h2"),
    ]
    assert len(found["mpi_alltoall_time"]) == 9
    assert len(found["mpi_barrier_time"]) == 3
    moved, crossed = moved_and_crossed(found)
    assert moved == 3 * 6144 * (2 + 12)
    assert moved <= crossed


# --- several ranks a host -------------------------------------------------------------------------------------

LARGE_ALLTOALL = ("--tests", "Alltoall", "--sizes", "20000", "--repeats", "2", "--warmup", "0")


def test_bytes_between_ranks_of_one_host_neither_cross_nor_count(run):
    found = run("collectives", LARGE_ALLTOALL, placement=("h1", "h4", "h4", "h1"))
    moved, crossed = moved_and_crossed(found)
    assert moved == 2 * 20000 * 8  # of twelve ordered pairs eight are on different hosts
    assert moved <= crossed < 2 * 20000 * 12


def test_a_job_that_takes_ranks_for_hosts_fails_the_byte_proof(run, monkeypatch):
    honest = mpi.launch

    def dishonest(*arguments, **options):
        launch = honest(*arguments, **options)
        wrapper = launch.files["rank.sh"].replace("export TESTBED_HOST", "export TESTBED_HOST=$PMI_RANK")
        return replace(launch, files={"rank.sh": wrapper})

    monkeypatch.setattr(mpi, "launch", dishonest)
    with pytest.raises(WorkloadError, match="moved at least 480000 bytes between hosts, but only"):
        run("collectives", LARGE_ALLTOALL, placement=("h1", "h4", "h4", "h1"))


def test_more_ranks_than_hosts_share_out(run):
    found = run("fabric_bench", ("--tests", "pingpong,barrier", "--repeats", "2", "--pairs", "0-5,0-4"), ranks=6)
    assert found["mpi_barrier_time"][0].labels["ranks"] == "6"
    assert {s.labels["dst"] for s in found["mpi_latency"]} == {"h3", "h4"}
    assert {s.labels["src"] for s in found["mpi_latency"]} == {"h1/0"}


# --- what goes wrong ------------------------------------------------------------------------------------------


def test_with_shared_memory_allowed_the_byte_proof_fails(monkeypatch):
    """Only where hosts are not shut in: those that are have no memory that they could share."""
    forced = mpi.launch

    def unforced(*arguments, **options):
        launch = forced(*arguments, **options)
        kept = {key: value for key, value in launch.env.items() if key not in ("MPIR_CVAR_NOLOCAL", "LD_PRELOAD")}
        # Also without the /dev/shm of its own that each rank gets.
        wrapper = launch.files["rank.sh"].replace("mount -t tmpfs tmpfs /dev/shm && ", "")
        return replace(launch, env=kept, files={"rank.sh": wrapper})

    monkeypatch.setattr(mpi, "launch", unforced)
    plan = plan_of("topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 50, host_access: write}")
    with build_lab(plan) as lab, pytest.raises(WorkloadError, match="its ranks used another way"):
        load_mpi.run_mpi(Context(plan, lab, {}, lambda name, text: None, lambda text: None), Mpi("fabric_bench", SHORT))


@pytest.mark.parametrize(
    ("job", "arguments", "pattern"),
    [
        ("fabric_bench", ("--tests", "alltoall"), None),
        ("collectives", ("--tests", "Allreduce"), None),
        ("pattern", ("--seconds", "1"), "complement"),
        ("osu", ("--tests", "bw"), None),
    ],
)
def test_one_wrong_byte_fails_the_job(run, kept, job, arguments, pattern):
    with pytest.raises(WorkloadError, match="exit code 3"):
        run(job, (*arguments, "--corrupt", "3"), pattern=pattern)
    assert "wrong" in kept[f"failed-{job}.txt"]


def test_wrong_arguments_are_a_sentence(run):
    with pytest.raises(WorkloadError, match="exit code 2: fabric_bench: --tests knows pingpong, alltoall, barrier"):
        run("fabric_bench", ("--tests", "nonsense"))


@pytest.mark.long
def test_a_job_that_hangs_is_ended_and_its_output_kept(run, kept, user_job):
    with pytest.raises(WorkloadError, match=r"did not end in 10 s: STARTED"):
        run(str(user_job), ("hang",), time_limit=10.0)
    assert kept["failed-ring.txt"] == "STARTED\n"


def test_a_job_that_crashes_fails_with_its_output_kept(run, kept, user_job):
    with pytest.raises(WorkloadError, match="1 of 1 processes failed; ring: exit code"):
        run(str(user_job), ("crash",))
    assert "EXIT CODE: 139" in kept["failed-ring.txt"] or "Segmentation fault" in kept["failed-ring.txt"]


def test_a_job_that_prints_garbage_fails_with_its_output_kept(run, kept, user_job):
    with pytest.raises(WorkloadError, match=r"does not match its success pattern .*: it ends with .*SUM CORRECT \?"):
        run(str(user_job), ("garbage",))
    assert "SUM CORRECT ?" in kept["output.txt"]


def test_a_job_that_claims_success_without_a_byte_fails(run, kept, user_job):
    with pytest.raises(WorkloadError, match="moved at least 80000 bytes between hosts, but only"):
        run(str(user_job), ("silent",))
    assert "SUM CORRECT" in kept["output.txt"]


def test_an_unknown_job_must_have_used_the_fabric(run, user_job, monkeypatch):
    file = user_job / "job.yaml"
    file.write_text(file.read_text().replace("fabric_bytes: 80000\n", ""))
    monkeypatch.setattr(load_mpi, "_bytes_from_hosts", lambda result: ({0: 500, 1: 0, 2: 500, 3: 0}, 9))
    with pytest.raises(WorkloadError, match="h2, h4 sent nothing while the job ran"):
        run(str(user_job), ("right",))


# --- a whole run with a job from elsewhere ----------------------------------------------------------------------


def scenario(folder, workloads):
    file = folder / "mine.yaml"
    file.write_text(f"topology: {{kind: ring, switches: 3}}\nlab: {{dilation: 50}}\nworkloads: [{workloads}]\n")
    return make_plan(load_scenario(file))


def test_a_user_program_runs_from_a_folder_beside_its_scenario(user_job, tmp_path):
    plan = scenario(tmp_path, "{kind: mpi, job: ./my_job}")
    outcome = run_scenario(plan, tmp_path / "results", lambda text: None)
    assert outcome.verdict < Verdict.FAIL, outcome.reasons
    figures = {sample.metric: sample for sample in outcome.samples}
    assert figures["mpi_bytes_moved"].value == 80000
    assert figures["mpi_bytes_crossed"].value >= 3 * 40000
    assert figures["mpi_bytes_moved"].labels["job"] == "my_job"
    assert "SUM CORRECT" in (outcome.folder / "raw" / "1-mpi-my_job" / "output.txt").read_text()


def test_a_run_builds_no_job_of_a_scenario_s_until_it_is_trusted(tmp_path, monkeypatch):
    """Nor anything else; a Makefile would run as root."""
    job = Path(shutil.copytree(USER_JOB, tmp_path / "my_job", ignore=shutil.ignore_patterns("build")))
    with (job / "Makefile").open("a") as file:
        file.write(f"\t@touch {tmp_path}/ran\n")
    scenario(tmp_path, "{kind: mpi, job: ./my_job}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    command = [sys.executable, "-m", "testbed", "run", "mine.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, input="y\n")
    assert done.returncode == 2
    assert "mine.yaml: workloads.0.job: ./my_job is an MPI job of root (3 files, " in done.stderr
    assert f"whose Makefile would build it with your rights, and you have not said that you trust it; read {job}, " in (
        done.stderr
    )
    assert "then say --trust\n" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == before
    done = subprocess.run([*command, "--trust"], capture_output=True, text=True, check=False)
    assert done.returncode != 2, done.stderr
    assert (tmp_path / "ran").exists()
    assert (tmp_path / "state" / "testbed" / "trusted").read_text().split()[1] == f'"{job}"'
    assert not (job / "build").exists()


def test_what_is_wrong_with_jobs_is_told_before_a_lab_is_built(tmp_path, monkeypatch):
    loads = (
        "{kind: mpi, job: fabric_bnch}, {kind: mpi, job: hpl, args: [--p, '2']}, {kind: mpi, job: pattern}, "
        "{kind: mpi, job: collectives, pattern: neighbour}"
    )
    plan = scenario(tmp_path, loads)
    monkeypatch.setattr(
        "testbed.experiments.run.open_vswitch.build_lab", lambda *arguments, **options: pytest.fail("a lab is built")
    )
    with pytest.raises(InputError) as caught:
        run_scenario(plan, tmp_path / "results", lambda text: None)
    assert [str(problem).partition("mine.yaml: ")[2] for problem in caught.value.problems] == [
        'workloads.0.job: there is no MPI job "fabric_bnch". Did you mean "fabric_bench"? Known: '
        f"{', '.join(build_mpi_jobs.job_names())}, or a path such as ./my_job",
        "workloads.1.args: has a process grid of 2×1 for 3 ranks; --p times --q should be 3",
        "workloads.2.pattern: is required: pattern needs to know who sends to whom, as in pattern: neighbour",
        "workloads.3.pattern: collectives takes no pattern; leave it out",
    ]
    assert not (tmp_path / "results").exists()
