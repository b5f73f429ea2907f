"""What testbed init writes holds from the first command on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.unit.ui.test_cli_surface import typed

FILES = {"fabrics/first.yaml", "Makefile"}


def written(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "file"), [("github", ".github/workflows/fabrics.yml"), ("gitlab", ".gitlab-ci.yml"), ("none", None)]
)
def test_a_project_is_proved_as_it_is_written(service, file, tmp_path):
    home = tmp_path / "hall"
    code, out, _ = typed("init", str(home), "--ci", service)
    assert code == 0
    assert out.splitlines()[-1] == f"next: testbed plan {home}/fabrics/first.yaml"
    assert written(home) == FILES | ({file} if file else set())
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = subprocess.run(
        ["make"], cwd=home, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert "passed: 240 pairs" in made.stdout
    if file:
        assert "testbed verify fabrics/*.yaml --format " in (home / file).read_text()
        yaml.safe_load((home / file).read_text())


def test_what_is_there_is_not_touched(tmp_path):
    (tmp_path / "Makefile").write_text("mine")
    (tmp_path / "fabrics").mkdir()
    (tmp_path / "fabrics" / "first.yaml").write_text("mine, too")
    code, out, said = typed("init", str(tmp_path))
    assert (code, out) == (2, "")
    told = " ".join(said.split())
    for name in sorted(FILES):
        assert f"{tmp_path / name}: is there already; move it away, or take another folder" in told
    assert written(tmp_path) == FILES
    assert (tmp_path / "Makefile").read_text() == "mine"


def test_as_json_it_tells_the_files(tmp_path):
    code, out, _ = typed("init", str(tmp_path), "--ci", "none", "--json")
    assert code == 0
    assert set(json.loads(out)["files"]) == {str(tmp_path / name) for name in FILES}


def test_a_project_starts_from_a_file_that_describes_a_fabric(tmp_path):
    file = tmp_path / "ring.json"
    nodes = [{"id": at, "name": "x\x1b[31m"} for at in range(3)]
    links = [{"source": at, "target": (at + 1) % 3} for at in range(3)]
    file.write_text(json.dumps({"directed": True, "nodes": nodes, "links": links}))
    home = tmp_path / "hall"
    code, out, _ = typed("init", str(home), "--ci", "none", "--from", str(file))
    assert code == 0
    assert out.splitlines()[:2] == [
        "note: 3 switches, 3 links, 3 hosts",
        "note: 3 edges with a direction: each is one link, which carries frames both ways",
    ]
    assert written(home) == {"Makefile", "fabrics/ring.yaml", "fabrics/ring.json"}
    assert "FABRIC ?= fabrics/ring.yaml" in (home / "Makefile").read_text()
    assert typed("verify", str(home / "fabrics" / "ring.yaml"))[0] == 0
    code, out, _ = typed("plan", str(home / "fabrics" / "ring.yaml"))
    assert "note: 3 edges with a direction" in out


def test_a_file_of_no_fabric_starts_nothing(tmp_path):
    file = tmp_path / "x.txt"
    file.write_text("hello\x1b[31m")
    code, out, said = typed("init", str(tmp_path / "hall"), "--from", str(file))
    assert (code, out) == (2, "")
    assert f"{file}: is in no known format" in " ".join(said.split())
    assert not (tmp_path / "hall").exists()
    code, _, said = typed("init", str(tmp_path / "hall"), "--from", str(tmp_path / "no"))
    assert code == 2
    assert "cannot be read: No such file or directory" in " ".join(said.split())
