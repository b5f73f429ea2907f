"""Loads on labs that stand: measured, interrupted, refused, watched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import testbed as tb
from testbed.base.messages import Disturbance, LinkChange
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.results import load_run

from .conftest import execute, plan_of

_TESTBED = [sys.executable, "-m", "testbed"]
_UDP = ("iperf3", "protocol=udp", "repeats=1", "omit=0", "offered_load=0.5")
Named = tuple[str, LabClient]


@pytest.fixture
def stands(untouched: str) -> Iterator[Named]:
    """Two switches, one link, which is slowed down by 100, as `testbed up` leaves them."""
    del untouched
    plan, name = plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}"), f"load-{os.getpid()}"
    with build_lab(plan) as lab:
        registry.register(name, lab.namespaces, plan.scenario.name, plan.digest)
        entry = registry.find(name)
        try:
            yield name, lab
        finally:
            registry.forget(entry)


@pytest.fixture
def said(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*_TESTBED, *words], cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def running(lab: LabClient) -> bool:
    return "iperf3" in execute(lab, "sh", "-c", "cat /proc/[0-9]*/comm")


def until(holds: Callable[[], Any], limit: float = 20.0) -> None:
    end = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.long
def test_loads_are_measured_and_stored_and_the_lab_goes_on(stands, said, tmp_path):
    name, lab = stands
    done = said("load", name, "ping", "count=2", *_UDP, "seconds=2", "--dilation", "200", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode in (0, 3), found["lab"]) == (True, name), done.stderr
    run = load_run(tmp_path / found["results"])
    assert [load["kind"] for load in run.manifest["loads"]] == ["ping", "iperf3"]
    assert (run.manifest["dilation"], run.manifest["engine"]) == (200, "ovs")
    goodput = [sample for sample in run.samples if sample.metric == "goodput"]
    assert len(goodput) == 2
    assert all(0.9 < sample.value / (sample.predicted or 1.0) < 1.1 for sample in goodput)
    assert (tmp_path / found["results"] / "report.html").exists()
    assert (lab.status().doing, lab.reach()) == ("idle", [])
    # A lab that has been changed is loaded all the same, and its figures are void.
    lab.disturb(Disturbance(up=True, links=(LinkChange(0, rate=5e8),)))
    changed = said("load", name, "ping", "count=1", "--json")
    assert changed.returncode == 1
    assert "s1-s2 was changed from outside the scenario" in json.loads(changed.stdout)["reasons"][0]


@pytest.mark.long
def test_an_interrupted_load_is_undone_and_was_watched_alone(stands, said, tmp_path):
    name, lab = stands
    slow = "timeline=[{at: 0.5 s, link: s1-s2, rate: 500M}]"
    words = [*_TESTBED, "load", name, *_UDP, "seconds=120", slow]
    with (
        subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as load,
        lab.second_connection() as other,
    ):
        until(lambda: other.status().doing == "load" and other.link_states(), 60)
        again = said("load", name, "ping")
        assert (again.returncode, again.stderr) == (2, f"{name}: another program loads it; wait for its end\n")
        seen = json.loads(said("watch", name, "--json").stdout)
        text = said("watch", name, "--every", "0.5").stdout
        load.send_signal(signal.SIGINT)
        assert load.wait(20) == 130
        until(lambda: other.status().doing == "idle" and not other.link_states())
    assert not running(lab)
    assert {(flow["src"], flow["dst"]) for flow in seen["flows"]} == {("h1", "h2"), ("h2", "h1")}
    assert 0.5 < seen["links"][0]["use"] <= 1.1
    assert f"{name}: load, dilation 100" in text
    assert "s1→s2" in text
    assert lab.reach() == []


REFUSED: list[tuple[tuple[str, ...], list[str]]] = [
    (("png",), ["png: is neither a running lab nor a kind of load."]),
    (("ping", "count=0", "rr", "protocol=udp", "sise=1"), ["count: should be 1 or more", "sise: unknown key."]),
    (("ping", "pattern=transpose"), ['pattern: pattern "transpose" needs a square number of hosts, not 2']),
    (("probe", "failures=[at 1s: down s1-s2]"), ["failures: need lab.controller: segment_manager"]),
    (("script", "run=./none.sh"), ['run: there is no file "./none.sh"']),
    (("ping", "--dilation", "1e9"), ["dilation: should be auto or a number from 1 to 10000, not 1"]),
    ((), ["workloads: the lab's scenario has none; name a load"]),
]


@pytest.mark.long
def test_what_cannot_be_loaded_is_refused_and_nothing_is_made(stands, said, tmp_path):
    name, _ = stands
    for words, sentences in REFUSED:
        done = said("load", name, *words)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("[")]  # steps before
        assert (done.returncode, len(lines)) == (2, len(sentences)), done.stderr
        assert all(line.startswith(start) for line, start in zip(lines, sentences, strict=True)), lines
    assert not list(tmp_path.iterdir())


def test_the_end_of_a_lab_ends_what_watches_it(stands, tmp_path):
    """On a terminal, which the test holds."""
    name, lab = stands
    master, slave = os.openpty()
    with subprocess.Popen([*_TESTBED, "watch", name, "--every", "0.2"], cwd=tmp_path, stdout=slave) as watch:
        os.close(slave)
        shown = b""
        while b"dilation 100" not in shown:
            shown += os.read(master, 4096)
        lab.end()
        while True:
            try:
                more = os.read(master, 4096)
            except OSError:
                break
            shown += more
        assert watch.wait(20) == 0
    os.close(master)
    assert f"the lab {name} has ended" in shown.decode()


def test_from_python_on_modelled_switches(untouched, tmp_path):
    plan = tb.plan("ring4", {"engine": "realtime", "lab.dilation": 400, "lab.datapath": "auto"})
    with tb.lab(plan) as lab:
        run = lab.load([{"kind": "ping", "count": 2}], tmp_path)
        assert (run.manifest["engine"], run.manifest["dilation"]) == ("realtime", 400)
        assert run.verdict != "fail", run.reasons
        assert set(run.samples.metric) >= {"rtt_min"}
        assert lab.core.read_links().dilation == 400


def test_a_program_of_ones_own_has_its_time_and_its_failure(untouched, tmp_path, monkeypatch):
    """By a plan with a slow link, which the kernel then has, too."""
    (tmp_path / "x.sh").write_text(
        '#!/bin/sh\necho "$TESTBED_HOST of $TESTBED_HOSTS"\nsleep "0.$TESTBED_INDEX"5\nping -c 1 "$1"\nexit "${2:-0}"\n'
    )
    (tmp_path / "x.sh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(
        "topology: {kind: mesh, sizes: [2]}\nlinks: {rates: {s1-s2: 500M}}\nlab: {dilation: 100}\n"
        "workloads: [{kind: script, run: ./x.sh, args: [h2], hosts: [h1, h2], repeats: 2}]\n"
    )
    with tb.lab(tb.plan("mine.yaml")) as lab:
        assert "5Mbit" in execute(lab.core, "sh", "-c", "tc class show dev s1-eth2")
        run = lab.load(results=tmp_path / "results")
        assert run.verdict != "fail", run.reasons  # a busy machine makes it invalid
        time_of = {
            (s.labels.get("host"), s.labels["repeat"]): s.value for s in run.core.samples if "script_lab" in s.metric
        }
        assert {host for host, _ in time_of} == {None, "h1", "h2"}
        assert 0.05 <= time_of["h1", "1"] < time_of["h2", "1"] <= time_of[None, "1"]
        assert 0.15 <= time_of["h2", "2"] < 5
        raw = next(run.path.glob("raw/*/repeat1/h1.txt")).read_text()
        assert raw.startswith("h1 of h1 h2\nPING 10.0.0.2")
        failed = lab.load(
            [{"kind": "script", "run": "x.sh", "args": ["h2", "7"], "hosts": ["h1"]}], tmp_path / "results"
        )
        assert failed.verdict == "fail"
        assert "exit code 7" in failed.reasons[0]
