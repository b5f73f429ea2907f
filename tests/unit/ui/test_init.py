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
