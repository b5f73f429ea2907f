"""A lab whose links change while it runs, `dilation: auto` from end to end, and the calibration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.engines.lab.control.build import build_lab
from testbed.experiments.run.checks.fidelity import Judgement, OverloadReason, Verdict
from testbed.experiments.run.dilation import choose
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.loads import one_load
from testbed.experiments.run.loads.run_iperf3 import run_iperf3
from testbed.planning.rates import at_dilation
from testbed.results import load_run
from testbed.results.samples import samples_from_csv

from .conftest import execute, plan_of

_TESTBED = [sys.executable, "-m", "testbed"]
_AUTO = """
topology: {kind: mesh, sizes: [2, 2]}
lab: {dilation: auto, cpu_share: 0.2}
workloads: [{kind: iperf3, protocol: udp, seconds: 5, omit: 1, repeats: 1, offered_load: 0.8}]
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_links_take_another_rate_while_the_lab_runs(untouched):
    plan = plan_of("topology: {kind: mesh, sizes: [2]}\nlinks: {host_rate: 500 Mbit/s}\nlab: {dilation: 50}")
    with build_lab(plan) as lab:
        assert lab.facts.dilation == 50
        for dilation, trunk, edge in (
            (10, "100Mbit", "50Mbit"),
            (400, "2500Kbit", "1250Kbit"),
            (50, "20Mbit", "10Mbit"),
        ):
            lab.set_rates(at_dilation(plan, dilation))
            assert lab.facts.dilation == dilation
            assert f"rate {trunk} " in execute(lab, "tc", "class", "show", "dev", "s1-eth2")
            assert f"rate {edge} " in execute(lab, "tc", "class", "show", "dev", "s1-eth1")
            assert f"rate {edge} " in execute(lab, "tc", "class", "show", "dev", "eth0", host="h2")
            assert lab.shaping_problems() == []
            assert lab.reach() == []


