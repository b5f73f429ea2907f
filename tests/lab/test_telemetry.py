"""What is counted beside a load is what was sent; and a lab that is too slow is told so."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from testbed.base.messages import Process
from testbed.base.model import host_ip
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.experiments.run.loads import run_iperf3 as load_iperf3
from testbed.results import load_run
from testbed.results.telemetry import load_telemetry
from testbed.scenario.workloads import iperf3
from testbed.scenario.workloads.spec import Iperf3

from .conftest import both_ways, plan_of

_HEADERS = 14 + 20 + 8  # Ethernet, IP and UDP


def datagrams(source, destination, count, size):
    """A program in a host that sends so many datagrams of a size within two seconds.

    Only when the other programs surely run, since counting begins then; and it ends when they surely have arrived.
    """
    program = (
        "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); time.sleep(2)\n"
        f"for n in range({count}): s.sendto(bytes({size}), ('{host_ip(destination)}', 9)); time.sleep(2 / {count})\n"
        "time.sleep(1)"
    )
    return Process(f"from-{source}-to-{destination}", f"h{source + 1}", (sys.executable, "-c", program))


@both_ways
def test_known_traffic_is_counted_to_the_byte(context, fast_path):
    sent = {(0, 3): (200, 1000), (2, 0): (150, 100), (1, 2): (80, 1472)}
    result = context.run([datagrams(*pair, *what) for pair, what in sent.items()], 30, watched=True)
    telemetry = result.telemetry
    assert result.no_matrix == ""
    frames, sizes = telemetry.traffic_frames.sum(axis=0), telemetry.traffic_matrix()
    for (source, destination), (count, size) in sent.items():
        assert frames[source, destination] == count
        assert sizes[source, destination] == count * (size + _HEADERS)
    # Receivers may answer that nobody listens; nobody else says anything.
    assert {tuple(pair) for pair in np.argwhere(frames)} <= {*sent, *((b, a) for a, b in sent)}
    # The same frames at the ports: in where the sender hangs, out where the receiver does, and in between.
    port = {int(host): at for at, host in enumerate(telemetry.port_host) if host >= 0}
    assert telemetry.received_frames.sum(axis=0)[port[0]] == frames[0].sum()
    assert telemetry.sent_frames.sum(axis=0)[port[3]] == frames[:, 3].sum()
    assert telemetry.host_sent_bytes.sum(axis=0).tolist() == sizes.sum(axis=1).tolist()
    trunks = telemetry.port_channel >= 0
    assert telemetry.sent_frames[:, trunks].sum() == telemetry.received_frames[:, trunks].sum() >= frames.sum()
    assert not telemetry.queue_drops.any()
    assert not telemetry.port_drops.any()


@pytest.mark.quiet(seat=1)
def test_readings_come_at_their_interval(context):
    result = context.run([datagrams(0, 3, 100, 100)], 30, watched=True)
    time = result.telemetry.time
    assert time[0] <= 0.05
    assert time[-1] > 1.9
    # 100 ms; a busy machine may leave some out.
    assert 0.09 < np.median(np.diff(time)) < 0.3


def test_a_queue_that_fills_is_seen_with_what_it_refused(context):
    # h1 and h4, each a neighbour of h3, both send 15 Mbit/s to it, whose link carries 20; when both surely run.
    flood = (
        "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); start = time.monotonic() + 2\n"
        "for n in range(3750):\n"
        f" s.sendto(bytes(1472), ('{host_ip(2)}', 9))\n"
        " time.sleep(max(0, start + n * 0.0008 - time.monotonic()))"
    )
    processes = [Process(f"flood-{host}", host, (sys.executable, "-c", flood)) for host in ("h1", "h4")]
    telemetry = context.run(processes, 30, watched=True).telemetry
    port = int(np.flatnonzero(telemetry.port_host == 2)[0])
    limit = context.plan.scenario.links.queue_frames
    assert 0.9 * limit <= telemetry.queue_frames[:, port].max() <= limit
    assert telemetry.queue_bytes[:, port].max() > 0.9 * limit * 1500
    entered, left = telemetry.traffic_frames[:, :, 2].sum(), telemetry.sent_frames[:, port].sum()
    assert telemetry.queue_drops[:, port].sum() > 50
    # What is neither there nor lost still waits.
    assert abs(entered - left - telemetry.queue_drops.sum()) <= 0.05 * entered


@pytest.mark.long
def test_one_failed_flow_leaves_the_others_their_figures(context, kept, monkeypatch):
    right = iperf3.commands

    def one_wrong(*arguments):
        servers, clients = right(*arguments)
        clients[2] = replace(clients[2], argv=(*clients[2].argv[:4], "9", *clients[2].argv[5:]))
        return servers, clients

    monkeypatch.setattr(iperf3, "commands", one_wrong)
    # So little, and so long, that also a sender that gets no processor for a moment makes up for it.
    spec = Iperf3("udp", "neighbour", seconds=4, omit=1, repeats=2, offered_load=0.2)
    outcome = load_iperf3.run_iperf3(context, spec)
    failed = [reason for verdict, reason in outcome.findings if verdict is Verdict.FAIL]
    assert [reason[:36] for reason in failed] == [f"1 of 4 flows failed in repeat {n}: h3→" for n in (1, 2)]
    assert "Connection refused" in failed[0]
    goodput = {(s.labels["src"], s.labels["repeat"]) for s in outcome.samples if s.metric == "goodput"}
    assert goodput == {(host, repeat) for host in ("h1", "h2", "h4") for repeat in ("1", "2")}
    assert all(s.value > 0.9 * (s.predicted or 0) > 0 for s in outcome.samples if s.metric == "goodput")
    assert all("Connection refused" in text for name, text in kept.items() if "/h3-" in name and "client" in name)


def test_when_every_flow_fails_the_load_says_so_and_ends(context, monkeypatch):
    right = iperf3.commands

    def all_wrong(*arguments):
        servers, clients = right(*arguments)
        return servers, [replace(client, argv=(*client.argv[:4], "9", *client.argv[5:])) for client in clients]

    monkeypatch.setattr(iperf3, "commands", all_wrong)
    outcome = load_iperf3.run_iperf3(context, Iperf3("tcp", "neighbour", seconds=2, omit=0, repeats=3))
    (failed,) = [reason for verdict, reason in outcome.findings if verdict is Verdict.FAIL]
    assert failed.startswith("4 of 4 flows failed in repeat 1: ")
    assert failed.endswith(" and 1 more")
    assert not [sample for sample in outcome.samples if sample.metric.startswith("goodput")]


# --- whole runs -----------------------------------------------------------------------------------------------------

_TCP = "{kind: iperf3, protocol: tcp, seconds: 3, omit: 1, repeats: 1}"
_SHORT = "{kind: iperf3, protocol: tcp, seconds: 1, omit: 0, repeats: 1}"  # where only the kinds of figures matter
_SMALL = "topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}\n"


@pytest.mark.quiet(seat=1)
def test_a_run_stores_its_telemetry_and_shows_it(tmp_path):
    # Hosts send faster than trunks, so that frames wait at the switches, where departures are watched.
    links = "links: {rate: 1 Gbit/s, host_rate: 2 Gbit/s}\n"
    plan = plan_of(f"{_SMALL}{links}workloads: [{_TCP}, {{kind: ping, count: 1}}]")
    run = load_run(run_scenario(plan, tmp_path, lambda text: None).folder)
    telemetry = load_telemetry(run.path, "1")
    assert telemetry is not None
    assert load_telemetry(run.path, "2") is None
    metrics = {sample.metric for sample in run.samples}
    assert metrics >= {"goodput_mean", "goodput_warmup", "queue_frames", "queue_drops", "link_imbalance"}
    assert metrics >= {"cpu_switches", "cpu_programs", "cpu_agent", "cpu_network"}
    # Frames of busy ports were watched, and left at the rate of their links.
    (gap,) = [s.value for s in run.samples if s.metric == "departure_error" and s.labels["quantile"] == "p50"]
    assert 0 < gap < 0.05
    page = (run.path / "report.html").read_text()
    assert 'id="telemetry"' in page
    assert "Traffic matrix" in page


def test_each_member_of_an_aggregated_link_is_counted(tmp_path):
    plan = plan_of(
        "topology: {kind: mesh, sizes: [2], hosts_per_switch: 2, parallel_links: 2}\nlinks: {aggregate: true}\n"
        f"lab: {{dilation: 100}}\nworkloads: [{_SHORT}]"
    )
    run = load_run(run_scenario(plan, tmp_path, lambda text: None).folder)
    telemetry = load_telemetry(run.path, "1")
    assert telemetry is not None
    assert sorted(telemetry.port_channel.tolist()) == [-1] * 4 + [0, 1, 2, 3]
    assert sorted(telemetry.port_host.tolist()) == [-1] * 4 + [0, 1, 2, 3]
    names = {s.labels["channel"] for s in run.samples if s.metric == "queue_frames"}
    assert names == {"s1→s2", "s2→s1", "s1→s2#1", "s2→s1#1", "s1→h1", "s1→h2", "s2→h3", "s2→h4"}
    assert "s1→s2#1" in (run.path / "report.html").read_text()


def test_without_telemetry_there_is_none(tmp_path):
    plan = plan_of(
        f"topology: {{kind: mesh, sizes: [2, 2]}}\nlab: {{dilation: 100, telemetry: false}}\nworkloads: [{_SHORT}]"
    )
    run = load_run(run_scenario(plan, tmp_path, lambda text: None).folder)
    assert not list(run.path.glob("telemetry*"))
    metrics = {sample.metric for sample in run.samples}
    assert "goodput" in metrics
    assert "queue_frames" not in metrics
    assert 'id="telemetry"' not in (run.path / "report.html").read_text()


@pytest.mark.long
@pytest.mark.alone
def test_an_overloaded_lab_is_called_invalid(tmp_path):
    # Sixteen flows at full real-world rate through one thread of userspace switches: no machine's can do that.
    plan = plan_of(
        "topology: {kind: torus, sizes: [4, 4]}\nlab: {dilation: 1, datapath: userspace}\n"
        f"workloads: [{_TCP.replace('seconds: 3', 'seconds: 1')}]"
    )
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert outcome.verdict is Verdict.INVALID
    assert outcome.exit_code == 1
    assert any("raise lab.dilation" in reason or "outside the queues" in reason for reason in outcome.reasons)
    assert "do not use these figures" in (outcome.folder / "report.html").read_text()
