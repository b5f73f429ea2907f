"""One fabric over two machines, which are namespaces of this one; Dask's scheduler and workers are real."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from testbed.results import load_run
from tests.machines import two_machines, write

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


@pytest.mark.quiet(seat=1)
def test_a_torus_over_two_machines_is_as_its_plan_says(pair, tmp_path):
    done = pair.testbed("run", write(tmp_path, _TORUS), *pair.options, "--results", str(tmp_path), "--format", "json")
    assert done.returncode in (0, 3), done.stderr
    assert "no telemetry is recorded, since the machines' clocks differ" in done.stderr
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
    nothing_runs(pair)


def test_a_machine_that_goes_away_is_named_and_the_rest_ends(tmp_path):
    with two_machines(tmp_path) as pair:
        text = _RING.replace("count: 3", "count: 500")
        with pair.start("run", write(tmp_path, text), *pair.options, "--results", str(tmp_path / "results")) as process:
            for line in process.stderr:
                if "load 1 of 1" in line:
                    break
            pair.kill_worker("b")
            said = process.stderr.read()
            assert process.wait(60) == 1, said
        assert "machine b (10.99.0.2) went away" in said
        assert "Traceback" not in said
        nothing_runs(pair)


def test_parts_end_when_their_client_is_killed(pair, tmp_path):
    text = _RING.replace("count: 3", "count: 500")
    with pair.start("run", write(tmp_path, text), *pair.options, "--results", str(tmp_path / "results")) as process:
        for line in process.stderr:
            if "load 1 of 1" in line:
                break
        assert pair.labs()
        subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=True)  # nsenter has started it
        process.wait(20)
    until = time.monotonic() + 40
    while pair.labs():
        assert time.monotonic() < until
        time.sleep(0.5)


def test_ctrl_c_ends_all_parts(pair, tmp_path):
    text = _RING.replace("count: 3", "count: 500")
    with pair.start("run", write(tmp_path, text), *pair.options, "--results", str(tmp_path / "results")) as process:
        for line in process.stderr:
            if "load 1 of 1" in line:
                break
        subprocess.run(["pkill", f"-{signal.SIGINT.value}", "-P", str(process.pid)], check=True)
        said = process.stderr.read()
        process.wait(30)
    assert "Traceback" not in said
    nothing_runs(pair)


@pytest.mark.parametrize(
    ("names", "more", "sentence"),
    [
        ("a,a", (), "--machines: a is named twice"),
        ("a,c", (), "--machines: the scheduler has no worker named c."),
        ("a", (), "--machines: names one machine; a fabric on one is run there without this option"),
        ("a,b", ("lab.controller=switch_tagged",), "lab.controller: would have to reach switches on several machines"),
        ("a,b", ("lab.cpu_share=0.1",), "lab.cpu_share: is a share of one machine's processors"),
        ("a,b", ("engine=simulate",), "engine: is simulate, and over several machines there is Open vSwitch only"),
        ("a,b", ("workloads=[{kind: npb, kernel: EP}]",), "workloads.0: is npb, and over several machines there are"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence_and_nothing_is_made(pair, tmp_path, names, more, sentence):
    words = [part for word in more for part in ("--set", word)]
    options = ("--machines", names, "--cluster", pair.scheduler, "--insecure", "--results", str(tmp_path / "results"))
    done = pair.testbed("run", write(tmp_path, _RING), *options, *words)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr.replace("\n", " ")
    assert not (tmp_path / "results").exists()
    assert pair.labs() == []


def test_a_cable_with_too_small_an_mtu_is_refused(tmp_path):
    with two_machines(tmp_path, mtu=1500) as pair:
        done = pair.testbed("run", write(tmp_path, _RING), *pair.options, "--results", str(tmp_path / "results"))
        assert done.returncode == 2
        said = " ".join(done.stderr.split())
        assert "machine a: uplink, by which it reaches b, has an MTU of 1500, and full frames with their tag" in said
        assert "ip link set uplink mtu 1554 on all machines" in said
        assert pair.labs() == []
