"""The wheel in an environment of its own, in an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from importlib import metadata

import pytest

from tests.installed import ROOT, install


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def run(installed, tmp_path):
    """What a command line says there."""

    def of(*words, code=0, **variables):
        done = installed.run(*words, cwd=tmp_path, **variables)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return of


@pytest.mark.slow
def test_it_holds_what_the_program_reads_and_nothing_built(installed):
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    for folder in ("scenarios", "papers"):
        here = {str(file.relative_to(ROOT)) for file in (ROOT / folder).rglob("*") if file.is_file()}
        assert {f"testbed/share/{name}" for name in here} <= names
    assert {"testbed/share/scripts/vm-image", "testbed/share/mpi_jobs/fabric_bench/fabric_bench.c"} <= names
    assert {"testbed/share/pyproject.toml", "testbed/share/locks/runtime.txt", "testbed/py.typed"} <= names
    assert "testbed/share/exercises/01-storm/start/ring.yaml" in names
    assert not [name for name in names if "solutions" in name], "students get the wheel"
    assert not [name for name in names if "/build/" in name or "__pycache__" in name or name.startswith("tests")]


@pytest.mark.slow
def test_it_puts_nothing_of_a_general_name_into_the_environment(installed):
    names = zipfile.ZipFile(installed.wheel).namelist()
    version = metadata.version("loopfabric")
    assert {name.partition("/")[0] for name in names} == {"testbed", f"loopfabric-{version}.dist-info"}
    assert installed.wheel.name == f"loopfabric-{version}-py3-none-any.whl"
    assert "testbed/controllers/switch_tagged.py" in names


@pytest.mark.slow
def test_the_wheels_controllers_start_and_go_to_the_machine(installed, tmp_path):
    python = installed.environment / "bin" / "python"
    command = [python, "-I", "-m", "testbed.controllers", "learning", "--plan", "missing.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("missing.json: ")
    packed = (
        "import tarfile; from pathlib import Path; from testbed.engines.vm.project import LAB_PARTS, pack_project; "
        "pack_project(Path('p.tar'), {}, LAB_PARTS); print(*tarfile.open('p.tar').getnames(), sep='\\n')"
    )
    done = subprocess.run([python, "-I", "-c", packed], cwd=tmp_path, capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()
    assert "controllers/learning.py" in names
    assert [name for name in names if name.startswith(("testbed/controllers", "testbed/share"))] == []


@pytest.mark.slow
def test_all_that_needs_no_lab_works_in_an_empty_folder(run, tmp_path):
    listed = json.loads(run("list", "--json"))
    assert {"torus4x4", "ring4"} <= listed["scenarios"].keys()
    assert "fig10" in listed["sweeps"]
    assert "fabric_bench" in listed["mpi_jobs"]
    assert json.loads(run("plan", "torus4x4", "--json"))["vlans"] == 8
    assert "ring4: passed" in run("verify", "ring4")
    assert "then:" in run("exercise", "start", "2")
    assert "02-spanning-tree: 0 of 12 points" in run("exercise", "check", "2", code=1)
    assert "start with README.md" in run("export", "ring4", "-d", "powerconnect-5300", "-o", "switches")
    simulated = run("simulate", "ring4", "--loads", "0.1", "--cycles", "400", "--warm-up", "100", "--packet", "8")
    assert "throughput: " in simulated
    assert (tmp_path / "results").is_dir()


def test_what_is_missing_is_said_before_anything_is_done(installed, tmp_path):
    # This machine may have all that an image takes, and an image.
    program = (
        "from pathlib import Path; from testbed.base import resources; resources.CACHE = Path('cache').absolute(); "
        "from testbed.engines.vm import building; building.environment = lambda: {'PATH': '/nowhere'}; "
        "from testbed.ui.cli import main; main()"
    )
    done = subprocess.run(
        [installed.environment / "bin" / "python", "-I", "-c", program, "vm", "build"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    said = done.stderr
    wanted = "missing: debootstrap" if os.geteuid() == 0 else "is built as root"
    assert wanted in said
    script = installed.environment / "lib"
    if os.geteuid() == 0:
        assert "/testbed/share/scripts/setup system-vm`" in said
        assert str(script) in said


@pytest.mark.slow
def test_the_systems_mininet_is_found_by_a_closed_environment(installed, run):
    doctor = installed.run("doctor", "--json", cwd=installed.environment)
    found = {one["name"]: one for one in json.loads(doctor.stdout)["capabilities"]}
    assert found["mininet"]["present"], found["mininet"]
