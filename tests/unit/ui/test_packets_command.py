"""`testbed simulate --level packet`, as it is typed, and what it refuses."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError, VerificationError
from testbed.engines.simulate.result_folder import read_points
from testbed.results import load_run
from testbed.ui.cli import plan_commands, simulate_commands  # noqa: F401 - a program of one command would take no name
from testbed.ui.cli.app import app
from testbed.ui.cli.output import results

QUICK = ("--level", "packet", "--duration", "20", "--warm-up", "4")
CYCLIC = "topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}\n"
LAYERED = "topology: {kind: ring, switches: 6}\nrouting: {kind: dl, layers: 2}\nassignment: {kind: openflow}\n"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(results, "_width", 200)


@pytest.fixture
def typed(tmp_path):
    """Exit code, standard output and error of the command."""

    def run(*words):
        found = CliRunner().invoke(
            app, ["simulate", *QUICK, *words, "--results", str(tmp_path / "results")], catch_exceptions=False
        )
        return found.exit_code, found.stdout, found.stderr

    return run


@pytest.fixture
def refused(tmp_path):
    """What is wrong, a sentence each; nothing is left."""

    def run(*words):
        with pytest.raises(InputError) as caught:
            CliRunner().invoke(
                app, ["simulate", *words, "--results", str(tmp_path / "results")], catch_exceptions=False
            )
        assert not (tmp_path / "results").exists()
        return [str(problem) for problem in caught.value.problems]

    return run


@pytest.mark.slow
def test_a_table_with_pauses_a_figure_and_a_folder(typed, tmp_path):
    code, text, _ = typed("mesh4x4", "--loads", "0.9,0.2", "--seeds", "2")
    assert code == 0
    lines = text.splitlines()
    assert lines[0] == (
        "mesh4x4: uniform, PAUSE, frames of 1522 bytes, buffers of 43 frames a port, XOFF 41, XON 20; "
        "20 ms, the first 4 not measured"
    )
    assert "hosts paused" in lines[1]
    assert [line.split()[0] for line in lines[2:4]] == ["0.2", "0.9"]
    (folder,) = (tmp_path / "results").iterdir()
    assert "-packets-mesh4x4" in folder.name
    assert (folder / "latency.svg").exists()
    samples = load_run(folder).samples
    assert [sample.value for sample in samples if sample.metric == "loss"] == [0] * 4
    assert {sample.unit for sample in samples if sample.metric == "latency_mean"} == {"s"}
    assert [point.links.drops for point in read_points(folder)] == [0] * 4


@pytest.mark.slow
def test_without_flow_control_frames_are_dropped(typed):
    code, text, _ = typed("mesh4x4", "--flow-control", "none", "--loads", "0.1,1", "--pattern", "transpose",
                          "--format", "json")  # fmt: skip
    found = json.loads(text)
    assert (code, found["level"], found["settings"]["flow_control"]) == (0, "packet", "none")
    low, high = found["loads"]
    assert low["loss"]["mean"] == 0
    assert high["loss"]["mean"] > 0.1
    assert high["pauses"]["mean"] == high["hosts_paused"]["mean"] == 0


@pytest.mark.slow
def test_it_goes_on_where_it_was_with_the_same_flow_control(typed, tmp_path):
    assert typed("mesh4x4", "--loads", "0.1")[0] == 0
    code, _, said = typed("mesh4x4", "--loads", "0.1,0.2", "--resume")
    assert (code, "1 of 2 runs are done already" in said) == (0, True)
    with pytest.raises(InputError, match="flow_control was pause and is none now"):
        typed("mesh4x4", "--loads", "0.1", "--flow-control", "none", "--resume")
    assert len(list((tmp_path / "results").iterdir())) == 1


@pytest.mark.slow
def test_a_declared_deadlock_forms_under_pause_not_with_drops(typed, tmp_path):
    file = tmp_path / "declared.yaml"
    file.write_text(CYCLIC + "expect: deadlock\n")
    code, text, _ = typed(str(file), "--loads", "1", "--buffer", "6100", "--duration", "5000")
    assert code == 0
    (line,) = (line for line in text.splitlines() if line.startswith("deadlock as declared by "))
    ring = line.split("seed 1: ")[1].split(" waits for ")
    assert len(ring) == 7
    assert ring[0] == ring[-1]
    (folder,) = (tmp_path / "results").iterdir()
    assert f"buffer occupancy over time: {folder / 'deadlock.svg'} and {folder / 'deadlock.gif'}" in text
    code, text, _ = typed(str(file), "--loads", "1", "--flow-control", "none")
    assert code == 0
    assert "without flow control nothing waits" in text
    code, _, said = typed(str(file), "--loads", "0.01")
    assert code == 3
    assert "the declared deadlock did not form; give more load (--loads 1) or time (--duration)" in said


def test_an_unproved_plan_is_refused(typed, tmp_path):
    (tmp_path / "cyclic.yaml").write_text(CYCLIC)
    with pytest.raises(VerificationError, match="declares it with expect: deadlock"):
        typed(str(tmp_path / "cyclic.yaml"))
    assert not (tmp_path / "results").exists()


def test_all_that_is_wrong_with_the_options_comes_at_once(refused):
    assert refused(
        "mesh4x4", "--level", "packet", "--loads", "1.5", "--frame", "20", "--duration", "0", "--delay", "-1",
        "--flow-control", "stop", "--cycles", "5", "--seeds", "0",
    ) == [
        "--cycles: applies only to --level flit; leave it out",
        "--loads: should be above 0 and up to all of its link's rate, not 1.5",
        "--duration: should be from 0.01 to 60,000.0, not 0.0",
        "--frame: should be from 64 to 9,600, not 20",
        "--delay: should be from 0 to 1,000, not -1.0",
        "--seeds: should be from 1 to 1,000, not 0",
        '--flow-control: should be one of none, pause, pfc, not "stop"',
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "sentence"), [
    (("--buffer", "1000"),
     "--buffer: holds 1,000 bytes and a frame has 1,522; a switch that stores and forwards needs room for a whole one, "
     "so give it 1,522 or more"),
    (("--xoff", "70000"),
     "--xoff: of 70,000 bytes is not below the buffer of 65,536; no memory would be left for the frames that still "
     "arrive after a pause was asked for"),
    (("--xoff", "64000"),
     "--buffer: has room for 43 frames; 2 can arrive after a pause was asked for, so frames would be dropped. Give it "
     "66,968 bytes or more, or a lower XOFF threshold"),
    (("--delay", "600"),
     "--buffer: has room for 43 frames; 99 can arrive after a pause was asked for, so frames would be dropped. Give it "
     "152,200 bytes or more"),
    (("--xoff", "20000", "--xon", "20000"), "--xon: of 20,000 bytes should be below the XOFF threshold of 20,000"),
    (("--xon", "64000"), "--xon: of 64,000 bytes should be below the XOFF threshold of 62,402"),
    (("--xoff", "1000"), "--xoff: should be 1,522 bytes or more, not 1,000"),
    (("--flow-control", "none", "--xoff", "30000"),
     "--xoff: is a threshold of PAUSE frames, and without flow control there are none"),
    (("--shared", "--xon", "3000"),
     "--xon: follows what is free of the memory where ports share it; leave it out, or have memory of each port"),
    (("--warm-up", "300"), "--warm-up: takes 300 of 200 ms, so none is measured"),
])  # fmt: skip
def test_memory_and_thresholds_that_do_not_fit(refused, words, sentence):
    assert refused("mesh4x4", "--level", "packet", *words) == [sentence]


def test_options_of_packets_say_nothing_of_flits(refused):
    assert refused("mesh4x4", "--xoff", "5000", "--flow-control", "pfc", "--warm-up", "10.5") == [
        "--flow-control: applies only to --level packet; leave it out",
        "--xoff: applies only to --level packet; leave it out",
        "--warm-up: should be whole cycles, not 10.5",
    ]


def test_replays_are_of_flits(refused):
    assert refused("mesh4x4", "--level", "packet", "--message", "5000") == [
        "--message: applies only to --level flit; leave it out"
    ]


def test_layers_that_are_no_priorities(refused, tmp_path):
    file = tmp_path / "layered.yaml"
    file.write_text(LAYERED)
    assert refused(str(file), "--level", "packet") == [
        "--flow-control: PAUSE stops a whole link with all priorities on it, and the plan is proved for 2 layers that "
        "wait on their own; use pfc"
    ]
