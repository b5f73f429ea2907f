"""The steps of examples/ci as a runner would type them; only the installation is left out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from testbed.devices import Options, export_plan
from testbed.planning import make_plan
from tests.fabrics import scenario_of

FOLDER = Path(__file__).parents[3] / "examples" / "ci"
HALL = "topology: {kind: mesh, sizes: [3, 2]}\n"


def steps_of(file: str) -> list[str]:
    raw = yaml.safe_load((FOLDER / file).read_text())
    job = raw["prove"] if file.startswith("gitlab") else raw["jobs"]["prove"]
    lines = job["script"] if "script" in job else [step["run"] for step in job["steps"] if "run" in step]
    return [line for line in lines if not line.startswith("pip ")]


@pytest.fixture
def project(tmp_path):
    """A repository with a scenario and what switches have saved."""
    (tmp_path / "fabrics").mkdir()
    (tmp_path / "saved").mkdir()
    (tmp_path / "fabrics" / "hall.yaml").write_text(HALL)
    for file, text in export_plan(make_plan(scenario_of(HALL)), Options("powerconnect-6200")).files.items():
        (tmp_path / "saved" / file).write_text(text)
    return tmp_path


def carried_out(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", line], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_lab_of_the_workflow_takes_no_sudo(project):
    raw = yaml.safe_load((FOLDER / "github-lab.yml").read_text())
    lines = [step["run"] for step in raw["jobs"]["measure"]["steps"] if "run" in step]
    allowed, measure = [line for line in lines if not line.startswith("pip ")]
    assert allowed == "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    assert measure.startswith("testbed run fabrics/hall.yaml --engine realtime ")
    line = measure.replace("testbed run", "testbed plan").replace("--engine realtime", "--set engine=realtime")
    assert carried_out(line, project).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("file", ["github-actions.yml", "gitlab-ci.yml"])
def test_steps_pass_and_fail_as_they_should(project, file):
    prove, check = steps_of(file)
    assert [carried_out(line, project).returncode for line in (prove, check)] == [0, 0]
    switch = project / "saved" / "s1.txt"
    switch.write_text(switch.read_text().replace("pvid 10", "pvid 11", 1))
    assert carried_out(check, project).returncode == 1
    (project / "fabrics" / "other.yaml").write_text("topology: {kind: ring, switches: 5}\nrouting: {ring: shortest}\n")
    failed = carried_out(prove, project)
    assert failed.returncode == 1
    if file.startswith("gitlab"):
        suite = next(iter(ET.fromstring((project / "proofs.xml").read_text())))
        assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    else:
        assert "::error file=fabrics/other.yaml,title=deadlock::" in failed.stdout
