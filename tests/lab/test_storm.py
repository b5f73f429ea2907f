"""The storm in a lab of its own: it circulates, is capped and ends, and nothing is left, not even when interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

_STORM = [sys.executable, "-m", "testbed", "storm"]


@pytest.mark.alone
def test_a_broadcast_circulates_only_without_vlans(tmp_path, untouched):
    plot = tmp_path / "storm.svg"
    in_time = pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1], abs=0.15)
    for _ in range(3):  # a busy machine may read too late
        done = subprocess.run(
            [*_STORM, "--seconds", "1", "--format", "json", "--output", str(plot)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["problems"] == []
        times = [reading["seconds"] for reading in found["with_vlans"]]
        if times == in_time:
            break
    assert times == in_time
    assert {reading["frames"] for reading in found["with_vlans"][1:]} == {6}
    assert {reading["busiest_port"] for reading in found["with_vlans"][1:]} == {1}
    frames = [reading["frames"] for reading in found["without_vlans"]]
    assert frames == sorted(set(frames))
    assert frames[-1] > 100
    assert 0 < found["share_of_link_rate"] < 1.1
    assert "without VLANs and STP" in plot.read_text()


def test_an_interrupt_leaves_nothing(untouched):
    process = subprocess.Popen([*_STORM, "--seconds", "4"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "without VLANs" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
