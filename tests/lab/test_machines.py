"""One fabric over two machines, which are namespaces of this one; Dask's scheduler and workers are real."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.base.model import LearningPlan, Longs, Sample, Topology
from testbed.engines.lab.hosts.cgroup import find_hierarchy
from testbed.fabric.traffic import flows
from testbed.results import Run, load_run
from testbed.results.samples import load_changes, load_failures
from testbed.results.telemetry import load_telemetry
from tests.fabrics import plan_of
from tests.machines import Pair, settings, two_machines, write
from tests.moments import seconds

from .conftest import PHASES

pytestmark = [pytest.mark.xdist_group("machines"), pytest.mark.timeout(300)]

_RING = """
topology: {kind: ring, switches: 4}
lab: {dilation: 100}
workloads: [{kind: ping, pattern: complement, count: 3}]
"""
_TORUS = """
topology: {kind: torus, sizes: [4, 4]}
links: {rate: 1 Gbit/s}
lab: {dilation: 200}
workloads:
  - {kind: ping, pattern: complement, count: 3}
  - {kind: iperf3, protocol: udp, pattern: neighbour, offered_load: 0.9, seconds: 4, omit: 1, repeats: 1}
  - {kind: mpi, job: fabric_bench, args: [--tests, "pingpong,alltoall", --repeats, "3"], trace: true}
  - {kind: script, run: ./name.sh, hosts: [h1, h8, h16]}
"""
_DIES = """
topology: {kind: torus, sizes: [4, 4]}
lab: {dilation: 1, controller: segment_manager}
workloads:
  - kind: probe
    seconds: 9
    pairs: 6
    failures: ["at 1s: down s6-s7", "at 3s: up s6-s7", "at 5s: kill s16", "at 7s: start s16"]
"""
_SLOWER = """
topology: {kind: ring, switches: 4}
links: {rate: 1 Gbit/s}
lab: {dilation: 100}
workloads:
  - kind: iperf3
    protocol: udp
    pattern: neighbour
    offered_load: 0.9
    seconds: 7
    omit: 1
    repeats: 1
    timeline: ["at 3s: link s2-s3 rate 100M", "at 6s: link s2-s3 reset"]
"""
# Two bundles of two are cut, and two of three are on one machine each.
_BUNDLES = """
topology:
  kind: graph
  switches: [s1, s2, s3, s4]
  hosts: {s1: 2, s2: 2, s3: 2, s4: 2}
  links: [[s1, s2], [s1, s2], [s2, s3], [s2, s3], [s2, s3], [s3, s4], [s3, s4], [s4, s1], [s4, s1], [s4, s1]]
links: {rate: 1 Gbit/s, aggregate: true}
lab: {dilation: 400}
workloads:
  - kind: iperf3
    protocol: udp
    pairs: [[h1, h3], [h2, h4], [h3, h1], [h4, h2], [h5, h7], [h6, h8], [h7, h5], [h8, h6]]
    offered_load: 0.9
    seconds: 5
    omit: 2
    repeats: 2
"""
# Processor seconds that a process gets in three seconds of trying.
_SPIN = """
import os, time
begin, end = os.times(), time.monotonic() + 3
while time.monotonic() < end: pass
after = os.times()
print(after.user + after.system - begin.user - begin.system)
"""
# A load of one's own.
_GREET = """
import sys
from dataclasses import dataclass

from testbed.base.messages import Process
from testbed.scenario.workloads import WorkloadKind
from testbed.scenario.workloads.pairs import Figures, Messages, PairTool

SERVER = (
    "import socket\\n"
    "with socket.create_server(('', 7000)) as listening: listening.accept()[0].sendall(b'hello')"
)
CLIENT = (
    "import socket, sys\\n"
    "with socket.create_connection((sys.argv[1], 7000), 10) as asking: print(asking.recv(5).decode())"
)


@dataclass(frozen=True, slots=True)
class Greet:
    pattern: str = "complement"


def commands(spec, ends):
    server = Process("server", ends.destination, (sys.executable, "-c", SERVER), server_port=7000)
    return server, Process("client", ends.source, (sys.executable, "-c", CLIENT, ends.address))


