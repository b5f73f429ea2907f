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

from testbed.engines.lab.hosts import build_mpi_jobs
from testbed.scenario.workloads import mpi, mpi_json, spec
from testbed.scenario.workloads.mpi_machines import said_by_ranks
from testbed.scenario.workloads.mpi_output import JobOutputError, ParsedJob
from testbed.scenario.workloads.mpi_placement import Ranks

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "mpi"
JOBS = ROOT / "mpi_jobs"
JOB = mpi.MpiJob("fabric_bench", "/jobs/fabric_bench", r'^\{"test":"end","verified":true,', ("--repeats", "3"))


def output(name):
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def launch(job=JOB, hosts=(0, 1), shim="/lib/shim.so", host_pids=(41, 42), **options):
    return mpi.launch(
        job,
        Ranks(hosts),
        mpiexec="/venv/bin/mpiexec",
        libraries="/venv/lib",
        shim=shim,
        folder="/run/lab",
        interface="veth7",
        host_pids=host_pids,
        **options,
    )


def changed(number, **values):
    """The complete output with some values of one line (from 0) changed, or removed where None."""
    lines = output("complete").splitlines()
    line = {**json.loads(lines[number]), **values}
    lines[number] = json.dumps({key: value for key, value in line.items() if value is not None})
    return "\n".join(lines)


# --- launch -------------------------------------------------------------------------------------------------


def test_launch_starts_mpiexec_in_a_namespace_that_dies_with_it():
    assert launch().argv == (
        *("unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--"),
        *("/venv/bin/mpiexec", "-launcher", "fork", "-rmk", "user"),
        *("-hosts", "127.0.0.1", "-localhost", "127.0.0.1", "-n", "2"),
        *("/run/lab/rank.sh", "/jobs/fabric_bench", "--repeats", "3"),
    )


def test_launch_runs_a_script_with_its_interpreter():
    job = dataclasses.replace(JOB, binary="/jobs/osu.py", interpreter="/venv/bin/python")
    assert launch(job).argv[-5:] == ("/run/lab/rank.sh", "/venv/bin/python", "/jobs/osu.py", "--repeats", "3")


def test_over_machines_each_run_of_ranks_has_a_proxy():
    started = launch(hosts=(0, 1, 2, 0), host_pids=(41, 42, 43), machines=(0, 0, 1))
    assert started.port == 7070
    assert started.env["MPIEXEC_PORT_RANGE"] == "7070:7070"
    assert started.argv[5:14] == (
        *("/venv/bin/mpiexec", "-launcher", "manual", "-rmk", "user"),
        *("-hosts", "169.254.64.1:2,169.254.64.2:1,169.254.64.1:1", "-localhost", "169.254.64.1"),
    )
    assert [proxy.rank for proxy in started.proxies] == [0, 2, 3]
    for number, proxy in enumerate(started.proxies):
        assert proxy.argv[:6] == (
            "unshare",
            "--pid",
            "--fork",
            "--kill-child=SIGKILL",
            "--",
            "/venv/bin/hydra_pmi_proxy",
        )
        assert proxy.argv[6:8] == ("--control-port", "169.254.64.1:7070")
        assert proxy.argv[-2:] == ("--proxy-id", str(number))
    assert (launch().port, launch().proxies) == (None, ())
    said = "HYDRA_LAUNCH: /venv/bin/hydra_pmi_proxy --proxy-id 0 \nHYDRA_LAUNCH_END\n" + output("complete")
    assert said_by_ranks(said) == output("complete")


def test_launch_puts_the_pairs_of_a_pattern_before_the_arguments():
    job = dataclasses.replace(JOB, pattern="required")
    assert launch(job, pairs=[(0, 1), (1, 0)]).argv[-5:] == (JOB.binary, "--pairs", "0-1,1-0", "--repeats", "3")


