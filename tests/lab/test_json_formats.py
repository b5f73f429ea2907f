"""What the commands of labs print as JSON conforms to what is published."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.experiments.regulate import alternating_paths
from tests.json_formats import conforms
from tests.unit.ui.test_cli_surface import typed

_TESTBED = [sys.executable, "-m", "testbed"]


@pytest.mark.long
def test_a_lab_from_up_to_down(untouched, tmp_path, monkeypatch):
    name = f"json-{os.getpid()}"
    (tmp_path / "two.yaml").write_text(
        "topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}\nworkloads: [{kind: ping, count: 1}]\n"
    )

    def printed(command: str, *words: str) -> dict[str, Any]:
        code, text, said = typed(command, *words, "--json")
        assert code in (0, 3), said
        return conforms(command, text)

    monkeypatch.chdir(tmp_path)
    printed("up", "two.yaml", "--name", name)
    try:
        assert printed("status", name)["labs"][0]["lab"] == name
        printed("link", name, "s1-s2")
        printed("switch", name, "s1")
        with subprocess.Popen([*_TESTBED, "exec", name, "h1", "--", "ping", "-c", "40", "-i", "0.1", "h2"]) as ping:
            printed("capture", name, "s1-s2", "--count", "4")
            assert printed("watch", name, "--every", "0.5")["flows"]
            ping.wait()
        assert Path(tmp_path, printed("load", name)["results"]).is_dir()
        assert not printed("watch", name, "--every", "0.1")["flows"]
    finally:
        ended = printed("down", name)
    assert [one["lab"] for one in ended["ended"]] == [name]
    printed("run", "two.yaml")
    printed("storm", "--seconds", "0.5")


def test_the_controller_of_a_lab(untouched, tmp_path, monkeypatch):
    name = f"json-controller-{os.getpid()}"
    (tmp_path / "ring.yaml").write_text(
        "topology: {kind: ring, switches: 4}\nlab: {dilation: 100, datapath: userspace, managers: 2, "
        "controller: segment_manager}\nworkloads: [{kind: ping, count: 1}]\n"
    )
    monkeypatch.chdir(tmp_path)
    assert typed("up", "ring.yaml", "--name", name)[0] == 0
    try:
        code, text, _ = typed("controller", name)
        assert code == 0
        first = re.match(r".*: segment_manager, manager (\d) is master, 4 of 4 switches are in step, steady", text)
        assert first
        assert "4 links by LLDP, which is what the plan has" in text
        assert typed("link", name, "s1-s2", "--down")[0] == 0
        until, seen = time.monotonic() + 20, list[dict[str, Any]]()
        while not seen or seen[0]["settled"] is None:  # both what is yet to come and what has been conforms
            assert time.monotonic() < until
            seen = conforms("controller", typed("controller", name, "--json")[1])["events"]
        code, text, _ = typed("controller", name)
        assert code == 3
        assert "  dead: link s1–s2\n  3 links by LLDP, which is not what the plan has\n" in text
        assert "  s1-eth2 is not joined to s2-eth2\n" in text
        code, text, _ = typed("controller", name, "--kill")
        assert f"manager {3 - int(first[1])} is master" in text
        code, text, said = typed("controller", name, "--kill")
        assert (code, text) == (1, "")
        assert "the controller segment_manager was stopped; start it first" in said
        assert typed("controller", name, "--kill", "--start")[0] == 2
        assert "is master" in typed("controller", name, "--start")[1]
    finally:
        assert typed("down", name)[0] == 0


@pytest.mark.long
@pytest.mark.quiet(seat=0)
def test_regulation(untouched, tmp_path, monkeypatch):
    """By the traffic of loads, of a running lab, and a path that changes while others stay."""
    name = f"json-regulate-{os.getpid()}"
    (tmp_path / "ring.yaml").write_text(
        "topology: {kind: ring, switches: 4, parallel_links: 2}\n"
        "lab: {dilation: 100, datapath: userspace, controller: switch_tagged}\n"
        "workloads: [{kind: iperf3, protocol: tcp, pattern: neighbour, omit: 1, seconds: 3, repeats: 1}]\n"
    )
    monkeypatch.chdir(tmp_path)
    for setting, seconds in (("_BANDWIDTH_SECONDS", 4), ("_OFF_AT", 2.0), ("_ON_AT", 5.0), ("_SERIES_SECONDS", 9)):
        monkeypatch.setattr(alternating_paths, setting, seconds)

    def printed(*words: str) -> dict[str, Any]:
        code, text, said = typed("regulate", *words, "--model", "SF-420", "--json")
        assert code in (0, 3), said + text
        return conforms("regulate", text)

    assert printed("ring.yaml")["off"]
    loop = printed("ring.yaml", "--loop", "--period", "0.2", "--hold", "1", "--set", "lab.dilation=400")
    assert [len(rung["off"]) for rung in loop["ladder"]] == [0, 4]
    assert loop["turns"][0]["looks"]
    assert printed("ring.yaml", "--every", "0.5", "--changes", "2")["changes"] >= 2
    assert typed("up", "ring.yaml", "--name", name)[0] == 0
    try:
        with subprocess.Popen([*_TESTBED, "exec", name, "h1", "--", "ping", "-c", "100", "-i", "0.1", "h2"]) as ping:
            time.sleep(1)
            assert printed(name, "--running", "--seconds", "0.5")["lab"] == name
            printed(name, "--running", "--all-on")
            ping.wait()
    finally:
        assert typed("down", name)[0] == 0
