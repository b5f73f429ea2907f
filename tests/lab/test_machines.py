"""One fabric over two machines, which are namespaces of this one; Dask's scheduler and workers are real."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from testbed.results import Run, load_run
from testbed.results.telemetry import load_telemetry
from testbed.traffic import flows
from tests.fabrics import plan_of
from tests.machines import settings, two_machines, write

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
  - {kind: iperf3, protocol: udp, pattern: neighbour, offered: 0.9, seconds: 4, omit: 1, repeats: 1}
  - {kind: mpi, job: fabric_bench, args: [--tests, "pingpong,alltoall", --repeats, "3"], trace: true}
  - {kind: script, run: ./name.sh, hosts: [h1, h8, h16]}
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


@pytest.mark.quiet(seat=1)
def test_a_torus_over_two_machines_is_as_its_plan_says(pair, tmp_path):
    (tmp_path / "name.sh").write_text("#!/bin/sh\necho $TESTBED_HOST\n")
    (tmp_path / "name.sh").chmod(0o755)
    done = pair.testbed("run", write(tmp_path, _TORUS), *pair.options, "--results", str(tmp_path), "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    run = load_run(Path(json.loads(done.stdout)["results"]))
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
    assert "Traffic matrix: bytes" in (run.path / "report.html").read_text()


def refuse(pair, tmp_path) -> None:
    """What cannot be is refused with sentences."""
    options = ("--cluster", pair.scheduler, "--insecure", "--results", str(tmp_path / "refused"))
    for names, words, sentences in (
        ("a,a,c", (), ("--machines: a is named twice", "--machines: the scheduler has no worker named c.")),
        (
            "a,b",
            (
                "lab.controller=switch_tagged",
                "workloads=[{kind: iperf3, protocol: udp, timeline: ['at 5s: link s1-s2 rate 100M']}]",
            ),
            (
                "lab.controller: would have to reach switches on several machines",
                "workloads.0: lets links or switches fail or change",
            ),
        ),
    ):
        done = pair.testbed("run", write(tmp_path, _RING), "--machines", names, *options, *settings(words))
        assert done.returncode == 2, done.stderr
        for sentence in sentences:
            assert sentence in done.stderr.replace("\n", " ")
    assert not (tmp_path / "refused").exists()


def test_a_machine_that_goes_away_is_named_and_the_rest_ends(pair, tmp_path):
    with loading(pair, tmp_path) as process:
        pair.kill_worker("b")
        said = process.stderr.read()
        assert process.wait(60) == 1, said
    pair.start_worker("b")
    assert "machine b (10.99.0.2) went away" in said
    assert "Traceback" not in said
    nothing_runs(pair)


def test_parts_end_when_their_client_is_killed_and_others_are_refused_meanwhile(pair, tmp_path):
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