def test_launch_makes_the_data_file_of_hpl_from_its_arguments():
    job = mpi.MpiJob("hpl", "/jobs/xhpl", "passed", ("--n", "100"), output="hpl")
    start = launch(job)
    assert start.argv[-2:] == ("/jobs/xhpl", "/run/lab/data.txt")
    assert start.files["data.txt"].splitlines()[5].split() == ["100", "Ns"]
    assert set(launch().files) == {"rank.sh"}


def test_launch_forces_tcp_over_the_interface_of_the_host():
    env = launch().env
    assert env["MPIR_CVAR_CH4_NETMOD"] == "ofi"
    assert env["FI_PROVIDER"] == "tcp"
    assert env["FI_TCP_IFACE"] == "veth7"
    assert env["MPIR_CVAR_NOLOCAL"] == "1"
    assert env["LD_PRELOAD"] == "/lib/shim.so"
    assert env["LD_LIBRARY_PATH"] == "/venv/lib"


def test_without_a_shim_nothing_is_preloaded():
    assert "LD_PRELOAD" not in launch(shim=None).env


@pytest.mark.parametrize(("slowness", "longest"), [(0.1, "5"), (1.0, "5"), (6.67, "33"), (1e6, "1000")])
def test_waiting_ranks_look_around_less_often_on_slow_links(slowness, longest):
    assert launch(slowness=slowness).env["TESTBED_POLL_MS"] == longest


