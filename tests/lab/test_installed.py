"""A lab of the installed package, whose environment sees none of the system's Python packages."""

from __future__ import annotations

import json

import pytest

from tests.installed import install


@pytest.mark.long
def test_a_scenario_of_the_wheel_runs_in_an_empty_folder(tmp_path, untouched):
    installed, folder = install(tmp_path), tmp_path / "empty"
    folder.mkdir()
    ping = 'workloads=[{"kind": "ping", "count": 2}]'
    done = installed.run(
        "run",
        "ring4",
        "--set",
        ping,
        "--set",
        "lab.dilation=50",
        "--set",
        "lab.controller=switch_tagged",
        "--json",
        cwd=folder,
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (folder / found["results"] / "report.html").exists()
    assert {sample["metric"] for sample in found["samples"]} >= {"rtt_mean", "ping_loss"}