@pytest.mark.long
@pytest.mark.alone
def test_a_scenario_chooses_its_dilation(tmp_path, untouched):
    file = tmp_path / "auto.yaml"
    file.write_text(_AUTO)
    done = subprocess.run(
        [*_TESTBED, "-v", "run", str(file), "--results", str(tmp_path / "results"), "--format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["verdict"] != "fail", done.stderr  # a busy machine makes it invalid
    assert "choosing the dilation: trying" in done.stderr
    folder = Path(found["results"])
    manifest = json.loads((folder / "manifest.json").read_text())
    choice = manifest["dilation_choice"]
    tried = {one["dilation"]: one["verdict"] for one in choice["tried"]}
    assert (
        manifest["dilation"] == choice["dilation"] == min(step for step, verdict in tried.items() if verdict == "pass")
    )
    assert all(verdict != "pass" for step, verdict in tried.items() if step < manifest["dilation"])
    assert manifest["cpu_share"]["processors"] == 0.2
    assert "dilation: auto" in (folder / "scenario.yaml").read_text()
    report = (folder / "report.html").read_text()
    assert f"{manifest['dilation']:g} times slower" in report or manifest["dilation"] == 1
    # Four flows of 8/10 of a link each, in real-world units whatever was chosen.
    goodput = [sample["value"] for sample in found["samples"] if sample["metric"] == "goodput"]
    assert goodput == pytest.approx([0.8 * 957e6] * 4, rel=0.1)


@pytest.mark.long
@pytest.mark.alone
def test_with_jobs_the_dilation_is_tried_with_one(tmp_path, untouched):
    load = "{kind: mpi, job: fabric_bench, args: [--tests, alltoall, --repeats, '3']}"
    file = tmp_path / "jobs.yaml"
    file.write_text(f"topology: {{kind: mesh, sizes: [2, 2]}}\nworkloads: [{load}]\n")
    done = subprocess.run(
        [*_TESTBED, "-v", "run", str(file), "--results", str(tmp_path / "results"), "--format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["verdict"] != "fail", done.stderr  # a busy machine makes it invalid
    assert "with an MPI all-to-all" in done.stderr
    manifest = json.loads((Path(found["results"]) / "manifest.json").read_text())
    choice = manifest["dilation_choice"]
    with_job = [one for one in choice["tried"] if one["job"]]
    at_it = [one["verdict"] for one in with_job if one["dilation"] == manifest["dilation"]]
    assert choice["kept_up_with_job"] is ("pass" in at_it)
    counted = choice["tried"] if choice["kept_up_with_job"] else [one for one in choice["tried"] if not one["job"]]
    failed = max((one["dilation"] for one in counted if one["verdict"] != "pass"), default=0)
    passed = [
        one["dilation"] for one in (with_job if choice["kept_up_with_job"] else counted) if one["verdict"] == "pass"
    ]
    assert choice["dilation"] == manifest["dilation"] == min(step for step in passed if step > failed)


@pytest.mark.long
@pytest.mark.quiet(seat=1)
def test_a_load_the_lab_is_too_slow_for_runs_again_slower(tmp_path, untouched, monkeypatch):
    monkeypatch.setattr(choose, "run_pilot", lambda plan, lab, pilot, step: Judgement(Verdict(2 * (step < 150)), ()))
    runs = []

    def slow_at_first(context, spec):
        runs.append(run_iperf3(context, spec))
        if len(runs) == 1:
            runs[0].findings.append((Verdict.INVALID, OverloadReason("the lab was too slow")))
        return runs[-1]

    monkeypatch.setitem(one_load.RUNNERS, "iperf3", one_load.Runner(slow_at_first))
    load = "{kind: iperf3, protocol: udp, seconds: 2, omit: 0, repeats: 1, offered_load: 0.5}"
    plan = plan_of(f"topology: {{kind: mesh, sizes: [2]}}\nworkloads: [{{kind: ping, count: 2}}, {load}, {load}]")
    run = load_run(run_scenario(plan, tmp_path, lambda text: None).folder)
    assert run.manifest["dilation"] == run.manifest["dilation_choice"]["dilation"] == 150
    assert [entry["dilation"] for entry in run.manifest["loads"]] == [150, 300, 150]
    (before,) = run.manifest["loads"][1]["attempts"]
    assert (before["dilation"], before["verdict"], before["reasons"][-1]) == (150, "invalid", "the lab was too slow")
    # What counts is in real-world units by its own dilation, and the lab is in the end what it was.
    goodput = [sample.value for sample in run.samples if sample.metric == "goodput"]
    assert goodput == pytest.approx([0.5 * 957e6] * 4, rel=0.1)
    assert run.manifest["verdict"] != "fail", run.manifest["reasons"]
    first = samples_from_csv((run.path / before["folder"] / "samples.csv").read_text())
    assert {sample.labels["load"] for sample in first} == {"2"}
    assert (run.path / "telemetry-2.npz").is_file()
    assert (run.path / before["folder"] / "telemetry-2.npz").is_file()


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.timeout(400)
def test_calibration_is_measured_stored_and_shown(tmp_path, untouched):
    done = subprocess.run(
        [*_TESTBED, "-v", "doctor", "--calibrate", "--format", "json"], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr
    found = json.loads(done.stdout)["calibration"]
    assert "frames a second over all switches" in done.stderr
    assert 1_000 < found["frame_hops"] < 1e9
    assert found["frame_hops_failed"] is None or found["frame_hops_failed"] > found["frame_hops"]
    assert 0 < found["hop_seconds"]["least"] <= found["hop_seconds"]["median"] <= found["hop_seconds"]["most"] < 0.1
    assert Path(found["file"]) == tmp_path / "cache" / "testbed" / "calibration.json"
    again = subprocess.run([*_TESTBED, "doctor"], capture_output=True, text=True, check=False).stdout
    assert f"sustains {found['frame_hops']:,.0f} frames a second" in again