def test_launch_loads_the_tracer_into_the_program_alone():
    started = launch(tracer="/lab/trace.so")
    assert started.env["TESTBED_TRACE"] == "/run/lab/trace.json"
    assert started.env["LD_PRELOAD"] == "/lib/shim.so"  # of the shells before it
    assert '&& exec env LD_PRELOAD="$LD_PRELOAD:$TESTBED_TRACER" "$@"' in started.files["rank.sh"]
    untraced = launch()
    assert not {"TESTBED_TRACE", "TESTBED_TRACER"} & set(untraced.env)
    assert "TRACER" not in untraced.files["rank.sh"]
    with pytest.raises(ValueError, match=r'The library "/my lab/trace\.so" cannot be loaded'):
        launch(tracer="/my lab/trace.so")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hosts": (0, 2)}, "has a rank on host 2, but hosts are 2"),
        ({"shim": "/my jobs/shim.so"}, "a space or a colon"),
        ({"shim": "/a:b/shim.so"}, "a space or a colon"),
    ],
)
def test_launch_refuses_what_cannot_work(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        launch(**arguments)


@pytest.mark.parametrize(
    ("changes", "pairs", "place", "message"),
    [
        ({"args": ("a", ":", "b")}, None, "args", 'has ":" as an argument, which mpiexec takes for its own'),
        ({"args": ("x" * 130_000,)}, None, "args", "makes an argument of 130000 characters, more than Linux takes"),
        ({"pattern": "required"}, None, "pattern", "is required: fabric_bench needs to know who sends to whom"),
        ({}, [(0, 1)], "pattern", "fabric_bench takes no pattern; leave it out"),
        ({"pattern": "optional"}, [(100, 101)] * 20_000, "pattern", "makes an argument of 159999 characters"),
        ({"output": "imb", "args": ("-map", "2x2")}, None, "args", "has -map, which renumbers the ranks"),
        ({"output": "hpl", "args": ("--p", "3")}, None, "args", "has a process grid of 3×1 for 4 ranks"),
    ],
)
def test_wrong_arguments_are_a_sentence(changes, pairs, place, message):
    job = dataclasses.replace(JOB, **changes)
    ((key, sentence),) = mpi.argument_problems(job, 4, pairs)
    assert key == place
    assert sentence.startswith(message)


@pytest.mark.parametrize(
    ("changes", "pairs"),
    [
        ({}, None),
        ({"pattern": "optional"}, None),
        ({"pattern": "optional"}, [(0, 1)]),
        ({"pattern": "required"}, [(0, 1)]),
        ({"output": "imb", "args": ("-iter", "5", "PingPong")}, None),
        ({"output": "hpl", "args": ("--n", "100", "--p", "2", "--q", "2")}, None),
        ({"output": "free"}, None),
    ],
)
def test_right_arguments_are_no_problem(changes, pairs):
    assert mpi.argument_problems(dataclasses.replace(JOB, **changes), 4, pairs) == []


@pytest.fixture
def run_wrapper(tmp_path):
    """Run the wrapper of a launch with a stand-in for nsenter that says how it was called."""
    (tmp_path / "nsenter").write_text('#!/bin/sh\nprintf "%s\\n" "$TESTBED_HOST" "$@"\n')
    (tmp_path / "nsenter").chmod(0o755)

    def run(rank, **arguments):
        wrapper = tmp_path / "wrapper"
        wrapper.write_text(launch(**arguments).files["rank.sh"])
        return subprocess.run(
            ["/bin/sh", wrapper, "/jobs/my job", "a b", "$HOME"],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "PMI_RANK": str(rank)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize(("rank", "host", "pid"), [(0, "0", "41"), (1, "2", "43"), (2, "0", "41")])
def test_wrapper_enters_the_host_of_its_rank(run_wrapper, rank, host, pid):
    words = run_wrapper(rank, hosts=(0, 2, 0), host_pids=(41, 42, 43)).stdout.splitlines()
    assert words[:5] == [host, "--target", pid, "--net", "--mount"]
    assert words[-4:] == [str(Path.cwd()), "/jobs/my job", "a b", "$HOME"]


def test_wrapper_ends_with_a_sentence_when_there_is_no_host(run_wrapper):
    done = run_wrapper(2)
    assert done.returncode == 127
    assert done.stderr == "There is no host for rank 2.\n"


def test_wrapper_ends_with_a_sentence_when_the_shim_is_missing(tmp_path):
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(launch().files["rank.sh"])
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
    parsed = mpi_json.parse(output("complete"))
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
    samples = mpi_json.parse(output("shaped_pairs")).samples
    pairs = {(s.labels["src"], s.labels["dst"]) for s in samples if s.metric == "mpi_latency"}
    assert pairs == {("0", "1"), ("0", "5")}


def test_times_over_ranks_keep_the_name_rates_are_of_the_largest():
    parsed = mpi_json.parse(output("collectives"))
    assert parsed.fabric_bytes == 168960
    figures = {(s.metric, s.labels["statistic"]): s for s in parsed.samples}
    assert figures["mpi_latency", "mean"].value == 0.000586502
    assert "over" not in figures["mpi_latency", "mean"].labels
    assert figures["mpi_bandwidth", "mean"].value == pytest.approx(8 * 1024 / 0.000586502)
    pingping = figures["mpi_pingping_time", "max"]
    assert pingping.labels == {"src": "0", "dst": "4", "bytes": "1024", "over": "ranks", "statistic": "max"}
    assert pingping.value == 0.000563316
    assert figures["mpi_pingping_bandwidth", "max time"].value == pytest.approx(8 * 1024 / 0.000563316)
    multi = figures["mpi_multi_pingping_time", "min"]
    assert (multi.value, multi.labels["ranks"]) == (0.000390944, "5")
    assert figures["mpi_alltoall_bandwidth", "max time"].value == pytest.approx(8 * 4 * 1024 / 0.003888255)
    assert figures["mpi_allreduce_time", "mean"].value == 0.003175205
    assert figures["mpi_barrier_time", "mean"].value == 0.002230803


def test_the_goodput_of_a_pattern_is_that_of_each_pair():
    samples = mpi_json.parse(output("pattern")).samples
    assert {(s.metric, s.unit) for s in samples} == {("goodput", "bit/s")}
    assert [(s.labels["src"], s.labels["dst"]) for s in samples] == [(str(n), str((n + 1) % 5)) for n in range(5)]
    assert samples[0].value == pytest.approx(8 * 16384 * 134 / 0.988246688)
    assert samples[0].labels["message_bytes"] == "16384"


def test_an_empty_message_has_a_latency_and_no_bandwidth():
    samples = mpi_json.parse(changed(0, bytes=0)).samples
    assert [s.metric for s in samples if s.labels.get("bytes") == "0"] == ["mpi_latency"] * 3


def test_blank_lines_and_unknown_keys_do_no_harm():
    assert mpi_json.parse("\n" + changed(0, note="x") + "\n\n") == mpi_json.parse(output("complete"))


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
        (changed(2, over="ranks", seconds_mean="x"), 'has no time "seconds_mean"'),
        (changed(2, over="turns"), 'has a value of "over" that is not known'),
        ('{"test":"pattern","from":0,"to":1,"bytes":9,"messages":2,"seconds":0.0}', "has no time in which"),
        (changed(5, fabric_bytes=1), "does not give the 59197464 bytes that its tests add up to"),
        (changed(5, verified=None), 'does not say "verified" true or false'),
    ],
)
def test_parse_refuses_other_output_in_one_sentence(text, message):
    with pytest.raises(JobOutputError, match=re.escape(message)) as caught:
        mpi_json.parse(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


# --- check --------------------------------------------------------------------------------------------------


def check(job, text):
    return mpi.check(job, text, Ranks(tuple(range(16))))


def test_check_reads_the_figures_of_a_job_that_has_succeeded():
    assert check(JOB, output("complete")) == mpi_json.parse(output("complete"))


@pytest.mark.parametrize("name", ["wrong_data", "ended_at_time_limit", "crashed"])
def test_check_needs_the_success_pattern(name):
    with pytest.raises(JobOutputError, match="MPI job fabric_bench does not match its success pattern"):
        check(JOB, output(name))


def test_check_says_when_there_is_no_output():
    with pytest.raises(JobOutputError, match="it is empty"):
        check(JOB, "")


def test_check_does_not_take_unverified_figures():
    job = dataclasses.replace(JOB, success="end")
    with pytest.raises(JobOutputError, match="not verified"):
        check(job, changed(5, verified=False))


def test_check_takes_free_output_on_its_pattern_alone():
    job = mpi.MpiJob("is", "/jobs/is", "^ Verification *= *SUCCESSFUL$", output="free", fabric_bytes=4_700_000)
    text = " IS Benchmark Completed\n Verification    =               SUCCESSFUL\n"
    assert check(job, text) == ParsedJob((), 4_700_000, True)
    with pytest.raises(JobOutputError, match="success pattern"):
        check(job, text.replace("SUCCESSFUL", "UNSUCCESSFUL"))


@pytest.mark.parametrize("name", ["imb", "osu", "hpl"])
def test_check_reads_the_tables_of_benchmarks(name):
    file = JOBS / name / "job.yaml"
    success = yaml.safe_load(file.read_text(encoding="utf-8"))["success"]
    job = mpi.MpiJob(name, "/jobs/it", success, output=name)
    assert len(check(job, output(name)).samples) > 2
    with pytest.raises(JobOutputError, match="success pattern"):
        check(job, output(name)[:200])


# --- the manual ---------------------------------------------------------------------------------------------

README = (JOBS / "README.md").read_text(encoding="utf-8")


def test_the_lines_in_the_manual_are_what_is_read():
    lines = [line.strip().replace("…", "0.5") for line in README.splitlines() if line.startswith('    {"test"')]
    parsed = mpi_json.parse("\n".join(lines))
    assert parsed.verified
    assert {"mpi_latency", "mpi_alltoall_time", "mpi_allreduce_time", "mpi_barrier_time", "goodput"} <= {
        sample.metric for sample in parsed.samples
    }


@pytest.mark.parametrize(
    ("heading", "declared"), [("## job.yaml", build_mpi_jobs._JobFile), ("## In a scenario", spec.Mpi)]
)
def test_the_manual_has_every_key(heading, declared):
    section = README.split(heading)[1].split("\n## ")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.M))
    assert listed == {field.name for field in dataclasses.fields(declared)}


# --- the shim -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and a C compiler")
@pytest.mark.slow
def test_shim_keeps_its_promises(tmp_path):
    done = subprocess.run(
        ["make", "-C", JOBS / "shim", "check", f"BUILD={tmp_path}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
