"""`engine: simulate`: a scenario's UDP loads in the simulator, stored as those of a lab."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError, VerificationError
from testbed.engines.simulate import simulated_load
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.planning import make_plan
from testbed.results import load_run
from testbed.ui.cli import compare_commands, lab_commands  # noqa: F401 - they register their commands
from testbed.ui.cli.app import app
from tests.fabrics import scenario_of
from tests.runs import goodput, head, run_of, stored

# The first to run compiles kernels, which takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(1200)

FABRIC = "topology: {kind: mesh, sizes: [4, 2]}\n"
SIMULATED = "engine: simulate\nsimulator: {duration: 60, warm_up: 10}\n"
MANAGED = f"{SIMULATED}lab: {{controller: segment_manager}}\n"
UDP = "{kind: iperf3, protocol: udp, pattern: neighbour, offered_load: 0.9, repeats: 2}"


def say(text):
    del text


def plan_of(more, *loads):
    return make_plan(scenario_of(f"{FABRIC}{more}workloads: [{', '.join(loads)}]\n"))


def of(outcome, metric):
    return [sample for sample in outcome.samples if sample.metric == metric]


def test_goodput_is_as_predicted_and_the_folder_is_that_of_a_run(tmp_path):
    outcome = run_scenario(plan_of(SIMULATED, UDP), tmp_path, say)
    assert (outcome.verdict, outcome.reasons) == (Verdict.PASS, ())
    flows = of(outcome, "goodput")
    assert len(flows) == 2 * 8
    for sample in flows:
        assert sample.value == pytest.approx(sample.predicted, rel=0.01)
    assert {sample.labels["repeat"] for sample in flows} == {"1", "2"}
    assert {sample.value for sample in of(outcome, "loss")} == {0.0}
    assert all(sample.value == 0 or sample.value >= 1e-12 for sample in of(outcome, "jitter"))  # of whole picoseconds
    for sample in of(outcome, "link_use"):
        assert sample.value == pytest.approx(sample.predicted, abs=0.01)
    # A frame alone takes 12.256 µs on a host's link and 12.288 with its tag, 1 µs a hop more, over two switches.
    assert 2 * 12.256e-6 < min(sample.value for sample in of(outcome, "latency_mean")) < 80e-6
    run = load_run(outcome.folder)
    assert run.environment["engine"] == "simulate"
    assert run.dilation == 1
    assert run.plan.scenario.engine == "simulate"
    page = (outcome.folder / "report.html").read_text()
    assert "Nothing was built: the loads were simulated at real-world rates" in page
    assert "The lab ran in real time" not in page


@pytest.mark.parametrize(("flow_control", "lost"), [("none", True), ("pause", False)])
def test_more_than_the_links_bear_is_dropped_or_held_back(tmp_path, flow_control, lost):
    more = f"engine: simulate\nsimulator: {{flow_control: {flow_control}, duration: 60, warm_up: 10}}\n"
    outcome = run_scenario(plan_of(more, UDP.replace("neighbour", "complement").replace("0.9", "2")), tmp_path, say)
    losses = [sample.value for sample in of(outcome, "loss")]
    assert (max(losses) > 0.3) == lost
    assert bool(of(outcome, "host_paused")) == (not lost)
    if not lost:
        assert max(losses) == 0
        assert of(outcome, "host_paused")[0].value > 0.3


slow_to_compile = pytest.mark.slow  # half a minute
TCP = "{kind: iperf3, protocol: tcp, pattern: complement, repeats: 2}"


@slow_to_compile
def test_tcp_gets_what_is_predicted_of_queues_like_a_labs(tmp_path):
    """Other code for queues and links, exact in time and without HTB, gives what the predictor's gives."""
    more = "engine: simulate\nsimulator: {duration: 6000, warm_up: 1000}\nlinks: {rate: 100 Mbit/s, queue_frames: 40}\n"
    outcome = run_scenario(plan_of(more, TCP), tmp_path, say)
    # So the mean of the flows is within 5 % of the prediction, and each within 20 %.
    assert (outcome.verdict, outcome.reasons) == (Verdict.PASS, ())
    assert len(of(outcome, "goodput")) == 2 * 8
    for mean in of(outcome, "goodput_mean"):
        assert mean.value == pytest.approx(mean.predicted, rel=0.03)
    assert min(sample.value for sample in of(outcome, "retransmits")) > 0
    waited = [sample.value for sample in of(outcome, "queue_max")]
    assert max(waited) in (39, 40)  # and one on the wire
    assert sum(sample.value for sample in of(outcome, "queue_drops")) > 0
    assert 0.9 < max(sample.value for sample in of(outcome, "link_use")) <= 1


