"""The commands as a user types them, and what they leave behind when things go wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.results import INCOMPLETE, load_run

from .leftovers import processes_of

_TESTBED = [sys.executable, "-m", "testbed"]
# Three seconds, since of iperf3's whole seconds one whose timer was late does not count.
_SMALL = """
topology: {kind: mesh, sizes: [2, 2]}
lab: {dilation: 100}
workloads:
  - {kind: ping, count: 2}
  - {kind: iperf3, protocol: udp, seconds: 3, omit: 0, repeats: 1, offered_load: 0.5}
  - {kind: iperf3, protocol: tcp, seconds: 3, omit: 0, repeats: 1}
"""
_LONG = (
    "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}\n"
    "workloads: [{kind: iperf3, protocol: udp, seconds: 60, repeats: 1}]\n"
)


def command(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_TESTBED, *arguments], input=text, capture_output=True, text=True, check=False)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(_SMALL)
    return file


@pytest.fixture
def long(tmp_path: Path) -> Path:
    file = tmp_path / "long.yaml"
    file.write_text(_LONG)
    return file


@pytest.mark.long
def test_run_prints_one_object_and_stores_everything(small, tmp_path, untouched):
    done = command("run", str(small), "--results", str(tmp_path / "results"), "--format", "json")
    found = json.loads(done.stdout)
    assert done.returncode == {"pass": 0, "warn": 3}.get(found["verdict"], 1), done.stderr
    run = load_run(Path(found["results"]))
    assert {sample["metric"] for sample in found["samples"]} >= {"goodput", "rtt_mean", "loss", "link_use", "cpu_idle"}
    assert len(found["samples"]) == len(run.samples)
    goodput = [sample for sample in found["samples"] if sample["metric"] == "goodput"]
    assert len(goodput) == 8
    assert all(sample["predicted"] > 0 and sample["unit"] == "bit/s" for sample in goodput)
    # Real-world units: far above what a lab link carries, below the real link.
    assert all(1e7 < sample["value"] < 1e9 for sample in goodput)
    names = {str(file.relative_to(run.path)) for file in run.path.rglob("*") if file.is_file()}
    assert {"manifest.json", "scenario.yaml", "plan.json", "environment.json", "samples.csv", "report.html"} <= names
    assert len([name for name in names if name.endswith("-server.json")]) == 8
    again = command("run", str(run.path / "scenario.yaml"), "--set", "workloads=[]")
    assert "nothing would be measured" in again.stderr
    assert again.returncode == 2


@pytest.mark.alone
def test_up_status_shell_down(untouched):
    up = command("up", "mesh4x2", "--name", "first", "--format", "json")
    assert up.returncode == 0, up.stderr
    try:
        taken = command("up", "mesh4x2", "--name", "first")
        assert taken.returncode == 2
        assert "is already running" in taken.stderr
        second = command("up", "torus4x2", "--name", "second", "--engine", "realtime")
        assert second.returncode == 0, second.stderr
        labs = json.loads(command("status", "--format", "json").stdout)["labs"]
        labs = [lab for lab in labs if not lab["measured_by_process"]]
        assert [(lab["lab"], lab["switches"], lab["hosts"]) for lab in labs] == [("first", 8, 16), ("second", 8, 16)]
        assert labs[1]["datapath"] == "model"
        which = command("down")
        assert which.returncode == 2
        assert "first, second" in which.stderr
        assert 'Did you mean "first"?' in command("shell", "frist").stderr
        shell = command("shell", "first", text="nodes\nh1 ping -c 1 h16\ns1 ip -o link show s1-eth1\npingall\nexit\n")
        said = shell.stdout + shell.stderr  # Mininet logs to standard error
        assert "1 received" in said
        assert "s1-eth1" in said
        assert "0% dropped" in said
        assert json.loads(command("status", "first", "--format", "json").stdout)["labs"][0]["doing"] == "idle"
    finally:
        down = command("down", "--all", "--format", "json")
    assert [ended["lab"] for ended in json.loads(down.stdout)["ended"]] == ["first", "second"]
    left = json.loads(command("status", "--format", "json").stdout)["labs"]
    assert [lab["lab"] for lab in left if not lab["measured_by_process"]] == []


def _start(file: Path, results: Path) -> subprocess.Popen[str]:
    argv = [*_TESTBED, "-v", "run", str(file), "--results", str(results)]
    return subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)


def _wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"never said {text!r}")


def test_a_lab_that_is_measured_is_ended_by_its_own_program_only(long, tmp_path, untouched):
    with _start(long, tmp_path / "results") as process:
        _wait_for(process, "1 of 1, iperf3")
        labs = json.loads(command("status", "--format", "json").stdout)["labs"]
        (lab,) = [one for one in labs if one["measured_by_process"] == process.pid]
        assert (lab["scenario"], lab["switches"], lab["hosts"]) == ("long", 4, 4)
        assert 0 < lab["running_seconds"] < 120
        inside = command("exec", lab["lab"], "h1", "--", "ping", "-c", "1", "h4")
        assert "1 received" in inside.stdout, inside.stderr
        refused = command("down", lab["lab"])
        assert refused.returncode == 2
        assert f"process {process.pid} measures in it and ends it; interrupt that" in refused.stderr
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


@pytest.mark.parametrize("moment", ["building the lab: links", "building the lab: ports", "1 of 1, iperf3"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(moment, number, long, tmp_path, untouched):
    with _start(long, tmp_path / "results") as process:
        _wait_for(process, moment)
        process.send_signal(number)
        assert process.wait(20) == 130
    assert all(folder.name.endswith(INCOMPLETE) for folder in (tmp_path / "results").iterdir())


@pytest.mark.parametrize("moment", ["building the lab: ports", "1 of 1, iperf3"])
def test_a_killed_runner_leaves_nothing(moment, long, tmp_path, untouched):
    with _start(long, tmp_path / "results") as process:
        _wait_for(process, moment)
        process.kill()
    assert all(folder.name.endswith(INCOMPLETE) for folder in (tmp_path / "results").iterdir())


def test_a_killed_switch_in_mid_run_is_one_sentence(long, tmp_path, untouched):
    with _start(long, tmp_path / "results") as process:
        _wait_for(process, "1 of 1, iperf3")
        time.sleep(1)
        ours = processes_of(untouched)
        daemons = [pid for pid, command in ours.items() if command.startswith("ovs-vswitchd unix:/run/lab")]
        for pid in daemons:
            os.kill(pid, signal.SIGKILL)
        assert len(daemons) == 1
        assert process.wait(30) == 1
        assert process.stderr is not None
        rest = process.stderr.read()
        assert "ovs-vswitchd was killed by signal 9" in rest
        assert "Traceback" not in rest
    (folder,) = (tmp_path / "results").iterdir()
    assert folder.name.endswith(INCOMPLETE)


@pytest.mark.long
def test_two_labs_side_by_side(untouched, tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(
        "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}\nworkloads: [{kind: ping, count: 40}]\n"
    )
    runs = [_start(file, tmp_path / "results") for _ in range(2)]
    for run in runs:
        run.communicate(timeout=120)
    assert [run.returncode for run in runs] == [0, 0]
    assert len(list((tmp_path / "results").iterdir())) == 2


def test_without_root_one_sentence(small, tmp_path, untouched):
    # A user namespace without any mapping: nobody, but with access to this clone wherever it lies.
    done = subprocess.run(
        ["unshare", "--user", *_TESTBED, "run", str(small), "--results", str(tmp_path / "r")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "run the command with sudo" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "r").exists()


def test_results_that_cannot_be_written(small, untouched):
    done = command("run", str(small), "--results", "/proc/results")
    assert done.returncode == 2
    assert "results cannot be written there" in done.stderr


def test_a_full_disk_is_one_sentence_and_keeps_what_was_stored(small, tmp_path, untouched):
    place = tmp_path / "tiny"
    place.mkdir()
    # In a mount namespace of its own, which takes the small file system with it.
    script = 'mount -t tmpfs -o size=96k tiny "$0"; "$@"; code=$?; find "$0" -type f; exit $code'
    run = [*_TESTBED, "run", str(small), "--results", str(place)]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(place), *run], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "cannot be written: No space left on device\nwhat was stored until then: " in done.stderr
    assert "Traceback" not in done.stderr
    files = [line for line in done.stdout.splitlines() if line.startswith(str(place))]
    assert any(name.endswith("plan.json") for name in files)
    assert all(f"{INCOMPLETE}/" in name for name in files)
    assert not any(name.endswith((".partial", "manifest.json")) for name in files)
