"""How MPI jobs are started, and what their output says. The outputs in tests/data/mpi are real ones."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from testbed.workloads import mpi

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "mpi"
JOBS = ROOT / "mpi_jobs"
JOB = mpi.MpiJob("fabric_bench", "/jobs/fabric_bench", r'^\{"test":"end","verified":true,', ("--repeats", "3"))


def output(name):
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def launch(job=JOB, ranks=2, shim="/lib/shim.so", host_pids=(41, 42)):
    return mpi.launch(
        job, ranks, mpiexec="/venv/bin/mpiexec", shim=shim, wrapper_path="/run/wrapper", host_pids=host_pids
    )


def changed(number, **values):
    """The complete output with some values of one line (from 0) changed, or removed where None."""
    lines = output("complete").splitlines()
    line = {**json.loads(lines[number]), **values}
    lines[number] = json.dumps({key: value for key, value in line.items() if value is not None})
    return "\n".join(lines)


# --- launch -------------------------------------------------------------------------------------------------


def test_launch_starts_mpiexec_in_a_pid_namespace_that_dies_with_its_parent():
    assert launch().argv == (
        *("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--"),
        *("/venv/bin/mpiexec", "-launcher", "fork", "-rmk", "user"),
        *("-hosts", "127.0.0.1", "-localhost", "127.0.0.1", "-n", "2"),
        *("/run/wrapper", "/jobs/fabric_bench", "--repeats", "3"),
    )


def test_launch_forces_tcp_over_the_interface_of_the_host():
    env = launch().env
    assert env["MPIR_CVAR_CH4_NETMOD"] == "ofi"
    assert env["FI_PROVIDER"] == "tcp"
    assert env["FI_TCP_IFACE"] == "eth0"
    assert env["MPIR_CVAR_NOLOCAL"] == "1"
    assert env["LD_PRELOAD"] == "/lib/shim.so"


def test_without_a_shim_nothing_is_preloaded():
    assert "LD_PRELOAD" not in launch(shim=None).env


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ranks": 0}, "at least one rank, not 0"),
        ({"ranks": 3}, "needs 3 hosts, one a rank, but there are 2"),
        ({"shim": "/my jobs/shim.so"}, "a space or a colon"),
        ({"shim": "/a:b/shim.so"}, "a space or a colon"),
        ({"job": dataclasses.replace(JOB, args=("a", ":", "b"))}, '":" as an argument'),
    ],
)
def test_launch_refuses_what_cannot_work(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        launch(**arguments)


@pytest.fixture
def run_wrapper(tmp_path):
    """Run the wrapper of a launch with a stand-in for mnexec that says how it was called."""
    (tmp_path / "mnexec").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "mnexec").chmod(0o755)

    def run(rank, **arguments):
        wrapper = tmp_path / "wrapper"
        wrapper.write_text(launch(**arguments).wrapper)
        return subprocess.run(
            ["/bin/sh", wrapper, "/jobs/my job", "a b", "$HOME"],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "PMI_RANK": str(rank)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(("rank", "pid"), [(0, "41"), (1, "42"), (2, "43")])
def test_wrapper_enters_the_host_of_its_rank(run_wrapper, rank, pid):
    words = run_wrapper(rank, ranks=3, host_pids=(41, 42, 43)).stdout.splitlines()
    assert words[:2] == ["-a", pid]
    assert words[-4:] == ["rank", "/jobs/my job", "a b", "$HOME"]


def test_wrapper_ends_with_a_sentence_when_there_is_no_host(run_wrapper):
    done = run_wrapper(2)
    assert done.returncode == 127
    assert done.stderr == "There is no host for rank 2.\n"


def test_wrapper_ends_with_a_sentence_when_the_shim_is_missing(tmp_path):
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(launch().wrapper)
    done = subprocess.run(
        ["/bin/sh", wrapper, "true"],
        env={"PATH": os.environ["PATH"], "PMI_RANK": "0", "LD_PRELOAD": f"{tmp_path}/missing.so"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 127
    assert f"The library {tmp_path}/missing.so, which MPI ranks are to load, cannot be read." in done.stderr


# --- parse --------------------------------------------------------------------------------------------------


def test_parse_reads_a_complete_run():
    parsed = mpi.parse(output("complete"))
    assert parsed.verified
    assert parsed.fabric_bytes == 59197464
    figures = {
        (sample.metric, sample.labels.get("bytes"), sample.labels["statistic"]): sample for sample in parsed.samples
    }
    assert len(figures) == len(parsed.samples) == 3 * 4 + 4 + 3
    latency = figures["mpi_latency", "1024", "median"]
    assert latency.labels == {"src": "0", "dst": "15", "bytes": "1024", "statistic": "median"}
    assert (latency.value, latency.unit, latency.predicted) == (0.000016148, "s", None)
    assert figures["mpi_latency", "1024", "min"].value == 0.000012087
    assert figures["mpi_latency", "1024", "max"].value == 0.000178838
    bandwidth = figures["mpi_bandwidth", "65536", "median"]
    assert bandwidth.unit == "bit/s"
    assert bandwidth.value == pytest.approx(65536 * 8 / 0.000025432)
    rate = figures["mpi_alltoall_bandwidth", "20000", "median"]
    assert rate.labels == {"ranks": "16", "bytes": "20000", "statistic": "median"}
    assert rate.value == pytest.approx(15 * 20000 * 8 / 0.010279704)
    barrier = figures["mpi_barrier_time", None, "median"]
    assert (barrier.value, barrier.unit) == (0.001922207, "s")


def test_parse_keeps_pairs_apart():
    samples = mpi.parse(output("shaped_pairs")).samples
    pairs = {(s.labels["src"], s.labels["dst"]) for s in samples if s.metric == "mpi_latency"}
    assert pairs == {("0", "1"), ("0", "5")}


def test_an_empty_message_has_a_latency_and_no_bandwidth():
    samples = mpi.parse(changed(0, bytes=0)).samples
    assert [s.metric for s in samples if s.labels.get("bytes") == "0"] == ["mpi_latency"] * 3


def test_blank_lines_and_unknown_keys_do_no_harm():
    assert mpi.parse("\n" + changed(0, note="x") + "\n\n") == mpi.parse(output("complete"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The job's output has no end line, so the job did not finish."),
        (output("wrong_data"), "has no end line"),
        (output("ended_at_time_limit"), "has no end line"),
        (output("crashed"), "Line 4 of the job's output is not a JSON object: \"====="),
        ("[1, 2]", "Line 1 of the job's output is not a JSON object"),
        ('{"test":"pong"}', "names no test that is known"),
        ('{"test":["end"]}', "names no test that is known"),
        (output("complete") + "more", "Line 7 of the job's output comes after its end line"),
        (changed(0, bytes=None), 'Line 1 of the job\'s output has no whole number "bytes"'),
        (changed(0, bytes=-1), 'has no whole number "bytes"'),
        (changed(0, bytes=10**400), 'has no whole number "bytes"'),
        (changed(1, bytes=True), 'Line 2 of the job\'s output has no whole number "bytes"'),
        (changed(2, seconds_median="fast"), 'Line 3 of the job\'s output has no time "seconds_median"'),
        (changed(2, seconds_min=float("nan")), 'has no time "seconds_min"'),
        (changed(2, seconds_max=-1.0), 'has no time "seconds_max"'),
        (changed(2, seconds_max=10**400), 'has no time "seconds_max"'),
        (changed(5, fabric_bytes=1), "does not give the 59197464 bytes that its tests add up to"),
        (changed(5, verified=None), 'does not say "verified" true or false'),
    ],
)
def test_parse_refuses_other_output_in_one_sentence(text, message):
    with pytest.raises(mpi.JobOutputError, match=re.escape(message)) as caught:
        mpi.parse(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


# --- check --------------------------------------------------------------------------------------------------


def test_check_reads_the_figures_of_a_job_that_has_succeeded():
    assert mpi.check(JOB, output("complete")) == mpi.parse(output("complete"))


@pytest.mark.parametrize("name", ["wrong_data", "ended_at_time_limit", "crashed"])
def test_check_needs_the_success_pattern(name):
    with pytest.raises(mpi.JobOutputError, match="MPI job fabric_bench does not match its success pattern"):
        mpi.check(JOB, output(name))


def test_check_says_when_there_is_no_output():
    with pytest.raises(mpi.JobOutputError, match="it is empty"):
        mpi.check(JOB, "")


def test_check_does_not_take_unverified_figures():
    job = dataclasses.replace(JOB, success="end")
    with pytest.raises(mpi.JobOutputError, match="not verified"):
        mpi.check(job, changed(5, verified=False))


def test_check_takes_free_output_on_its_pattern_alone():
    job = mpi.MpiJob("is", "/jobs/is", "^ Verification *= *SUCCESSFUL$", output="free", fabric_bytes=4_700_000)
    text = " IS Benchmark Completed\n Verification    =               SUCCESSFUL\n"
    assert mpi.check(job, text) == mpi.ParsedJob((), 4_700_000, True)
    with pytest.raises(mpi.JobOutputError, match="success pattern"):
        mpi.check(job, text.replace("SUCCESSFUL", "UNSUCCESSFUL"))


# --- the folders in mpi_jobs --------------------------------------------------------------------------------


def test_fabric_bench_describes_itself():
    described = yaml.safe_load((JOBS / "fabric_bench" / "job.yaml").read_text(encoding="utf-8"))
    assert set(described) == {
        "name", "description", "binary", "success", "output", "args", "time_limit_seconds"
    }  # fmt: skip
    assert described["success"] == JOB.success
    assert re.search(described["success"], output("complete"), re.MULTILINE)


@pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and a C compiler")
def test_shim_keeps_its_promises(tmp_path):
    done = subprocess.run(
        ["make", "-C", JOBS / "shim", "check", f"BUILD={tmp_path}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
