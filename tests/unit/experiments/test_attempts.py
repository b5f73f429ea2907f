"""Loads for which the lab was too slow run once more at a larger dilation, without a lab."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from testbed.base.errors import StorageError
from testbed.base.model import Sample
from testbed.experiments.run import attempts
from testbed.experiments.run.attempts import Attempts
from testbed.experiments.run.checks.fidelity import OverloadReason, Verdict
from testbed.experiments.run.dilation.choose import DilationChoice, Trial, larger_dilation
from testbed.experiments.run.loads.context import LoadOutcome
from testbed.experiments.run.loads.one_load import record_of
from testbed.planning import make_plan
from testbed.planning.rates import at_dilation
from testbed.results import ResultFolder
from testbed.scenario import parse_scenario

UDP, MPI = "{kind: iperf3, protocol: udp}", "{kind: mpi, job: fabric_bench}"
TOO_SLOW = (Verdict.INVALID, OverloadReason("the processors were idle 0.0 % of the time"))
CHOICE = DilationChoice(200.0, 200.0, "default", 1.25, "neighbour", 1.5, (), 10.0)


def plan_of(*loads, more=""):
    text = f"topology: {{kind: ring, switches: 4}}\n{more}\nworkloads: [{', '.join(loads)}]"
    return make_plan(parse_scenario(text, "ring.yaml"))


class Runs:
    """Runs nothing; each attempt comes to what a test says."""

    def __init__(self, tmp_path, monkeypatch, *of_attempts):
        self.findings, self.at, self.shaped, self.said = list(of_attempts), list[float](), list[float](), list[str]()
        self.folder = ResultFolder(tmp_path, plan_of(UDP))

        def run_load(plan, lab, folder, load, number, progress, which):
            del lab, progress, which
            dilation = plan.scenario.lab.dilation
            self.at.append(dilation)
            folder.write_text(f"raw/{number}-iperf3-udp-neighbour/h1.json", f"raw at {dilation:g}")
            folder.write_text(f"telemetry-{number}.npz", f"telemetry at {dilation:g}")
            sample = Sample("goodput", dilation, "bit/s", {"load": str(number)})
            labels = {"load": str(number), "kind": load.kind, "protocol": "udp", "pattern": "neighbour"}
            findings = self.findings.pop(0)
            return record_of(labels, folder, lambda: LoadOutcome([sample], findings))

        monkeypatch.setattr(attempts, "run_load", run_load)
        self.lab = SimpleNamespace(set_rates=lambda plan: self.shaped.append(plan.scenario.lab.dilation))

    def run(self, plan, dilation=200.0, choice: DilationChoice | None = CHOICE):
        made = Attempts(at_dilation(plan, dilation), cast(Any, self.lab), self.folder, self.said.append, choice)
        return made.run(plan.scenario.workloads[0], 1, "load 1 of 1")

    def text(self, name):
        return (self.folder.path / name).read_text()


def test_a_load_that_was_too_slow_runs_again_and_both_are_kept(tmp_path, monkeypatch):
    runs = Runs(tmp_path, monkeypatch, [TOO_SLOW, (Verdict.WARN, "the clock")], [])
    record = runs.run(plan_of(UDP))
    assert (runs.at, runs.shaped) == ([200, 500], [500, 200])
    assert [sample.value for sample in record.samples] == [500]
    assert (record.findings, record.too_slow) == ([], False)
    entry = record.entry
    assert json.loads(json.dumps(entry["attempts"])) == [
        {
            "dilation": 200.0, "verdict": "invalid", "seconds": pytest.approx(0, abs=1),
            "reasons": ["the processors were idle 0.0 % of the time", "the clock"],
            "folder": "raw/1-iperf3-udp-neighbour-at-200/",
        }
    ]  # fmt: skip
    assert (entry["verdict"], entry["dilation"], entry["too_slow"]) == ("pass", 500.0, False)
    assert runs.text("raw/1-iperf3-udp-neighbour/h1.json") == "raw at 500"
    assert runs.text("telemetry-1.npz") == "telemetry at 500"
    assert runs.text("raw/1-iperf3-udp-neighbour-at-200/h1.json") == "raw at 200"
    assert runs.text("raw/1-iperf3-udp-neighbour-at-200/telemetry-1.npz") == "telemetry at 200"
    assert "goodput,200.0" in runs.text("raw/1-iperf3-udp-neighbour-at-200/samples.csv")
    assert runs.said == [
        "load 1 of 1, iperf3 udp neighbour: at dilation 200 it is invalid: the processors were idle 0.0 % of the time; "
        "once more at 500",
        "load 1 of 1, iperf3 udp neighbour: at dilation 500: pass",
    ]


def test_it_does_so_once(tmp_path, monkeypatch):
    runs = Runs(tmp_path, monkeypatch, [TOO_SLOW], [TOO_SLOW], [])
    record = runs.run(plan_of(UDP))
    assert (runs.at, runs.shaped) == ([200, 500], [500, 200])
    assert (record.too_slow, record.entry["too_slow"], record.entry["verdict"]) == (True, True, "invalid")


@pytest.mark.parametrize(
    ("findings", "again"),
    [
        ([], False),
        ([(Verdict.WARN, "the mean is below")], False),
        ([(Verdict.INVALID, "the link s1→s2 carried 103.8 % of what it can")], False),
        ([TOO_SLOW, (Verdict.INVALID, "the link s1→s2 carried 103.8 % of what it can")], False),
        ([(Verdict.FAIL, "it crashed")], False),
        # What failed in a lab that was too slow may have failed for that.
        ([TOO_SLOW, (Verdict.FAIL, "1 of 16 flows failed")], True),
        ([TOO_SLOW, (Verdict.WARN, "the mean is below")], True),
    ],
)
def test_what_is_wrong_for_another_reason_does_not_run_again(findings, again, tmp_path, monkeypatch):
    runs = Runs(tmp_path, monkeypatch, findings, [])
    record = runs.run(plan_of(UDP))
    assert (runs.at == [200, 500]) is again
    assert ("attempts" in record.entry) is again


def test_where_the_scenario_says_the_dilation_nothing_runs_again(tmp_path, monkeypatch):
    runs = Runs(tmp_path, monkeypatch, [TOO_SLOW])
    record = runs.run(plan_of(UDP), choice=None)
    assert (runs.at, runs.shaped, runs.said) == ([200], [], [])
    assert (record.too_slow, record.entry["dilation"], record.entry["too_slow"]) == (True, 200.0, True)


def test_where_no_larger_dilation_is_possible_that_is_said(tmp_path, monkeypatch):
    runs = Runs(tmp_path, monkeypatch, [TOO_SLOW])
    runs.run(plan_of(UDP, more="links: {rate: 20 Mbit/s}"))
    assert runs.at == [200]
    assert runs.said[0].endswith("0.0 % of the time; there is no larger one")


@pytest.mark.parametrize(("load", "dilation"), [(UDP, 500), (MPI, 1000)])
def test_jobs_pass_over_what_a_short_one_has_failed_at(load, dilation, tmp_path, monkeypatch):
    tried = (Trial(150, "invalid", ()), *(Trial(step, "warn", (), "MPI all-to-all") for step in (200, 300, 500, 700)))
    runs = Runs(tmp_path, monkeypatch, [TOO_SLOW], [])
    runs.run(plan_of(load), choice=dataclasses.replace(CHOICE, tried=tried))
    assert runs.at == [200, dilation]


@pytest.mark.parametrize(
    ("dilation", "beyond", "larger"),
    [(200, 0, 500), (150, 0, 300), (1, 0, 2), (400, 0, 1000), (200, 700, 1000), (200, 1e9, 10_000), (7000, 0, 10_000),
     (10_000, 0, None), (20_000, 0, None)],
)  # fmt: skip
def test_larger_is_twice_as_much_or_what_is_left(dilation, beyond, larger):
    assert larger_dilation(plan_of(UDP), dilation, beyond) == larger


def test_what_cannot_be_set_aside_is_a_sentence(tmp_path):
    folder = ResultFolder(tmp_path, plan_of(UDP))
    folder.move("raw/none", "raw/other")
    assert list(folder.path.iterdir()) == []
    folder.write_text("a.txt", "a")
    folder.write_text("b/c.txt", "c")
    with pytest.raises(StorageError, match=r"a\.txt cannot be moved to b: Is a directory"):
        folder.move("a.txt", "b")
