"""`scripts/setup` on a machine that reaches nothing: it ends soon, and says what is missing and what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
_SOON = 60.0  # s; the patience of the programs that fetch is minutes
_TOOLS = [
    "awk",
    "bash",
    "cat",
    "dirname",
    "env",
    "flock",
    "grep",
    "mktemp",
    "readlink",
    "rm",
    "sha256sum",
    "sleep",
    "tail",
    "timeout",
]


@pytest.fixture
def clone(tmp_path) -> Path:
    """What it needs of a clone; nothing is installed there."""
    folder: Path = tmp_path / "clone"
    for name in ("scripts/setup", "pyproject.toml", "locks/runtime.txt", "locks/dev.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def setup(clone: Path, *before: str, **variables: str) -> tuple[int, str]:
    began = time.monotonic()
    done = subprocess.run(
        [*before, str(clone / "scripts/setup"), "runtime"], capture_output=True, text=True, check=False, timeout=280,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert time.monotonic() - began < _SOON, done.stderr
    return done.returncode, done.stderr


@pytest.mark.slow
def test_python_packages_cannot_be_fetched_without_a_network(clone):
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this user may make no network of its own")
    code, said = setup(clone, *alone)
    assert code == 2
    assert "setup: missing: the Python packages of locks/runtime.txt. None can be fetched" in said
    assert "Connect this machine to the network, or tell pip the proxy or index to use" in said


def bare(folder: Path, apt_get: str) -> str:
    """A path on which there are hardly any programs, and an apt-get that says this."""
    folder.mkdir()
    for tool in _TOOLS:
        (folder / tool).symlink_to(str(shutil.which(tool)))
    for name, text in (("apt-get", f'echo "$*" >>{folder}/calls\n{apt_get}'), ("sudo", 'exec "$@"')):
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    "error",
    [
        "Err:1 http://mirror.example bookworm InRelease\n  Temporary failure resolving 'mirror.example'",
        "  Could not connect to mirror.example:80 (192.0.2.1), connection timed out",
        "  Cannot initiate the connection to mirror.example:80 (2001:db8::1). - connect (101: Network is unreachable)",
    ],
)
def test_system_packages_cannot_be_fetched_without_a_network(clone, tmp_path, error):
    path = bare(tmp_path / "bin", f"cat >&2 <<'END'\n{error}\nEND\nexit 100")
    code, said = setup(clone, PATH=path)
    assert code == 2
    assert "setup: missing: " in said
    assert "iperf3" in said
    assert "No package can be fetched: apt-get reaches none of its sources. Connect this machine to the network" in said
    assert len((tmp_path / "bin/calls").read_text().splitlines()) == 1


@pytest.mark.slow
def test_a_mirror_that_answers_with_an_error_is_asked_again(clone, tmp_path):
    path = bare(tmp_path / "bin", "echo 'Err:1 http://mirror.example bookworm InRelease\n  503  Busy' >&2\nexit 100")
    code, said = setup(clone, PATH=path)
    assert code == 2
    assert "that failed; trying once more" in said
    assert "apt-get could not install" in said
    assert len((tmp_path / "bin/calls").read_text().splitlines()) == 5
