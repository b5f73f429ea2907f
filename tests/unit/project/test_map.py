"""CONTRIBUTING's map is what the tree is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WINGS = dict(
    re.findall(
        r"^\| `([a-z]+)` \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text().partition("## Where")[0], re.MULTILINE
    )
)


def test_the_wings_are_those_of_the_tree_in_the_order_of_imports():
    tomllib = pytest.importorskip("tomllib") if sys.version_info < (3, 11) else __import__("tomllib")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [one["layers"] for one in contracts if one.get("containers") == ["testbed"]]
    assert ["__main__", *WINGS] == layers
    assert {file.parent.name for file in (ROOT / "testbed").glob("*/__init__.py")} == {*WINGS}


@pytest.mark.parametrize("wing", WINGS)
def test_what_is_in_a_wing_is_named(wing):
    inside = {file.parent.name for file in (ROOT / "testbed" / wing).glob("*/__init__.py")}
    named = {*re.findall(r"`([a-z_]+)`", WINGS[wing])}
    assert inside <= named | {"files", "checks"}
    modules = {file.stem for file in (ROOT / "testbed" / wing).glob("*.py")}
    assert named <= inside | modules | {"Plan", "Scenario"}


def test_tests_of_modules_are_in_the_folder_of_their_wing():
    folders = {file.parent.name for file in (ROOT / "tests" / "unit").glob("*/test_*.py")}
    assert folders <= {*WINGS, "benchmarks", "controllers", "project"}
    assert not [*(ROOT / "tests" / "unit").glob("test_*.py")]