@slow_to_compile
def test_two_tcp_flows_that_meet_have_a_wire_each(tmp_path):
    text = "topology: {kind: mesh, sizes: [2]}\nengine: simulate\nsimulator: {duration: 2000, warm_up: 1000}\n"
    both = "workloads: [{kind: iperf3, protocol: tcp, pattern: pairwise, repeats: 1}]\n"
    outcome = run_scenario(make_plan(scenario_of(text + both)), tmp_path, say)
    # A frame has 1,542 bytes on the wire, half an acknowledgement of the other flow 47.
    for sample in of(outcome, "goodput"):
        assert sample.value == pytest.approx(1e9 * 1448 / (1542 + 47), rel=0.02)
        assert sample.value == pytest.approx(sample.predicted, rel=0.02)


def test_a_short_tcp_load_fills_wires_and_queues_before_them(tmp_path):
    """Two flows each way over one link, that lossless switches hold back: some thousand frames."""
    text = "topology: {kind: mesh, sizes: [2], hosts_per_switch: 2}\nengine: simulate\n"
    more = "simulator: {flow_control: pause, duration: 40, warm_up: 20, buffer: 16000}\n"
    flows = "workloads: [{kind: iperf3, protocol: tcp, pattern: complement, repeats: 1}]\n"
    outcome = run_scenario(make_plan(scenario_of(text + more + flows)), tmp_path, say)
    goodput = [sample.value for sample in of(outcome, "goodput")]
    # Each way has two flows' segments, and half as many acknowledgements of the others.
    assert goodput == pytest.approx([1e9 * 1448 / (1542 + 47) / 2] * 4, rel=0.02)
    use = {sample.labels["channel"]: sample.value for sample in of(outcome, "link_use")}
    assert use == pytest.approx({"s1→s2": 1, "s2→s1": 1}, abs=0.002)
    most, mean = (
        {sample.labels["channel"]: sample.value for sample in of(outcome, metric)}
        for metric in ("queue_max", "queue_frames")
    )
    for name in ("s1→s2", "s2→s1"):
        assert 0.7 * most[name] < mean[name] < most[name]
    assert max(mean[name] for name in ("s1→h1", "s1→h2", "s2→h3", "s2→h4")) < 0.5
    for metric in ("retransmits", "queue_drops"):
        assert {sample.value for sample in of(outcome, metric)} == {0.0}


def test_tcp_flows_that_lose_all_go_on_when_their_timers_end(tmp_path):
    """At 5 Mbit/s some thousand frames take seconds, and the first timer a second."""
    text = "topology: {kind: mesh, sizes: [2], hosts_per_switch: 4}\nengine: simulate\n"
    more = "simulator: {duration: 4000, warm_up: 1100}\nlinks: {rate: 5 Mbit/s, queue_frames: 4}\n"
    flows = "workloads: [{kind: iperf3, protocol: tcp, pattern: complement, repeats: 1}]\n"
    outcome = run_scenario(make_plan(scenario_of(text + more + flows)), tmp_path, say)
    assert min(sample.value for sample in of(outcome, "retransmits")) > 3
    assert min(sample.value for sample in of(outcome, "goodput")) > 5e4


@pytest.mark.slow
def test_tcp_is_predicted_for_queues_that_lose_the_new_frame(tmp_path, monkeypatch):
    asked = []

    def predicted(wires, flows, ways, wanted):
        asked.append(wanted)
        return np.ones(len(flows))

    monkeypatch.setattr(simulated_load, "tcp_goodput", predicted)
    more = "simulator: {duration: 5, warm_up: 1}\nlinks: {queue_frames: 9}\n"
    text = f"topology: {{kind: mesh, sizes: [2]}}\nengine: simulate\n{more}workloads: [{TCP}]\n"
    run_scenario(make_plan(scenario_of(text.replace("complement", "pairwise"))), tmp_path, say)
    (wanted,) = {*asked}
    assert (wanted.head_drop, wanted.queue_frames, wanted.slower) == (False, 9, 1.0)
    assert (wanted.omit + wanted.starts, wanted.seconds) == pytest.approx((0.001, 0.004))