TOOL = PairTool(
    commands, lambda text: Figures((("letters", float(len(text.strip())), ""),)), limit=lambda spec: 20.0,
    what="greetings", messages=lambda spec: Messages("tcp", 0, 5),
)
WORKLOADS = {"greet": WorkloadKind(Greet, "a greeting", pairs=TOOL)}
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with two_machines(tmp_path_factory.mktemp("machines")) as found:
        yield found


def nothing_runs(pair) -> None:
    until = time.monotonic() + 20
    while left := pair.labs():
        assert time.monotonic() < until, left
        time.sleep(0.1)


@contextmanager
def loading(pair, tmp_path) -> Iterator[subprocess.Popen[str]]:
    """A run whose load has begun, and does not end by itself."""
    text = _RING.replace("count: 3", "count: 500")
    with pair.start("run", write(tmp_path, text), *pair.options, "--results", str(tmp_path / "results")) as process:
        for line in process.stderr:
            if "load 1 of 1" in line:
                break
        yield process


@pytest.mark.long
@pytest.mark.quiet(seat=1)
def test_a_torus_over_two_machines_is_as_its_plan_says(pair, tmp_path):
    (tmp_path / "name.sh").write_text("#!/bin/sh\nsleep 2\necho $TESTBED_HOST\n")
    (tmp_path / "name.sh").chmod(0o755)
    done = pair.testbed("run", write(tmp_path, _TORUS), *pair.options, "--results", str(tmp_path), "--format", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    run = load_run(Path(json.loads(done.stdout)["results"]))
    # A machine that is busy makes figures void, which is no fault of the division: only what that can spoil.
    assert not [why for why in run.manifest["reasons"] if re.search("lost|broke|once|differ|changed", why)]
    parts = run.environment["machines"]
    assert sorted(parts) == ["a", "b"]
    assert [len(parts[name]["switches"]) for name in ("a", "b")] == [8, 8]
    assert [parts[name]["links_to_others"] for name in ("a", "b")] == [8, 8]
    goodput = [sample for sample in run.samples if sample.metric == "goodput" and sample.predicted]
    assert len(goodput) == 16
    assert all(abs(sample.value / (sample.predicted or 0) - 1) < 0.02 for sample in goodput)
    # Both ends of every link count what it carried, wherever they are.
    used = [sample for sample in run.samples if sample.metric == "link_use" and sample.predicted]
    assert used
    assert all(abs(sample.value - (sample.predicted or 0)) < 0.05 for sample in used)
    recorded(run)
    # The ranks of both machines are one job, whose bytes crossed the fabric, and programs are copied to either.
    by_metric = {sample.metric: sample.value for sample in run.samples}
    assert by_metric["mpi_bytes_crossed"] >= by_metric["mpi_bytes_moved"] > 0
    senders = {sample.labels["src"] for sample in run.samples if sample.metric == "mpi_bytes_sent"}
    assert senders >= {parts[name]["hosts"][-1] for name in ("a", "b")}
    said = {file.stem: file.read_text().strip() for file in (run.path / "raw").glob("4-script-*/repeat1/*.txt")}
    assert said == {"h1": "h1", "h8": "h8", "h16": "h16"}
    nothing_runs(pair)


def recorded(run: Run) -> None:
    """The counters of both machines go together, though their clocks are far apart."""
    told = json.loads((run.path / "manifest.json").read_text())["loads"][1]
    assert 0 < told["clock_error"] < 0.05
    assert "no_traffic_matrix" not in told
    telemetry = load_telemetry(run.path, "2")
    assert telemetry is not None
    assert telemetry.time[-1] == pytest.approx(5, abs=1.5)
    topology = plan_of("torus", sizes=[4, 4]).topology
    assert [*telemetry.port_host[:16], *telemetry.port_channel[16:]] == [*range(16), *range(64)]
    names = [
        f"{topology.switch_name(s)}-eth{p}" for s, p in zip(topology.channel_source, topology.out_port, strict=True)
    ]
    assert telemetry.ports[16:].tolist() == names
    # At any time what one end of a link has sent has come to the other one, but for a few frames: 0.2 s of them at
    # most, whichever machines the ends are on.
    sent, came = (np.cumsum(its, axis=0)[:, 16:] for its in (telemetry.sent_bytes, telemetry.received_bytes))
    room = 0.2 * telemetry.port_rate[16:] / 8
    assert (np.abs(sent - came[:, np.arange(64) ^ 1]) < room).all()
    assert (sent[-1] > 2 * room).any()
    # Who sends to whom is counted where hosts are.
    matrix = telemetry.traffic_matrix()
    least = 0.5 * 5 * 0.9 * telemetry.port_rate[0] / 8
    assert {(one, other) for one, other in zip(*np.nonzero(matrix > least), strict=True)} == set(
        flows("neighbour", topology, 1)
    )
    # Each machine has watched the busiest of its own ports.
    watched = {str(telemetry.ports[row]).partition("-")[0] for row in telemetry.looks[:, 1]}
    machines = run.environment["machines"]
    assert all(watched & {*machines[name]["switches"]} for name in ("a", "b"))
    report = (run.path / "report.html").read_text()
    assert "Traffic matrix: bytes" in report
    assert re.search(r"The clocks of the machines are known to ±[\d.]+ [mµ]s of laboratory time", report)


@pytest.mark.long
@pytest.mark.quiet(seat=1)  # what failures cost is measured
def test_a_cut_link_and_a_switch_die_and_what_that_costs_is_told(pair, tmp_path):
    """The link's ends are on different machines, the switch is not where the controller is, nor do clocks agree."""
    file, signals = write(tmp_path, _DIES), [""]
    port = f"s7-eth{_port(plan_of('torus', sizes=[4, 4]).topology, 7, 6)}"
    with pair.start("run", file, *pair.options, "--results", str(tmp_path), "--format", "json") as process:
        while process.poll() is None:
            if (signal_now := _signal(pair, port)) not in ("", signals[-1]):
                signals.append(signal_now)
            time.sleep(0.1)
        run = load_run(Path(json.loads(process.stdout.read())["results"]))
    (load,) = run.manifest["loads"]
    assert load["verdict"] != "fail", load["reasons"]
    # Only the end on the first machine lost its power, and so the other one had no signal.
    assert signals[1:] == ["there", "none", "there"]
    (told,) = load_failures(run.path, "1")
    assert [event["event"].partition(": ")[2] for event in told["events"]] == [
        "down s6-s7", "up s6-s7", "kill s16", "start s16"
    ]  # fmt: skip
    assert [event["at"] for event in told["events"]] == pytest.approx([1, 3, 5, 7], abs=0.5)
    down, up, kill, start = told["events"]
    assert down["hosts_moved"] > 0
    assert 0 < down["frames_lost"] < 1500
    assert 0 < seconds(down, "takeover")[0] < 1.5
    assert (kill["cut_off"], start["cut_off"]) == (30, 0)
    assert [event["routing_after"] for event in (up, start)] == ["dor", "dor"]
    # Frames of both machines' hosts were watched.
    watched = {host for one in told["pairs"] for host in (one["src"], one["dst"])}
    parts = run.environment["machines"]
    assert all(watched & {*parts[name]["hosts"]} for name in ("a", "b"))
    # Nothing went by the link while it was dead, neither out of one machine nor into the other one.
    telemetry = load_telemetry(run.path, "1")
    assert telemetry is not None
    dead = (telemetry.time > down["at"] + 0.5) & (telemetry.time < up["at"] - 0.3)
    assert dead.sum() > 5
    topology = run.plan.topology
    names = (f"s6-eth{_port(topology, 6, 7)}", port)
    ends = [str(one) in names for one in telemetry.ports]
    assert sum(ends) == 2
    for counted in (telemetry.sent_frames, telemetry.received_frames):
        assert counted[dead][:, ends].sum() == 0
        assert counted[:, ends].sum(axis=0).all()
    nothing_runs(pair)


def _signal(pair: Pair, port: str) -> str:
    """What a port of the second machine's part says of its signal; empty while there is no such port."""
    look = f"nsenter -t $p -n ip -o link show dev {port} 2>/dev/null"
    said = pair.machines[1].run(
        "sh", "-c", f"for p in $(pgrep -f testbed.engines.lab.control.agent); do {look}; done; true"
    )
    return said and ("none" if "NO-CARRIER" in said else "there")


def _port(topology: Topology, switch: int, other: int) -> int:
    """Number of the port of a switch to another one; switches count from 1 here."""
    ends = zip(topology.channel_source, topology.channel_target, topology.out_port, strict=True)
    return next(int(port) for source, end, port in ends if (source, end) == (switch - 1, other - 1))


@pytest.mark.long
def test_a_cut_link_gets_slower_at_both_ends_and_as_before(pair, tmp_path):
    done = pair.testbed("run", write(tmp_path, _SLOWER), *pair.options, "--results", str(tmp_path), "--format", "json")
    run = load_run(Path(json.loads(done.stdout)["results"]))
    (load,) = run.manifest["loads"]
    assert not [reason for reason in load["reasons"] if "changed" in reason or "carried out" in reason], load
    (told,) = load_changes(run.path, "1")
    at = [event["at"] for event in told["events"]]
    assert at == pytest.approx([3, 6], abs=0.5)
    telemetry = load_telemetry(run.path, "1")
    assert telemetry is not None
    source = telemetry.ports.tolist().index(f"s2-eth{_port(run.plan.topology, 2, 3)}")
    end = telemetry.ports.tolist().index(f"s3-eth{_port(run.plan.topology, 3, 2)}")

    def rate(begin: float, until: float, counted: Longs, port: int) -> float:
        inside = (telemetry.time > begin) & (telemetry.time <= until)
        return float(8 * counted[inside, port].sum() / np.ptp(telemetry.time[inside]))

    for counted, port in ((telemetry.sent_bytes, source), (telemetry.received_bytes, end)):
        assert rate(1.2, at[0], counted, port) > 6e6  # of 10 Mbit/s, at nine tenths
        assert 0.6e6 < rate(at[0] + 0.5, at[1], counted, port) < 1.3e6


@pytest.mark.long
@pytest.mark.quiet(seat=1)
def test_each_cut_member_of_a_bundle_carries_its_own_flows(pair, tmp_path):
    done = pair.testbed("run", write(tmp_path, _BUNDLES), *pair.options, "--results", str(tmp_path), "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    run = load_run(Path(json.loads(done.stdout)["results"]))
    parts = run.environment["machines"]
    assert [parts[name]["links_to_others"] for name in ("a", "b")] == [4, 4]
    of_metric: dict[str, list[Sample]] = {}
    for sample in run.samples:
        of_metric.setdefault(sample.metric, []).append(sample)
    assert len(of_metric["goodput"]) == 2 * 8
    # Those of each channel that was used; the switches were asked which flows take it.
    used = of_metric["member_use"]
    for sample in (*of_metric["goodput"], *used):
        assert sample.predicted is not None
        assert sample.value == pytest.approx(sample.predicted, rel=0.1, abs=0.02)
    here = {*parts["a"]["switches"]}
    between = [sample for sample in used if len(here & {*sample.labels["channel"].split("→")}) == 1]
    assert {sample.labels["member"] for sample in between if sample.value > 0.1} == {"0", "1"}
    nothing_runs(pair)


@pytest.mark.long
@pytest.mark.parametrize("more", ["assignment.procedure=paper", "lab.controller=learning"])
def test_switches_learn_addresses_of_hosts_on_the_other_machine(pair, tmp_path, more):
    """A run that goes on after the procedure has seen every entry of every switch, and then nothing is flooded."""
    file = write(tmp_path, _RING)
    sets = settings(("assignment={kind: fixed, registration: learning}", "topology={kind: torus, sizes: [4, 2]}", more))
    done = pair.testbed("run", file, *sets, *pair.options, "--results", str(tmp_path), "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    run = load_run(Path(json.loads(done.stdout)["results"]))
    assert isinstance(run.plan.vlans, LearningPlan)
    assert len(run.samples) >= 8
    assert not [reason for reason in run.manifest["reasons"] if "flooded" in reason], run.manifest["reasons"]
    nothing_runs(pair)


@pytest.mark.long
def test_workers_need_nothing_of_a_plug_in(pair, tmp_path):
    """Neither a load nor a topology of one is known there, only the programs that a load starts."""
    (tmp_path / "greetings.py").write_text(_GREET)
    chords = Path(__file__).parents[2] / "examples/plugins/chords.py"
    text = f"""
plugins: [greetings.py, {chords}]
topology: {{kind: chord_torus, side: 4}}
routing: sr
lab: {{dilation: 100}}
workloads: [{{kind: greet}}]
"""
    options = (*pair.options, "--trust", "--results", str(tmp_path), "--format", "json")
    done = pair.testbed("run", write(tmp_path, text), *options)
    assert done.returncode in (0, 3), done.stderr
    run = load_run(Path(json.loads(done.stdout)["results"]))
    letters = {(sample.labels["src"], sample.labels["dst"]): sample.value for sample in run.samples
               if sample.metric == "letters"}  # fmt: skip
    assert letters
    assert set(letters.values()) == {5.0}
    machines = run.environment["machines"]
    assert any(len({*machines["a"]["hosts"]} & {*ends}) == 1 for ends in letters)
    nothing_runs(pair)


@pytest.mark.long
def test_hosts_of_both_machines_have_their_share_of_processors(pair, tmp_path):
    if find_hierarchy() is None:
        reason = "no group of processes can be limited here"
        if os.environ.get("TESTBED_REQUIRE_LAB") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    (tmp_path / "spin.sh").write_text(f"#!/bin/sh\nexec {sys.executable} -c '{_SPIN}'\n")
    (tmp_path / "spin.sh").chmod(0o755)
    text = """
topology: {kind: ring, switches: 4}
lab: {dilation: 100, cpu_share: 0.2}
workloads: [{kind: script, run: ./spin.sh}]
"""
    done = pair.testbed("run", write(tmp_path, text), *pair.options, "--results", str(tmp_path), "--format", "json")
    run = load_run(Path(json.loads(done.stdout)["results"]))
    assert run.manifest["cpu_share"] == {"processors": 0.2, "quota_us": 2000, "period_us": 10000}
    shares = {file.stem: float(file.read_text()) / 3 for file in (run.path / "raw").glob("1-script-*/repeat1/*.txt")}
    assert sorted(shares) == ["h1", "h2", "h3", "h4"]
    assert all(0 < share < 0.22 for share in shares.values()), shares
    nothing_runs(pair)


_TWICE = """
topology: {kind: ring, switches: 4, parallel_links: 2}
links: {queue_frames: 30}
lab: {dilation: 100}
"""


def regulated(pair, tmp_path, text: str, *options: str) -> tuple[Run, dict[str, Any]]:
    """What `testbed regulate` over both machines stores and prints; that nothing is wrong with it is seen to."""
    words = ("--model", "SF-420", *options, *pair.options, "--results", str(tmp_path / "results"), "--format", "json")
    done = pair.testbed("regulate", write(tmp_path, text), *words)
    assert done.returncode in (0, 1, 3), done.stderr
    told = json.loads(done.stdout)
    run = load_run(Path(told["results"]))
    # A machine that is busy makes figures void, which is no fault of the change: only what it can spoil.
    assert not [why for why in run.manifest["reasons"] if re.search("frames were lost|broke|once|differ|changed", why)]
    assert {sample.value for sample in run.samples if sample.metric in ("frames_lost", "connections_broken")} == {0}
    changes = json.loads((run.path / "changes.json").read_text())
    assert changes
    assert not any(change["problems"] for change in changes)
    return run, told


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_links_that_are_cut_go_off_and_get_slower_by_the_traffic(pair, tmp_path):
    load = "{kind: iperf3, protocol: tcp, pattern: bit_reversal, omit: 1, seconds: 3, repeats: 1}"
    text = f"{_TWICE}workloads: [{load}]"
    run, _ = regulated(pair, tmp_path, text, "--slower")
    (chosen,) = json.loads((run.path / "power.json").read_text())["traffic"]
    assert (len(chosen["off"]), chosen["slower"]) == (4, {"10M": 3})
    machines = run.environment["machines"]
    here = [len({*machines["a"]["switches"]} & {*re.findall(r"s\d+", name)}) for name in chosen["off"]]
    assert sorted(here) == [0, 1, 1, 2]  # one of either machine, two between them
    # Clocks of two machines tell no one-way times.
    of = {name: number for number, one in enumerate(machines.values()) for name in one["hosts"]}
    timed = [(of[sample.labels["src"]], of[sample.labels["dst"]]) for sample in run.samples
             if sample.metric == "one_way_mean"]  # fmt: skip
    assert all(source == end for source, end in timed)
    nothing_runs(pair)


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_cut_links_go_off_and_on_as_the_load_falls_and_rises(pair, tmp_path):
    (tmp_path / "phases.py").write_text(PHASES)
    (tmp_path / "phases.py").chmod(0o755)
    text = f"{_TWICE}workloads: [{{kind: script, run: ./phases.py, args: [h3], hosts: [h1, h4]}}]"
    _, told = regulated(pair, tmp_path, text, "--loop", "--period", "0.25", "--hold", "1")
    assert [len(rung["off"]) for rung in told["ladder"]] == [0, 4]
    (turn,) = told["turns"]
    assert [(len(one["on"]), len(one["off"])) for one in turn["decisions"]] == [(0, 4), (4, 0), (0, 4)]
    off, on, again = turn["decisions"]
    assert off["use"] < 0.1
    assert on["use"] > told["rule"]["on_above"]
    assert again["use"] < 0.4
    nothing_runs(pair)


def refuse(pair, tmp_path) -> None:
    """What cannot be is refused with sentences."""
    options = ("--cluster", pair.scheduler, "--insecure", "--results", str(tmp_path / "refused"))
    for names, words, sentences in (
        ("a,a,c", (), ("--machines: a is named twice", "--machines: the scheduler has no worker named c.")),
        (
            "a,b",
            ("lab.cpu_share=0.9",),
            (
                "machine a: ",
                "machine b: ",
                "lab.cpu_share: 2 hosts with 0.9 of a processor each would take 1.8 of this",
            ),
        ),
    ):
        done = pair.testbed("run", write(tmp_path, _RING), "--machines", names, *options, *settings(words))
        assert done.returncode == 2, done.stderr
        for sentence in sentences:
            assert sentence in done.stderr.replace("\n", " ")
    assert not (tmp_path / "refused").exists()


@pytest.mark.long
def test_a_machine_that_goes_away_is_named_and_the_rest_ends(pair, tmp_path):
    with loading(pair, tmp_path) as process:
        pair.kill_worker("b")
        said = process.stderr.read()
        assert process.wait(60) == 1, said
    pair.start_worker("b")
    assert "machine b (10.99.0.2) went away" in said
    assert "Traceback" not in said
    nothing_runs(pair)


@pytest.mark.long
def test_parts_end_with_their_client_and_others_are_refused(pair, tmp_path):
    with loading(pair, tmp_path) as process:
        assert pair.labs()
        subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=True)  # nsenter has started it
        process.wait(20)
    until = time.monotonic() + 40
    refuse(pair, tmp_path)  # while nobody speaks for the parts
    while pair.labs():
        assert time.monotonic() < until
        time.sleep(0.5)


def test_ctrl_c_ends_all_parts(pair, tmp_path):
    with loading(pair, tmp_path) as process:
        subprocess.run(["pkill", f"-{signal.SIGINT.value}", "-P", str(process.pid)], check=True)
        said = process.stderr.read()
        process.wait(30)
    assert "Traceback" not in said
    nothing_runs(pair)


def test_a_worker_that_is_not_root_is_named(pair, tmp_path):
    pair.kill_worker("b")
    pair.start_worker("b", "unshare", "--user")
    try:
        done = pair.testbed("run", write(tmp_path, _RING), *pair.options, "--results", str(tmp_path / "results"))
    finally:
        pair.kill_worker("b")
        pair.start_worker("b")
    assert done.returncode == 2, done.stderr
    said = " ".join(done.stderr.split())
    assert "machine b: its worker runs as user 65534, and a lab needs root" in said
    assert "machine a: " not in said
    assert "Traceback" not in said
    assert not (tmp_path / "results").exists()
    assert pair.labs() == []


def test_a_cable_with_too_small_an_mtu_is_refused(pair, tmp_path):
    for machine in pair.machines:
        machine.run("ip", "link", "set", "uplink", "mtu", "1500")
    try:
        done = pair.testbed("run", write(tmp_path, _RING), *pair.options, "--results", str(tmp_path / "results"))
    finally:
        for machine in pair.machines:
            machine.run("ip", "link", "set", "uplink", "mtu", "1600")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "machine a: uplink, by which it reaches b, has an MTU of 1500, and full frames with their tag" in said
    assert "ip link set uplink mtu 1554 on all machines" in said
    assert pair.labs() == []
