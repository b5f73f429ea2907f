"""Certificates, and the checker that believes nothing else of ours."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.certificates import judge
from testbed.base.errors import InputError, VerificationError
from testbed.planning import certificate_check, make_plan
from testbed.planning.certificate import certificate_of
from testbed.ui.cli import plan_commands, verify_command  # noqa: F401 - they add their commands
from testbed.ui.cli.app import app
from tests.fabrics import scenario_of

CHECKER = Path(certificate_check.__file__)


def typed(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return found.exit_code, found.stdout


def checked(*files: Path) -> tuple[int, str]:
    """In a process of its own, which sees no package but the standard library."""
    words = [sys.executable, "-I", "-S", str(CHECKER), *map(str, files)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_checker_is_short_and_imports_nothing_of_ours():
    text = CHECKER.read_text()
    assert len(text.splitlines()) <= 400
    tree = ast.walk(ast.parse(text))
    names = {
        name.split(".")[0]
        for node in tree
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names <= {*sys.stdlib_module_names, "__future__"}


@pytest.mark.parametrize("name", ["ring4", "mesh4x4-renamed", "mesh4x2-lag", "dl-ud3-irregular16"])
def test_a_certificate_is_written_and_holds(tmp_path, name):
    plan, certificate = tmp_path / "plan.json", tmp_path / "certificate.json"
    assert typed("plan", name, "-o", plan)[0] == 0
    assert typed("verify", name, "--certificate", certificate)[0] == 0
    code, text = checked(plan, certificate)
    assert (code, text.startswith("certified: ")) == (0, True)


def test_what_was_changed_is_refuted(tmp_path):
    plan, certificate = tmp_path / "plan.json", tmp_path / "certificate.json"
    typed("plan", "ring4", "-o", plan)
    typed("verify", plan, "--certificate", certificate)
    raw = json.loads(plan.read_text())
    place = next(n for n, rule in enumerate(raw["rules"][0]) if "dl_dst=02:00:00:00:00:02" in rule)
    raw["rules"][0][place] = raw["rules"][0][place].replace("output:2", "output:3")
    plan.write_text(json.dumps(raw))
    code, text = checked(plan, certificate)
    assert code == 1
    assert text.splitlines()[0].startswith("h1→h2: ")
    assert text.splitlines()[-1] == "REFUTED: 1 fault"
    assert checked(plan, plan)[0] == 2
    assert checked(tmp_path / "none", certificate)[0] == 2
    assert checked()[0] == 2


def test_plans_that_get_none(tmp_path):
    ring = "topology: {kind: ring, switches: 5}\nrouting: {ring: shortest}\n"
    with pytest.raises(InputError, match="can deadlock, as it says, so no order"):
        certificate_of(make_plan(scenario_of(ring + "expect: deadlock")))
    with pytest.raises(VerificationError):
        certificate_of(make_plan(scenario_of(ring)))
    learning = "topology: {kind: mesh, sizes: [2]}\nassignment: {registration: learning}"
    with pytest.raises(InputError, match="use registration: static"):
        certificate_of(make_plan(scenario_of(learning)))
    with pytest.raises(InputError, match="is of one plan, and 2 are named"):
        typed("verify", "ring4", "torus4x4", "--certificate", tmp_path / "c.json")
    assert not (tmp_path / "c.json").exists()


def test_verifier_and_checker_agree_and_faults_are_found():
    draw, counts = random.Random(7), {"proved": 0, "unproved": 0, "refused": 0}
    while counts["proved"] < 12 or counts["unproved"] < 1:
        counts[judge(draw)] += 1


def test_nothing_of_the_files_takes_effect_on_a_terminal(tmp_path):
    plan, certificate = tmp_path / "plan.json", tmp_path / "certificate.json"
    typed("plan", "ring4", "-o", plan)
    typed("verify", plan, "--certificate", certificate)
    raw = json.loads(plan.read_text())
    raw["rules"][0][0] += ",\x1b]0;title\x07\u202e" + "x" * 5000
    plan.write_text(json.dumps(raw))
    code, text = checked(plan, certificate)
    assert code == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert r"\x1b]0;title\x07\u202e" in text
    assert max(map(len, text.splitlines())) < 500


def test_files_that_two_programs_would_read_differently_are_none(tmp_path):
    plan, certificate = tmp_path / "plan.json", tmp_path / "certificate.json"
    typed("plan", "ring4", "-o", plan)
    typed("verify", plan, "--certificate", certificate)
    text = certificate.read_text()
    certificate.write_text(text.replace('{"schema_version"', '{"walks": [], "schema_version"', 1))
    assert checked(plan, certificate)[0] == 2
    certificate.write_text("[" * 100_000)
    assert checked(plan, certificate)[0] == 2
