"""What to type where a lab was too slow."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest

from testbed.base.model import Sample
from testbed.experiments.run.advice import Invocation, advice
from testbed.experiments.run.checks.fidelity import Judgement, Verdict
from testbed.experiments.run.engine import MeasuredRun, finish
from testbed.results import ResultFolder, load_run
from testbed.scenario import load_scenario
from tests.runs import head, run_of

RING = "topology: {kind: ring, switches: 4}"
UDP = "{kind: iperf3, protocol: udp}"


@pytest.fixture(autouse=True)
def no_calibration(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_command_is_what_was_typed_at_another_dilation():
    assert Invocation("torus4x4").at_dilation(400) == "testbed run torus4x4 --set lab.dilation=400"
    settings = ("engine=vm", "lab.dilation=50", " lab.dilation = 70", "lab.telemetry=0", "topology.sizes=[4, 8]")
    command = Invocation("my file.yaml", settings, ("--results", "/tmp/a b")).at_dilation(1500)
    assert command == (
        "testbed run 'my file.yaml' --set engine=vm --set lab.telemetry=0 --set 'topology.sizes=[4, 8]' "
        "--set lab.dilation=1500 --results '/tmp/a b'"
    )
    assert shlex.split(command)[2] == "my file.yaml"


def test_a_scenario_is_called_as_it_may_be_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").mkdir()
    for file in (Path("scenarios/mine.yaml"), Path("other.yaml")):
        file.write_text(RING)
    known = load_scenario(tmp_path / "scenarios" / "mine.yaml")
    assert Invocation.from_scenario(known, ("a=b",)) == Invocation("mine", ("a=b",))
    assert Invocation.from_scenario(load_scenario(Path("other.yaml"))) == Invocation("other.yaml")
    assert Invocation.from_scenario(dataclasses.replace(known, source="other.yaml")) == Invocation("other.yaml")


def slow(title, number=1, *, dilation=200.0, too_slow=True):
    verdict = "invalid" if too_slow else "pass"
    return {**head(number, title, verdict), "dilation": dilation, "too_slow": too_slow}


def said(*loads, dilation="200", more=""):
    text = f"{RING}\nlab: {{dilation: {dilation}}}\nworkloads: [{UDP}]\n{more}"
    run = run_of(text, (), loads)
    return advice(dataclasses.replace(run, manifest={**run.manifest, "dilation": 200.0}), Invocation("ring4"))


def test_what_is_well_or_wrong_for_another_reason_needs_none():
    assert said(slow("ping", too_slow=False), head(2, "mpi", "invalid")) == ""


def test_what_was_too_slow_is_named_with_the_command_to_type():
    assert said(slow("ping", too_slow=False), slow("mpi ring", 2)) == (
        "the lab was too slow for mpi ring at dilation 200; end what else keeps the machine busy, or type: "
        "testbed run ring4 --set lab.dilation=500"
    )


def test_after_a_second_attempt_the_largest_dilation_counts():
    assert said(slow("mpi ring"), slow("iperf3 udp neighbour", 2, dilation=500.0), dilation="auto") == (
        "the lab was too slow for mpi ring at dilation 200 and iperf3 udp neighbour at dilation 500; end what else "
        "keeps the machine busy, or type: testbed run ring4 --set lab.dilation=1000"
    )


def test_far_below_what_the_machine_should_manage_that_is_named():
    # Eight flows over two switches each, 1.25 times: about 16 by the default.
    assert said(slow("iperf3", dilation=1.0)).endswith("--set lab.dilation=20")
    assert said(slow("iperf3", dilation=1.0), more="engine: realtime").endswith("--set lab.dilation=2")


def test_where_there_is_no_larger_dilation_that_is_said():
    assert said(slow("iperf3"), more="links: {rate: 20 Mbit/s}") == (
        "the lab was too slow for iperf3 at dilation 200, and there is no larger one; end what else keeps the machine "
        "busy, or use fewer flows"
    )


@pytest.mark.parametrize(("asked", "told"), [(Invocation("ring4"), True), (None, False)])
def test_it_is_told_on_the_page_and_stored(asked, told, tmp_path):
    run = run_of(f"{RING}\nlab: {{dilation: 200}}\nworkloads: [{UDP}]", ())
    folder = ResultFolder(tmp_path, run.plan)
    folder.write_plan({})
    folder.write_samples([Sample("goodput", 1e9, "bit/s", {"load": "1"})])
    folder.write_manifest("invalid", ["slow"], [slow("iperf3 udp neighbour")])
    outcome = finish(MeasuredRun(folder, Judgement(Verdict.INVALID, ("slow",)), ()), lambda text: None, asked)
    command = "testbed run ring4 --set lab.dilation=500"
    assert outcome.advice.endswith(command) is told
    assert load_run(outcome.folder).manifest.get("advice", "") == outcome.advice
    assert (command in (outcome.folder / "report.html").read_text()) is told
