"""Modelled switches in the virtual machine: machine code from here that is found there, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from testbed.base.errors import CapabilityError, InputError, LabError
from testbed.engines.simulate.switch_model import live_model
from testbed.engines.vm import boot, modelled
from testbed.engines.vm.image import Image
from testbed.engines.vm.project import pack_project
from testbed.experiments.run import vm
from testbed.experiments.run.vm import VirtualMachineEngine
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
from tests.unit.fabric.test_kernels_jit import copy_jit

_TEXT = (
    "topology: {kind: mesh, sizes: [2]}\nworkloads: [{kind: ping}]\nlab: {dilation: 100}\n"
    "engine: vm\nvm: {engine: realtime}\n"
)
_KERNEL = """\
from testbed.base.jit import jit


@jit
def triple(number):
    return 3 * number


if __name__ == "__main__":
    print(triple(2))
"""


def _plan(text: str = _TEXT):
    return make_plan(parse_scenario(text, "test.yaml"))


def _quiet(text: str) -> None:
    del text


@pytest.mark.slow
def test_machine_code_from_here_is_found_there(tmp_path, monkeypatch):
    """Compiled in one clone by the settings for the machine, packed, and loaded in another folder."""
    here, there, kept = tmp_path / "here", tmp_path / "srv", tmp_path / "kept"
    package = here / "testbed" / "fabric" / "kernels"
    package.mkdir(parents=True)
    copy_jit(package)
    (package / "triple.py").write_text(_KERNEL)
    settings = {**os.environ, **modelled._PROCESSOR, "NUMBA_DISABLE_JIT": "0", "NUMBA_DEBUG_CACHE": "1"}

    def call(root: Path, **more: str) -> str:
        command = [sys.executable, "-c", "from testbed.fabric.kernels.triple import triple; print(triple(2))"]
        environment = {**settings, "PYTHONPATH": str(root), **more}
        return subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=True
        ).stdout  # fmt: skip

    assert "data saved" in call(here, NUMBA_CACHE_DIR=str(kept))
    monkeypatch.setattr(modelled, "_PACKAGE", here / "testbed")
    found = modelled._list_machine_code(kept)
    assert {str(Path(place).parent) for place in found} == {"testbed/fabric/kernels/__pycache__"}
    pack_project(tmp_path / "p.tar", {}, ("testbed",), here, found)
    there.mkdir()
    subprocess.run(["tar", "-x", "-f", tmp_path / "p.tar", "-C", there], check=True)
    said = call(there)
    assert "data loaded" in said
    assert "data saved" not in said
    assert said.endswith("6\n")


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Runs a shell script in place of the program that compiles; returns what sets it."""
    monkeypatch.setattr(modelled, "CACHE", tmp_path / "cache")

    def use(script: str) -> None:
        monkeypatch.setattr(modelled, "make_module_command", lambda *words: ("sh", "-c", script, *words))

    return use


def test_the_model_is_compiled_for_any_processor(compiler, tmp_path):
    compiler(f'echo "$NUMBA_CPU_NAME/$NUMBA_CPU_FEATURES/$NUMBA_DISABLE_JIT/$NUMBA_CACHE_DIR" >{tmp_path}/said')
    with pytest.raises(LabError, match="machine code of the modelled switches was not kept"):
        modelled.compile_model(live_model(_plan()), 1500, _quiet)
    assert (tmp_path / "said").read_text() == f"generic//0/{tmp_path}/cache/vm-kernels\n"


def test_a_model_that_cannot_be_compiled_is_told(compiler):
    compiler("echo first >&2; echo MemoryError >&2; exit 1")
    with pytest.raises(LabError, match=r"^the modelled switches cannot be compiled:\nMemoryError$"):
        modelled.compile_model(live_model(_plan()), 1500, _quiet)


def test_an_interrupt_while_the_model_is_compiled_ends_that(compiler, tmp_path):
    pid, before = tmp_path / "pid", signal.signal(signal.SIGINT, signal.default_int_handler)
    compiler(f"echo $$ >{pid}; sleep 0.3; kill -INT $PPID; exec sleep 60")
    try:
        with pytest.raises(KeyboardInterrupt):
            modelled.compile_model(live_model(_plan()), 1500, _quiet)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_without_a_folder_for_machine_code_the_remedy_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(modelled, "CACHE", tmp_path / "file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(
        CapabilityError, match=rf"neither {tmp_path}/file nor {tmp_path}/file/testbed can be written; mak"
    ):
        modelled.compile_model(live_model(_plan()), 1500, _quiet)


def test_another_python_than_the_machines_is_refused(monkeypatch):
    monkeypatch.setattr(modelled, "_PYTHON", (3, 99))
    with pytest.raises(
        CapabilityError, match=r"in the virtual machine Python 3\.99 must compile, .*vm\.engine.*does without"
    ):
        modelled.require_python()


def test_machine_code_of_another_numba_is_refused_inside():
    versions = {**modelled.compiler_versions(), "numba": "0.1"}
    with pytest.raises(
        CapabilityError, match=r"has numba \S+, and its modelled switches were compiled by 0\.1; install"
    ):
        modelled.prepare_for_model(versions)


def test_a_kernel_without_taps_is_told_inside(tmp_path, monkeypatch):
    (tmp_path / "modprobe").write_text("#!/bin/sh\necho 'modprobe: no module tun' >&2\nexit 1\n")
    (tmp_path / "modprobe").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in modelled._PROCESSOR:
        monkeypatch.setenv(name, "")  # restored when the test ends
    with pytest.raises(CapabilityError, match="has not what modelled switches need: modprobe: no module tun"):
        modelled.prepare_for_model(modelled.compiler_versions())


def test_settings_of_switches_are_looked_at_first():
    plan = _plan(f"{_TEXT}simulator: {{watchdog: 10}}\n")
    problems = VirtualMachineEngine().find_missing(plan, _quiet).problems
    assert [problem.key for problem in problems] == ["simulator.watchdog"]
    with pytest.raises(InputError, match="without flow control there are none"):
        VirtualMachineEngine().find_missing(plan, _quiet).raise_if_missing()


def test_the_machine_gets_the_code_and_the_versions_that_made_it(tmp_path, monkeypatch):
    (tmp_path / "serve.nbi").write_text("code")
    monkeypatch.setattr(vm, "compile_model", lambda *_: {"testbed/x/__pycache__/serve.nbi": tmp_path / "serve.nbi"})
    monkeypatch.setattr(vm, "qemu_version", lambda: "QEMU")
    monkeypatch.setattr(vm, "require_image", lambda: Image(tmp_path))
    monkeypatch.setattr(vm, "why_no_kvm", lambda image: "no")
    monkeypatch.setattr(boot, "_DISKS", tmp_path)
    kept = tmp_path / "kept.tar"
    monkeypatch.setattr(
        boot, "qemu_command",
        lambda machine, image, project, *_: ["sh", "-c", f"cp {project} {kept}"],
    )  # fmt: skip
    with pytest.raises(LabError, match="ended without a result"):
        VirtualMachineEngine().measure(_plan(), tmp_path / "results", _quiet)
    with tarfile.open(kept) as archive:
        code, job = (archive.extractfile(name) for name in ("testbed/x/__pycache__/serve.nbi", "job/job.json"))
        assert code is not None
        assert job is not None
        assert code.read() == b"code"
        assert json.load(job)["compiled_by"] == modelled.compiler_versions()