@slow_to_compile
@pytest.mark.parametrize(("how", "more"), [
    ("pause", ""), ("pfc", ""), ("pause", "shared: true, "), ("pause", "buffer: 16000, xoff: 3044, "),
])  # fmt: skip
def test_tcp_over_lossless_switches_loses_nothing_and_is_fair(tmp_path, how, more):
    settings = f"engine: simulate\nsimulator: {{flow_control: {how}, {more}duration: 150, warm_up: 50}}\n"
    outcome = run_scenario(plan_of(settings, TCP), tmp_path, say)
    assert (outcome.verdict, outcome.reasons) == (Verdict.PASS, ())
    for sample in of(outcome, "goodput"):
        assert sample.value == pytest.approx(sample.predicted, rel=0.05)
    for metric in ("retransmits", "queue_drops"):
        assert {sample.value for sample in of(outcome, metric)} == {0.0}
    assert of(outcome, "host_paused")[0].value > 0.1


@slow_to_compile
def test_the_same_tcp_load_gives_the_same_samples(tmp_path):
    once, again = (run_scenario(plan_of(SIMULATED, TCP), tmp_path / name, say) for name in "ab")
    assert once.samples == again.samples
    by_repeat = [[s.value for s in of(once, "goodput") if s.labels["repeat"] == number] for number in "12"]
    assert by_repeat[0] != by_repeat[1]


def test_loads_that_are_not_simulated_are_said_not_to_be(tmp_path):
    loads = UDP, "{kind: ping}", "{kind: iperf3, protocol: tcp, congestion: cubic}", "{kind: mpi, job: collectives}"
    outcome = run_scenario(plan_of(SIMULATED, *loads), tmp_path, say)
    assert outcome.verdict is Verdict.WARN
    assert [reason.partition(": ")[2].partition(",")[0] for reason in outcome.reasons] == [
        "not simulated: it measures programs and processors",
        "not simulated: of TCP reno is modelled",
        "not simulated: the program would have to run",
    ]
    assert [load["verdict"] for load in load_run(outcome.folder).manifest["loads"]] == ["pass", "warn", "warn", "warn"]


@pytest.mark.parametrize(("more", "loads", "sentence"), [
    (SIMULATED, ["{kind: ping}"],
     "test.yaml: workloads: none can be simulated: that takes {kind: iperf3}, and reno where it is TCP; leave "
     "engine: simulate out"),
    ("engine: simulate\nsimulator: {buffer: 1000}\n", [UDP],
     "test.yaml: simulator.buffer: holds 1,000 bytes and a frame has 1,520; a switch that stores and forwards needs "
     "room for a whole one, so give it 1,520 or more"),
    ("engine: simulate\nsimulator: {xon: 3000}\n", [UDP],
     "test.yaml: simulator.xon: is a threshold of PAUSE frames, and without flow control there are none"),
])  # fmt: skip
def test_what_cannot_be_simulated_is_refused_and_leaves_nothing(tmp_path, more, loads, sentence):
    with pytest.raises(InputError) as caught:
        run_scenario(plan_of(more, *loads), tmp_path / "results", say)
    assert [str(problem) for problem in caught.value.problems] == [sentence]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("load", [
    UDP.replace("}", ", failures: ['at 1s: down s1-s2']}"), "{kind: probe, failures: ['at 1s: down s1-s2']}",
])  # fmt: skip
def test_nothing_fails_in_the_simulator_without_a_controller(load):
    with pytest.raises(InputError) as caught:
        plan_of(MANAGED, UDP, load)
    assert [str(problem) for problem in caught.value.problems] == [
        "test.yaml: lab.controller: is for engine: ovs or vm or realtime only, not simulate; take it out, or set that",
        "test.yaml: workloads.1.failures: links and switches do not fail with engine: simulate; take them out, or set "
        "another engine",
    ]


def test_aggregated_links_are_refused():
    text = (
        "topology: {kind: ring, switches: 4, parallel_links: 2}\nlinks: {aggregate: true}\nengine: simulate\n"
        f"workloads: [{UDP}]\n"
    )
    with pytest.raises(InputError, match=r"links.aggregate: is for engine: ovs or vm or realtime only, not simulate"):
        make_plan(scenario_of(text))


