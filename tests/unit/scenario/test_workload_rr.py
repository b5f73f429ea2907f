"""Requests and responses: programs, figures, and what a lab makes of them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.base.messages import Output
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.loads.context import Context
from testbed.experiments.run.loads.run_pairs import run_pairs
from testbed.planning import make_plan
from testbed.scenario.workloads import rr
from testbed.scenario.workloads.pairs import Ends, OutputError
from testbed.scenario.workloads.rr import RequestResponse
from tests.fabrics import scenario_of

_DATA = Path(__file__).parents[2] / "data" / "rr"
_ENDS = Ends(2, "h1", "h4", "127.0.0.1")


def test_figures_are_laboratory_seconds_and_transactions():
    found = rr.parse((_DATA / "tcp.json").read_text())
    values = {metric: (value, unit) for metric, value, unit in found.values}
    printed = json.loads((_DATA / "tcp.json").read_text())
    assert values["transactions"] == (printed["transactions"] / printed["seconds"], "1/s")
    assert values["rtt_p99"] == (printed["p99"], "s")
    times = [values[f"rtt_{name}"][0] for name in ("min", "p50", "p90", "p99", "max")]
    assert times == sorted(times)
    assert times[0] > 1e-5
    assert found.lost == 0


def test_lost_requests_are_a_share_of_all():
    printed = {**json.loads((_DATA / "udp.json").read_text()), "transactions": 97, "lost": 3}
    found = rr.parse(json.dumps(printed))
    assert found.lost == pytest.approx(0.03)
    assert ("requests_lost", found.lost, "ratio") in found.values


@pytest.mark.parametrize(("text", "sentence"), [
    ('{"transactions": 0, "seconds": 2.1, "lost": 2}', "none of 2 requests had a response"),
    ("", "the program that asks did not print its figures: "),
    ('{"transactions": 3}', "the program that asks did not print its figures: 'lost'"),
])  # fmt: skip
def test_what_is_no_result_is_a_sentence(text, sentence):
    with pytest.raises(OutputError, match=sentence):
        rr.parse(text)


def test_datagrams_hold_their_number():
    problems = rr.check(RequestResponse("udp", request=1473, response=3))
    assert [str(problem) for problem in problems] == [
        "response: should be 4 or more for protocol udp, whose messages hold their number, not 3",
    ]
    assert rr.check(RequestResponse("tcp", request=14480, response=1)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "request_size", "response"), [("tcp", 1, 14480), ("udp", 1472, 4)])
def test_the_programs_talk_to_each_other(protocol, request_size, response):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answer, ask = rr.commands(RequestResponse(protocol, request=request_size, response=response), _ENDS)
    assert (answer.host, ask.host, answer.server_port) == ("h4", "h1", 7003)
    assert (answer.argv[0], ask.argv[-1]) == (sys.executable, "1")
    there = subprocess.Popen([word.replace("7003", str(port)) for word in answer.argv])
    try:
        _wait_until_open(port)
        done = subprocess.run(
            [word.replace("7003", str(port)) for word in ask.argv],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert there.wait(timeout=10) == 0
    finally:
        there.kill()
        there.wait()
    values = {metric: value for metric, value, _ in rr.parse(done.stdout).values}
    assert values["transactions"] > 10
    assert values["rtt_min"] <= values["rtt_mean"] <= values["rtt_max"]
    # One after the other: no transaction begins before the one before it has ended.
    assert values["transactions"] * values["rtt_mean"] < 1.0


def _wait_until_open(port):
    for _ in range(200):
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines):
            return
        subprocess.run(["sleep", "0.05"], check=True)
    pytest.fail("it does not listen")


class _Lab:
    """Runs nothing, and notes what it was asked for."""

    def __init__(self, text):
        self.text, self.asked = text, []

    def context(self, load, **labels):
        text = f"topology: {{kind: mesh, sizes: [3]}}\nlab: {{dilation: 100}}\nworkloads: [{load}]\n"
        plan = make_plan(scenario_of(text))
        fabric = SimpleNamespace(facts=SimpleNamespace(shapes_idle_ports=False))
        context = Context(plan, fabric, {"kind": "rr", **labels}, lambda name, text: None, lambda text: None)
        lab = self

        class Noting(Context):
            def run(self, processes, limit, *given, **more):
                lab.asked.append([process.id for process in processes])
                outputs = {process.id: Output(0, lab.text, "") for process in processes}
                counters = SimpleNamespace(late={}, frame_seconds=0.0, stalled=0.0, time=0.0)
                return SimpleNamespace(outputs=outputs, before=counters, after=counters)

        return Noting(context.plan, context.lab, context.labels, context.keep_raw, context.progress), plan


def test_pairs_come_in_turn_in_real_units_beside_wire_times():
    lab = _Lab((_DATA / "udp.json").read_text())
    context, plan = lab.context("{kind: rr, protocol: udp, pattern: pairwise, request: 22, response: 22, repeats: 2}")
    outcome = run_pairs(context, plan.scenario.workloads[0].spec)
    assert lab.asked[0] == ["rr-answer-0", "rr-ask-0"]
    assert {sample.labels["repeat"] for sample in outcome.samples} == {"1", "2"}
    printed = json.loads(lab.text)
    by_metric = {sample.metric: sample for sample in reversed(outcome.samples)}
    assert by_metric["rtt_p90"].value == pytest.approx(printed["p90"] / 100)
    assert by_metric["transactions"].value == pytest.approx(100 * printed["transactions"] / printed["seconds"])
    # Frames of 88 bytes with their gap of 12, over two links of hosts and at least one with a tag, there and back.
    first = by_metric["rtt_min"]
    switches = abs(int(first.labels["src"][1:]) - int(first.labels["dst"][1:]))
    assert first.predicted == pytest.approx(2 * 8 * (2 * 76 + switches * 80) / 1e9)
    assert by_metric["transactions"].predicted == pytest.approx(1 / (first.predicted or 0))
    assert by_metric["rtt_p99"].predicted is None
    # A frame alone is not held by the ports: its time is software's, whichever of a pair's times it is.
    assert {metric: sample.labels.get("unheld") for metric, sample in by_metric.items()} == {
        **dict.fromkeys(["transactions", "rtt_min", "rtt_mean", "rtt_p50", "rtt_p90", "rtt_p99", "rtt_max"], "1.00"),
        "requests_lost": None,
    }


def test_all_at_once_only_the_shortest_time_can_be_unqueued():
    lab = _Lab((_DATA / "tcp.json").read_text())
    context, plan = lab.context("{kind: rr, protocol: tcp, pattern: all_to_all, repeats: 1, at_once: true}")
    outcome = run_pairs(context, plan.scenario.workloads[0].spec)
    assert len(lab.asked) == 1
    assert len(lab.asked[0]) == 2 * 6
    assert {sample.metric for sample in outcome.samples if sample.predicted is not None} == {"rtt_min"}
    assert {sample.metric for sample in outcome.samples if "unheld" in sample.labels} <= {"rtt_min"}


def test_a_lost_request_is_a_warning():
    printed = {**json.loads((_DATA / "udp.json").read_text()), "transactions": 99, "lost": 1}
    lab = _Lab(json.dumps(printed))
    context, plan = lab.context("{kind: rr, protocol: udp, pattern: neighbour, repeats: 1}")
    outcome = run_pairs(context, replace(plan.scenario.workloads[0].spec, seconds=2))
    assert outcome.findings[0] == (Verdict.WARN, "h1→h2 lost 1 % of its requests")
