"""The files of one switch in every dialect, whole; UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from testbed.devices import DIALECTS, Options, export_plan
from testbed.planning import make_plan
from tests.fabrics import scenario_of

FOLDER = Path(__file__).parent / "export"
RING: dict[str, Any] = {"name": "ring3", "topology": {"kind": "ring", "switches": 3}}
RENAMED = {**RING, "assignment": {"kind": "renamed"}}
MESH = {**RENAMED, "name": "mesh2x2", "topology": {"kind": "mesh", "sizes": [2, 2]}}
TREE: dict[str, Any] = {"name": "tree3", "topology": {"kind": "tree", "switches": 3}}
CASES: dict[str, tuple[dict[str, Any], Options]] = {
    "linux-bridge-iproute2": (RING, Options("linux-bridge-iproute2")),
    "linux-bridge-iproute2-renamed": (MESH, Options("linux-bridge-iproute2", flow_control="keep")),
    "linux-networkd": (RING, Options("linux-networkd")),
    "ifupdown2": (RING, Options("ifupdown2")),
    "powerconnect-5300": (RING, Options("powerconnect-5300")),
    "powerconnect-5300-renamed": (RENAMED, Options("powerconnect-5300", flow_control="off")),
    "powerconnect-6200": (RING, Options("powerconnect-6200")),
    "cisco-ios": (TREE, Options("cisco-ios")),
    "sonic": (TREE, Options("sonic", flow_control="keep")),
    "csv": (RING, Options("csv")),
}
# The first switch has no port that keeps floods back.
SHOWN = {"linux-bridge-iproute2-renamed": "s4"}


def texts_of(case: str) -> str:
    blocks, options = CASES[case]
    files = export_plan(make_plan(scenario_of(blocks)), options).files
    shown = SHOWN.get(case, "s1")
    others = tuple(f"s{switch}{end}" for switch in (1, 2, 3, 4) for end in "./" if f"s{switch}" != shown)
    names = [name for name in sorted(files) if not name.startswith(others)]
    return "".join(f"==> {name} <==\n{files[name]}" for name in names)


@pytest.mark.parametrize("case", CASES)
def test_files(case):
    golden = FOLDER / f"{case}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(texts_of(case), encoding="utf-8")
    assert texts_of(case) == golden.read_text(encoding="utf-8")


def test_every_dialect_has_a_case_and_every_file_too():
    assert {options.dialect for _, options in CASES.values()} == DIALECTS.keys()
    assert {file.stem for file in FOLDER.glob("*.txt")} == CASES.keys()
