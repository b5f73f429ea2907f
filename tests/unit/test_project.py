"""What the project says of itself in several places is the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed import __version__

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_newest_release_of_the_changelog():
    released = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == __version__


@pytest.mark.parametrize(
    ("code", "strict", "ends"),
    [(0, "", 0), (3, "", 0), (3, "0", 0), (3, "1", 2), (1, "", 2), (1, "1", 2), (2, "", 2), (130, "", 2)],
)
def test_make_scenario_takes_a_reserve_for_no_failure_unless_it_shall_be_strict(code, strict, ends, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    # `id`: as root, so that it needs no sudo.
    programs = {"scripts/setup": "exit 0", "bin/id": "echo 0", ".venv/bin/testbed": f'echo "$*"; exit {code}'}
    for name, script in programs.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["make", "scenario", "TOPO=ring4", f"STRICT={strict}"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={"PATH": path},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (ends, "run -- ring4\n")
    assert ("make: the verdict is warn, which is no failure" in done.stderr) is (code == 3 and not ends)
    assert (f"Error {code}" in done.stderr) is bool(ends)
