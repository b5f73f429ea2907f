"""A sweep on real labs: interrupted in its second run, resumed, compared."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.results import load_run

_TESTBED = [sys.executable, "-m", "testbed"]
_SWEEP = """
scenarios: [./pair.yaml, ./ring.yaml]
set: {lab.dilation: [100]}
workloads:
  - {kind: ping, pattern: neighbour, count: 3}
  - {kind: iperf3, protocol: udp, pattern: neighbour, offered_load: 0.5, seconds: 2, omit: 0, repeats: 2}
figures: [{kind: bars}, {kind: lines, x: switches_on_path, metrics: [rtt_mean]}]
"""


def _start(file: Path, results: Path, *more: str) -> subprocess.Popen[str]:
    command = [*_TESTBED, "-v", "sweep", str(file), "--results", str(results), "--format", "json", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.long
def test_a_sweep_is_interrupted_resumed_and_compared(tmp_path, untouched):
    (tmp_path / "pair.yaml").write_text("topology: {kind: mesh, sizes: [2]}\n")
    (tmp_path / "ring.yaml").write_text("topology: {kind: ring, switches: 3}\n")
    file, results = tmp_path / "tiny.yaml", tmp_path / "results"
    file.write_text(_SWEEP)
    with _start(file, results) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "run 2 of 2" in line and "iperf3" in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(20) == 130
    assert "left, ring: " in line
    assert f"go on with: testbed sweep {file} --resume" in rest
    (folder,) = results.iterdir()
    record = json.loads((folder / "sweep.json").read_text())
    assert [run["state"] for run in record["runs"]] == ["finished", "waiting"]
    first = folder / record["runs"][0]["folder"]
    assert {entry for entry in folder.rglob("*") if entry.parent in (folder, folder / "runs")} == {
        folder / "sweep.json", folder / "runs", first,
    }  # fmt: skip
    before = (first / "manifest.json").read_text()
    with _start(file, results, "--resume") as process:
        printed, said = process.communicate(timeout=120)
    assert "1 of 2 runs are done already" in said
    assert "run 1 of 2" not in said
    found = json.loads(printed)
    verdicts = {run["verdict"] for run in found["runs"]}
    assert process.returncode == (1 if verdicts & {"invalid", "fail"} else 3 if "warn" in verdicts else 0)
    assert [run["state"] for run in found["runs"]] == ["finished", "finished"]
    assert (first / "manifest.json").read_text() == before
    assert list(results.iterdir()) == [folder]
    runs = [load_run(folder / run["folder"]) for run in found["runs"]]
    assert [run.plan.scenario.name for run in runs] == ["pair", "ring"]
    assert {run.plan.scenario.lab.dilation for run in runs} == {100}
    names = {Path(name).name for name in found["files"]}
    assert names >= {"comparison.txt", "tiny-1.csv", "tiny-1.pdf", "tiny-1.png", "tiny-1.svg", "tiny-2.svg"}
    table = (folder / "comparison.txt").read_text()
    assert "iperf3 udp neighbour: Goodput" in table
    assert "ping neighbour: Round trip, mean" in table
