"""What the project says of itself in several places is the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from testbed import __version__

ROOT = Path(__file__).parents[3]


def test_the_version_is_the_newest_release_of_the_changelog():
    released = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == __version__


def test_the_citation_is_current_and_the_readme_short_and_sound():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["version"] == __version__
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) < 150
    linked = re.findall(r"\]\(([^)#:]+)", readme)
    assert linked
    assert [name for name in linked if not (ROOT / name).exists()] == []


def test_the_container_is_made_by_commands_that_are_there():
    steps = (ROOT / "Containerfile").read_text()
    assert "scripts/setup runtime" in steps
    assert (ROOT / "scripts" / "setup").stat().st_mode & 0o100
    assert "testbed doctor --compile" in steps


def test_whatever_pip_installs_is_pinned_by_version_and_hash():
    for file in ("Makefile", "scripts/setup", "Containerfile", "scripts/container"):
        text = (ROOT / file).read_text().replace("\\\n", " ")
        for line in re.findall(r"^.*(?:pip\S* install|\$\{pip\[@\]\}\").*$", text, flags=re.MULTILINE):
            of_ours = "--no-deps --no-build-isolation -e ." in line  # this project itself
            assert of_ours or ("--require-hashes" in line and "-r" in line), f"{file}: {line}"
    for lock in ("runtime", "dev", "tools"):
        text = (ROOT / "locks" / f"{lock}.txt").read_text()
        entries = re.findall(r"^[A-Za-z0-9].*(?:\n .*)*", text, flags=re.MULTILINE)
        assert len(entries) > 10
        assert [
            entry for entry in entries if not re.match(r"[\w.-]+==\S+", entry) or "--hash=sha256:" not in entry
        ] == []
        assert not re.search(r"://|--index-url|--extra-index|--find-links", text), lock


def test_the_tools_of_make_are_in_their_lock():
    text = (ROOT / "Makefile").read_text()
    locked = (ROOT / "locks" / "tools.txt").read_text()
    assert {*re.findall(r"\$\(TOOLS\)/([\w-]+)", text)} == {"pip", "uv", "cyclonedx-py", "pip-licenses", "pip-audit"}
    for package in ("uv", "cyclonedx-bom", "pip-licenses", "pip-audit"):
        assert re.search(rf"^{package}==\d", locked, flags=re.MULTILINE), package


@pytest.mark.parametrize(
    ("code", "strict", "ends"),
    [(0, "", 0), (3, "", 0), (3, "0", 0), (3, "1", 2), (1, "", 2), (1, "1", 2), (2, "", 2), (130, "", 2)],
)
def test_make_scenario_takes_a_reserve_unless_it_is_strict(code, strict, ends, tmp_path):
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


def test_make_setup_always_says_what_to_type_next(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name, script in {"scripts/setup": "exit 0", ".venv/bin/testbed": "exit 0"}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)

    def make(*words):
        return subprocess.run(["make", *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert make("setup") == "next: source .venv/bin/activate, then testbed plan torus4x4\n"
    if os.geteuid() == 0:  # else it asks for sudo
        assert "next:" not in make("scenario", "TOPO=ring4")


def test_no_system_package_is_installed_without_its_signature():
    scripts = [file for file in [*(ROOT / "scripts").iterdir(), *(ROOT / ".ci").iterdir()] if file.is_file()]
    texts = {file.name: file.read_text(encoding="utf-8", errors="replace") for file in scripts}
    assert any("apt-get" in text for text in texts.values())
    lax = re.compile(
        r"allow-unauthenticated|AllowUnauthenticated|AllowInsecure|trusted=yes|no-check-gpg|force-yes|"
        r"no-check-certificate|curl [^\n]*(-k |--insecure)"
    )
    assert [name for name, text in texts.items() if lax.search(text)] == []
