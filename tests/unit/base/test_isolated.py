"""No Python of the program takes code or settings from the folder that it is called in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.base import python_isolation
from tests.planted import Planted, plant

ROOT = Path(__file__).parents[3]
_SCENARIO = "topology: {kind: mesh, sizes: [2]}\nengine: simulate\nsimulator: {duration: 20, warm_up: 5}\n"
_SWEEP = """
scenarios: [./it.yaml]
set: {lab.seed: [1]}
workloads: [{kind: iperf3, protocol: udp, pattern: neighbour, repeats: 1}]
"""
_SHOW = """
import sys
sys.path[:0] = [sys.argv[1]]
from testbed.base.python_isolation import isolate
isolate()
import matplotlib, numba
from numba.core import config
config.reload_config()  # as the compiler does
print(repr(config.CACHE_DIR), config.DISABLE_JIT, matplotlib.rcParams["lines.linewidth"])
"""


@pytest.fixture
def planted(tmp_path) -> Planted:
    found = plant(tmp_path / "somebody")
    (found.folder / "it.yaml").write_text(_SCENARIO)
    (found.folder / "them.yaml").write_text(_SWEEP)
    return found


def test_planted_files_are_taken_by_a_python_started_otherwise(planted):
    """So that the tests here can fail."""
    for words in (("-c", "import csv"), ("-m", "json.tool")):
        done = subprocess.run([sys.executable, *words], cwd=planted.folder, capture_output=True, check=False)
        assert done.returncode
        assert planted.taken()
        planted.mark.unlink()


@pytest.mark.slow
def test_commands_take_no_code_from_their_folder(planted):
    calls = (
        ("plan", "it.yaml", "--output", "plan.json"), ("verify", "plan.json"), ("plan", "./it.yaml", "--json"),
        ("audit", "."), ("list",), ("run", "it.yaml"), ("exercise", "list"),
        ("plan", "mesh4x2", "--set", "lab.seed=2"),
    )  # fmt: skip
    for words in calls:
        done = planted.run(*words, TESTBED_INTERPRET="1")
        assert "Traceback" not in done.stderr, (words, done.stderr)
        assert planted.taken() == [], words


@pytest.mark.slow
def test_workers_take_no_code_from_their_folder(planted):
    done = planted.run("sweep", "./them.yaml", "--cluster", "local:1")
    assert planted.taken() == []
    assert done.returncode == 0, done.stderr


def test_an_isolated_module_gets_its_words_and_no_folder(planted):
    command = python_isolation.make_module_command("testbed.planning.certificate_check", "no plan", "no certificate")
    assert command[1] == "-I"
    done = subprocess.run(
        command, cwd=planted.folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(planted.folder), "PYTHONSTARTUP": str(planted.folder / "json.py")},
    )  # fmt: skip
    assert "no plan" in done.stdout + done.stderr
    assert planted.taken() == []


def test_python_m_testbed_leaves_the_folder_once_it_runs():
    code = "import os, sys; sys.path.insert(0, os.getcwd()); sys.path.append(''); import runpy\n"
    code += "sys.argv[1:] = ['--version']; runpy.run_module('testbed', run_name='__main__')\n"
    code += "print(os.getcwd() in sys.path, '' in sys.path)"
    for folder, stays in (("/etc", False), (str(ROOT), True)):  # the clone's own folder is where its packages are
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == f"{stays} False"


def test_settings_of_libraries_in_the_folder_have_no_effect(planted):
    command = python_isolation.make_code_command(_SHOW, str(ROOT))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(command, cwd=planted.folder, capture_output=True, text=True, check=True, env=clean)
    assert done.stdout.split() == ["''", "0", "1.5"]
    own = {**clean, "NUMBA_CACHE_DIR": "/mine"}  # the caller's own word
    done = subprocess.run(command, cwd=planted.folder, capture_output=True, text=True, check=True, env=own)
    assert done.stdout.split() == ["'/mine'", "0", "1.5"]


def test_the_environment_of_pythons_changes_nothing_of_them():
    variables = {"PYTHONPATH": "/x", "PYTHONINSPECT": "1", "PYTHONSTARTUP": "x", "HOME": "/h", "PATH": "/p"}
    assert python_isolation.clean_environment(variables) == {"HOME": "/h", "PATH": "/p"}


def test_one_module_starts_pythons():
    """Elsewhere nothing names the interpreter, nor a program called python."""
    found = []
    for file in sorted([*(ROOT / "testbed").rglob("*.py"), *(ROOT / "controllers").rglob("*.py")]):
        if file.name == "python_isolation.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("executable", "_base_executable"):
                found.append(f"{file}:{node.lineno}: {ast.unparse(node)}")
            if isinstance(node, ast.ImportFrom) and node.module == "sys":
                found += [f"{file}:{node.lineno}: {one.name}" for one in node.names if "executable" in one.name]
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [getattr(node, "module", None) or "", *(one.name for one in node.names)]
                if any(name.partition(".")[0] in ("multiprocessing", "venv") for name in names) or (
                    "ProcessPoolExecutor" in names
                ):
                    found.append(f"{file}:{node.lineno}: {ast.unparse(node)}")
            if isinstance(node, (ast.List, ast.Tuple)) and len(node.elts) > 1:
                first = ast.unparse(node.elts[0]).strip("'")
                if first.rpartition("/")[2].startswith("python"):
                    found.append(f"{file}:{node.lineno}: {first}")
    assert found == []