RING = "topology: {kind: ring, switches: 6, hosts_per_switch: 2}\nrouting: {ring: shortest}\nengine: simulate\n"
ALL = "workloads: [{kind: iperf3, protocol: udp, pattern: all_to_all, offered_load: 4, repeats: 1}]\n"


def test_a_declared_deadlock_is_named_an_undeclared_one_refused(tmp_path):
    pause = "simulator: {flow_control: pause, buffer: 6100, duration: 3000, warm_up: 10}\n"
    outcome = run_scenario(make_plan(scenario_of(f"{RING}{pause}{ALL}expect: deadlock\n")), tmp_path, say)
    (reason,) = outcome.reasons
    assert reason.startswith("iperf3 udp all_to_all: the declared deadlock formed in repeat 1: ")
    ring = reason.partition("repeat 1: ")[2].split(" waits for ")
    assert len(ring) == 7
    assert ring[0] == ring[-1]
    assert outcome.samples == ()
    with pytest.raises(VerificationError):
        run_scenario(make_plan(scenario_of(f"{RING}{pause}{ALL}")), tmp_path, say)


def test_a_run_whose_declared_deadlock_formed_says_so_everywhere(tmp_path):
    """Pass alone would read as if the load had run: in text, in JSON, in its row of the table, and in the report."""
    file = tmp_path / "ring.yaml"
    file.write_text(
        f"{RING}simulator: {{flow_control: pause, buffer: 6100, duration: 300, warm_up: 10}}\n{ALL}expect: deadlock\n"
    )
    words = ["run", str(file), "--results", str(tmp_path)]
    done = CliRunner().invoke(app, words, catch_exceptions=False, env={"COLUMNS": "400"})
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    (verdict,) = [line for line in lines if line.startswith("verdict: ")]
    assert re.fullmatch(r"verdict: pass: the declared deadlock formed at s[1-6]→s[1-6]", verdict)
    row = next(number for number, line in enumerate(lines) if line.startswith("1  iperf3 udp all_to_all  pass"))
    assert lines[row + 1].startswith("  the declared deadlock formed in repeat 1: ")
    found = json.loads(CliRunner().invoke(app, [*words, "--format", "json"], catch_exceptions=False).stdout)
    assert found["reasons"][0].startswith("iperf3 udp all_to_all: the declared deadlock formed in repeat 1: ")
    page = (Path(found["results"]) / "report.html").read_text(encoding="utf-8")
    assert "The declared deadlock formed: the load came to a stop, as the scenario says that it will." in page
    assert "The figures can be used." not in page.partition("<ul>")[0]


def test_a_lab_and_the_simulator_stand_side_by_side(tmp_path):
    udp = UDP.replace("repeats: 2", "repeats: 1")
    simulated = run_scenario(plan_of(SIMULATED, udp), tmp_path, say).folder
    lab = run_of(
        f"{FABRIC}lab: {{dilation: 200}}\nworkloads: [{udp}]\n",
        [sample for repeat in range(3) for sample in goodput(0.8e9 + repeat, predicted=0.86e9)],
        [head(1, "iperf3 udp neighbour")],
        name="test",
    )
    found = CliRunner().invoke(
        app, ["compare", str(stored(tmp_path, lab)), str(simulated)],
        catch_exceptions=False,
    )  # fmt: skip
    assert found.exit_code == 0, found.stderr
    assert "iperf3 udp neighbour" in found.stdout
    assert "engine" in found.stdout


def test_the_command_runs_it_and_names_each_load(tmp_path):
    file = tmp_path / "test.yaml"
    file.write_text(f"{FABRIC}simulator: {{duration: 60, warm_up: 10}}\nworkloads: [{UDP}, {{kind: ping}}]\n")
    words = ["run", str(file), "--engine", "simulate", "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 3  # of ping nothing is known
    assert [line.rstrip() for line in done.stdout.split("\n") if line.startswith("1  ")] == [
        "1  iperf3 udp neighbour  pass"
    ]
    (folder,) = (tmp_path / "results").iterdir()
    assert load_run(folder).manifest["engine"] == "simulate"
