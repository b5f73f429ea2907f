"""The command simulate, as it is typed, and the folder it leaves."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError, VerificationError
from testbed.engines.simulate import Settings, simulate_plan
from testbed.engines.simulate.result_folder import read_points
from testbed.experiments.report import render_report
from testbed.planning import make_plan
from testbed.results import load_run
from testbed.ui.cli import plan_commands, simulate_commands  # noqa: F401 - a program of one command would take no name
from testbed.ui.cli.app import app
from testbed.ui.cli.output import results
from tests.fabrics import plan_of, scenario_of

QUICK = ("--clocks", "12000", "--warm-up", "2000", "--packet", "16", "--buffer", "32")
CYCLIC = "topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}\n"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(results, "_width", 200)


@pytest.fixture
def typed(tmp_path):
    """Exit code and what is printed on standard output; results go where the test is."""

    def run(*words):
        found = CliRunner().invoke(
            app, ["simulate", *QUICK, *words, "--results", str(tmp_path / "results")], catch_exceptions=False
        )
        return found.exit_code, found.stdout

    return run


def problems_of(*words):
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(app, ["simulate", *words], catch_exceptions=False)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.slow
def test_a_table_a_figure_and_a_folder(typed, tmp_path):
    code, text = typed("mesh4x4", "--loads", "0.3,0.1,0.9", "--seeds", "2")
    assert code == 0
    lines = text.splitlines()
    assert lines[0] == (
        "mesh4x4: uniform, packets of 16 flits, buffers of 32, 12,000 cycles, the first 2,000 not measured"
    )
    assert [line.split()[0] for line in lines[2:5]] == ["0.1", "0.3", "0.9"]
    assert "no load above 0.9375 is accepted whole: there s2→s3 is full, by the paths alone" in lines
    (folder,) = (tmp_path / "results").iterdir()
    assert lines[-1] == f"results: {folder}"
    channels = ElementTree.fromstring((folder / "channels.svg").read_text())
    words = "".join(channels.itertext())
    assert all(word in words for word in ("Load (flits/host/cycle)", "Channel utilisation", "s1→s2", "0.3"))
    assert f"figure: {folder / 'channels.svg'}" in lines
    assert f"data: {folder / 'samples.csv'}" in lines
    assert "accepted" in (folder / "samples.csv").read_text()
    drawn = "".join(ElementTree.fromstring((folder / "latency.svg").read_text()).itertext())
    assert "Accepted traffic (flits/host/cycle)" in drawn
    stored = load_run(folder)
    assert (stored.manifest["verdict"], stored.manifest["kind"], stored.is_simulated) == ("pass", "simulation", True)
    assert [(s.labels["rate"], s.labels["repeat"]) for s in stored.samples if s.metric == "accepted"] == [
        (load, seed) for load in ("0.1", "0.3", "0.9") for seed in "12"
    ]
    assert all(sample.value < 0.8 for sample in stored.samples if sample.metric == "accepted")
    assert {sample.unit for sample in stored.samples if sample.metric == "latency_p99"} == {"cycles"}
    assert {sample.labels["rate"] for sample in stored.samples if sample.metric == "link_use"} == {"0.9"}
    page = render_report(stored)
    for words in ("Nothing was built", "simulated uniform", "Accepted traffic", "flits with credits"):
        assert words in page


def test_as_json(typed, tmp_path):
    code, text = typed("mesh4x4", "--loads", "0.1,0.9", "--pattern", "transpose", "--format", "json")
    found = json.loads(text)
    (folder,) = (tmp_path / "results").iterdir()
    assert (code, found["scenario"], found["expect"], found["deadlock"]) == (0, "mesh4x4", "deadlock_free", None)
    assert found["settings"] == {
        "pattern": "transpose", "clocks": 12000, "warm_up": 2000, "packet": 16, "buffer": 32, "header": 3,
        "channels": 1, "buffer_gap": None, "output_gap": 0,
    }  # fmt: skip
    assert [row["saturated"] for row in found["loads"]] == [False, True]
    assert found["throughput"] == max(row["accepted"]["mean"] for row in found["loads"])
    assert found["static_bound"] == pytest.approx(1 / 3)
    assert (found["results"], found["figure"]) == (str(folder), str(folder / "latency.svg"))


@pytest.mark.long
def test_a_declared_deadlock_is_shown_and_passes(typed, tmp_path):
    (tmp_path / "declared.yaml").write_text(CYCLIC + "expect: deadlock\n")
    code, text = typed(str(tmp_path / "declared.yaml"), "--loads", "1", "--buffer", "16", "--clocks", "300000")
    assert code == 0
    (line,) = (line for line in text.splitlines() if line.startswith("deadlock as declared by cycle "))
    ring = line.split("seed 1: ")[1].split(" waits for ")
    assert len(ring) == 7
    assert ring[0] == ring[-1] == "s1→s2"
    assert "3, 3 deadlocked" in text
    assert not list((tmp_path / "results").glob("*/latency.svg"))


def test_a_load_that_deadlocked_is_not_said_to_be_accepted(typed):
    code, text = typed("ring5-deadlock", "--loads", "0.02,1", "--buffer", "16", "--clocks", "40000", "--seeds", "1")
    assert code == 0
    (line,) = (line for line in text.splitlines() if line.startswith("throughput: "))
    assert line.endswith(" at load 0.02; load 1 deadlocked")
    assert "\\x0a" not in text  # of a heading of two lines


def test_a_declared_deadlock_that_does_not_form_ends_with_3(typed, tmp_path):
    (tmp_path / "declared.yaml").write_text(CYCLIC + "expect: deadlock\n")
    found = CliRunner().invoke(
        app,
        ["simulate", str(tmp_path / "declared.yaml"), "--loads", "0.01", *QUICK, "--results", str(tmp_path / "r")],
        catch_exceptions=False,
    )
    assert found.exit_code == 3
    assert "the declared deadlock did not form; give more load" in found.stderr


def test_a_deadlock_of_a_proved_plan_ends_with_1(tmp_path):
    plan = make_plan(scenario_of(CYCLIC + "expect: deadlock\n"))
    scenario = dataclasses.replace(plan.scenario, expect="deadlock_free")
    settings = Settings(clocks=300_000, warm_up=2000, packet=16, buffer=16)
    outcome = simulate_plan(plan, settings, [1.0], 1, tmp_path, lambda text: None)
    assert simulate_commands._exit_code(outcome) == 0
    undeclared = dataclasses.replace(outcome, plan=dataclasses.replace(plan, scenario=scenario))
    assert simulate_commands._exit_code(undeclared) == 1


def test_an_unproved_plan_is_refused_and_leaves_nothing(typed, tmp_path):
    (tmp_path / "cyclic.yaml").write_text(CYCLIC)
    with pytest.raises(VerificationError, match="declares it with expect: deadlock"):
        typed(str(tmp_path / "cyclic.yaml"))
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_near_saturation_several_seeds_run_and_spread_is_shown(typed):
    words = ("mesh4x4", "--loads", "0.1,0.9", "--channels", "2", "--format", "json")
    loads = json.loads(typed(*words)[1])["loads"]
    assert [row["seeds"] for row in loads] == [1, 3]
    assert loads[1]["accepted"]["min"] < loads[1]["accepted"]["mean"] < loads[1]["accepted"]["max"]
    assert [row["seeds"] for row in json.loads(typed(*words, "--seeds", "2")[1])["loads"]] == [2, 2]


def test_copies_and_gaps_are_of_the_flit_level():
    options = ("--channels", "2", "--buffer-gap", "0", "--output-gap", "1")
    assert problems_of("mesh4x4", "--level", "packet", *options) == [
        f"{name}: applies only to --level flit; leave it out" for name in options[::2]
    ]


def test_all_that_is_wrong_with_the_options_comes_at_once():
    found = problems_of(
        "mesh4x4", "--loads", "0,0.2,much,1.5,0.2", "--seeds", "0", "--cycles", "0", "--header", "2", "--jobs", "0"
    )
    assert found == [
        "--loads: should be above 0 and up to 1 flit per host and cycle, not 0",
        '--loads: should be numbers such as 0.1,0.2,0.3, not "much"',
        "--loads: should be above 0 and up to 1 flit per host and cycle, not 1.5",
        "--loads: 0.2 is listed twice",
        "--cycles: should be from 1 to 1,000,000,000, not 0",
        "--header: should be from 3 to 1,000, not 2",
        "--seeds: should be from 1 to 1,000, not 0",
        "--jobs: should be 1 or more, not 0",
    ]


@pytest.mark.parametrize("load", ["nan", "inf", "-0.1", "1.0001"])
def test_loads_that_are_none(load):
    assert problems_of("mesh4x4", "--loads", load) == [
        f"--loads: should be above 0 and up to 1 flit per host and cycle, not {load}"
    ]


def test_numbers_that_do_not_fit_each_other():
    assert problems_of("mesh4x4", "--buffer", "64", "--cycles", "5000") == [
        "--buffer: holds 64 flits and a packet has 128; cut-through takes an output only if the next buffer has room "
        "for the whole packet, so give it 128 or more",
        "--warm-up: takes 50,000 of 5,000 cycles, so none is measured",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "pattern", "sentence"), [
    ("mesh4x4", "transpsoe", 'there is no pattern "transpsoe". Did you mean "transpose"? Known: neighbour, bit_rev'),
    ("pairs8", "uniform", None),
    ("topology: {kind: flat, hosts: 6}", "complement", 'pattern "complement" needs a power of two of hosts, not 6'),
    ("topology: {kind: flat, hosts: 2}", "butterfly", '"butterfly" maps each of 2 hosts to itself; use another'),
    ("topology: {kind: flat, hosts: 1}", "uniform", "a load needs two hosts or more and this topology has one"),
])  # fmt: skip
def test_patterns_that_do_not_fit(tmp_path, typed, scenario, pattern, sentence):
    if ":" in scenario:
        (tmp_path / "one.yaml").write_text(scenario)
        scenario = str(tmp_path / "one.yaml")
    if sentence is None:
        assert typed(scenario, "--pattern", pattern, "--loads", "0.1")[0] == 0
        return
    with pytest.raises(InputError) as caught:
        typed(scenario, "--pattern", pattern)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"--pattern: {sentence}")
    assert not (tmp_path / "results").exists()


def test_aggregated_links_are_refused(typed, tmp_path):
    with pytest.raises(InputError) as caught:
        typed("ring8-lag")
    (problem,) = caught.value.problems
    assert str(problem).endswith(
        "ring8-lag.yaml: links.aggregate: the simulator knows no aggregated links; "
        "simulate with --set links.aggregate=false"
    )
    assert not (tmp_path / "results").exists()
    assert typed("ring8-lag", "--set", "links.aggregate=false", "--loads", "0.1")[0] == 0


SETTINGS = Settings(clocks=12000, warm_up=2000, packet=16, buffer=32)


def without_seconds(points):
    return [dataclasses.replace(point, seconds=0) for point in points]


def test_one_thread_or_several_give_the_same(tmp_path):
    plan = plan_of("mesh", sizes=[4, 4])
    found = [
        simulate_plan(plan, SETTINGS, [0.1, 0.5], 3, tmp_path / str(jobs), lambda text: None, jobs=jobs)
        for jobs in (1, 4)
    ]
    assert len(found[0].points) == 6
    assert without_seconds(found[0].points) == without_seconds(found[1].points)


@pytest.mark.long
@pytest.mark.slow
def test_several_processes_give_the_same(tmp_path):
    words = ["simulate", "torus4x4", "--loads", "0.2,0.7", "--seeds", "2", *QUICK, "--results"]
    root = str(Path(__file__).parents[3])
    others = [
        subprocess.Popen(
            [sys.executable, "-m", "testbed", *words, str(tmp_path / name)],
            env={**os.environ, "PYTHONPATH": root}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    assert [other.wait(timeout=240) for other in others] == [0, 0]
    CliRunner().invoke(app, [*words, str(tmp_path / "here")], catch_exceptions=False)
    folders = [next((tmp_path / name).iterdir()) for name in ("one", "two", "here")]
    points = [without_seconds(read_points(folder)) for folder in folders]
    assert points[0] == points[1] == points[2]
    assert len(points[0]) == 4


def test_all_to_all_is_no_endless_load(tmp_path):
    plan = plan_of("mesh", sizes=[4, 4])
    settings = dataclasses.replace(SETTINGS, pattern="all_to_all")
    with pytest.raises(InputError, match="all_to_all is no order of packets; uniform draws each packet's destination"):
        simulate_plan(plan, settings, [0.1], 1, tmp_path, lambda text: None)


def test_what_is_done_is_kept_and_only_the_rest_is_run(tmp_path):
    plan = plan_of("mesh", sizes=[4, 4])

    def interrupt(text):
        if text.startswith("2 of 6"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_plan(plan, SETTINGS, [0.1, 0.5], 3, tmp_path, interrupt, jobs=1)
    (folder,) = tmp_path.iterdir()
    kept = read_points(folder)
    assert [(point.load, point.seed) for point in kept] == [(0.1, 1), (0.1, 2)]
    said: list[str] = []
    outcome = simulate_plan(plan, SETTINGS, [0.1, 0.5], 3, tmp_path, said.append, resume=True)
    assert said[0] == "2 of 6 runs are done already"
    assert "4 runs, " in said[2]
    assert list(outcome.points[:2]) == kept
    whole = simulate_plan(plan, SETTINGS, [0.1, 0.5], 3, tmp_path / "whole", said.append)
    assert without_seconds(outcome.points) == without_seconds(whole.points)
    more = simulate_plan(plan, SETTINGS, [0.2], 1, tmp_path, said.append, resume=True)
    assert (more.folder, len(more.points)) == (folder, 7)


def test_what_was_asked_differently_is_not_resumed(tmp_path):
    plan = plan_of("mesh", sizes=[4, 4])
    said: list[str] = []
    say = said.append
    with pytest.raises(InputError, match=r"^resume: there is no simulation of test in "):
        simulate_plan(plan, SETTINGS, [0.1], 1, tmp_path, say, resume=True)
    simulate_plan(plan, SETTINGS, [0.1], 1, tmp_path, say)
    (folder,) = tmp_path.iterdir()
    with pytest.raises(InputError) as caught:
        simulate_plan(plan, dataclasses.replace(SETTINGS, buffer=64), [0.1], 1, tmp_path, say, resume=True)
    assert str(caught.value) == f"{folder}: buffer was 32 and is 64 now; leave resume out to start anew"
    (file,) = (folder / "points").iterdir()
    file.write_text("{}")
    with pytest.raises(InputError, match=r"is damaged: KeyError\('latency'\); delete it to have that run again"):
        simulate_plan(plan, SETTINGS, [0.1], 1, tmp_path, say, resume=True)
    (folder / "simulation.json").write_text('{"scenario": "test", "schema_version": 0}')
    with pytest.raises(InputError, match="has schema version 0; this program reads 1"):
        simulate_plan(plan, SETTINGS, [0.1], 1, tmp_path, say, resume=True)


def test_the_program_has_the_command_with_help_and_an_example():
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "simulate", "--help"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": root, "COLUMNS": "200"},
    )  # fmt: skip
    assert (done.returncode, "testbed simulate" in done.stdout, "Example" in done.stdout) == (0, True, True)
