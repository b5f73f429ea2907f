"""A command once for each of several values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.base.errors import InputError
from testbed.ui.cli.vary import variants

ROOT = str(Path(__file__).parents[3])


def command(*words, folder):
    return subprocess.run(
        [sys.executable, "-m", "testbed", *words],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ROOT},
    )  # fmt: skip


def test_values_are_parted_by_commas_outside_of_brackets():
    found = variants(["topology.sizes=[2,2],[3,3]", "routing=dor, updown"])
    assert [variant.label for variant in found] == ["[2,2] dor", "[2,2] updown", "[3,3] dor", "[3,3] updown"]
    assert found[-1].settings == ("topology.sizes=[3,3]", "routing=updown")


@pytest.mark.parametrize(
    ("vary", "problem"),
    [
        (["routing"], '--vary: "routing" should look like routing=dor,updown,sr'),
        (["=a"], '--vary: "=a" should look like routing=dor,updown,sr'),
        (["a=1", "a=2"], "--vary a: is given twice; write all its values behind one"),
        (["a=1,1"], "--vary a: has a value twice: 1,1"),
        ([f"a={','.join(map(str, range(101)))}"], "--vary: asks for 101 variants (at most 100); vary less"),
    ],
)
def test_what_cannot_be_varied_is_a_sentence(vary, problem):
    with pytest.raises(InputError) as error:
        variants(vary)
    assert str(error.value) == problem


@pytest.mark.slow
def test_analyse_has_a_column_for_each_value(tmp_path):
    done = command("analyse", "ring4", "--vary", "routing=dor,updown,stp", "--format", "json", folder=tmp_path)
    found = json.loads(done.stdout)["analyses"]
    assert [(one["scenario"], one["routing"]) for one in found] == [(name, name) for name in ("dor", "updown", "stp")]


@pytest.mark.slow
def test_simulate_runs_each_value_and_says_which(tmp_path):
    words = (
        "simulate",
        "ring4",
        "--vary",
        "routing=updown,stp",
        "--loads",
        "0.1",
        "--cycles",
        "4000",
        "--warm-up",
        "500",
    )
    done = command(*words, "--format", "json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["variants"]
    assert [one["variant"] for one in found] == ["updown", "stp"]
    folders = sorted(folder.name.partition("-simulate-")[2] for folder in (tmp_path / "results").iterdir())
    assert folders == ["ring4-stp", "ring4-updown"]


@pytest.mark.slow
def test_all_variants_are_planned_before_the_first_runs(tmp_path):
    done = command("run", "ring4", "--vary", "routing=updown,updwn", folder=tmp_path)
    assert done.returncode == 2
    assert 'there is no routing "updwn". Did you mean "updown"?' in done.stderr.replace("\n", " ")
    assert not (tmp_path / "results").exists()
