"""Names that a spreadsheet would take for formulas are texts in every table that is written, and are read back."""

from __future__ import annotations

import ast
import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

import testbed
from testbed.base.errors import Problem
from testbed.base.untrusted_text import csv_text
from testbed.devices import Options, compare_files, export_plan
from testbed.devices.audit.cabling import _table
from testbed.engines.simulate.flit_settings import Settings
from testbed.engines.simulate.run_replay import replay_plan
from testbed.engines.simulate.traffic_matrices import _csv_matrix, make_all_to_all
from testbed.experiments.analyse.plan_figures import analyse
from testbed.experiments.analyse.plot import as_csv
from tests.fabrics import plan_of

_FORMULAS = ("=cmd|' /C calc'!A0", "+s2", "-s3", "@SUM(A1)", "'=s5", "\t=s6", "=s7\n=s7")


def hostile_plan():
    """A ring whose switches and hosts have names as a plug-in may give them."""
    made = plan_of("ring", switches=7)
    hosts = tuple(f"{name}h" for name in _FORMULAS)
    named = replace(made.topology, switch_names=_FORMULAS, host_names=hosts)
    return replace(made, topology=named)


def require_texts(table):
    rows = list(csv.reader(io.StringIO(table)))
    assert len(rows) > 1
    for row in rows:
        for cell in row:
            assert not cell.startswith(("=", "+", "@", "\t", "\r")), row
            assert not cell.startswith("-") or float(cell), row
    assert table.count("\n") == len(rows), "a row is a line"


def test_a_table_s_own_texts_numbers_and_empty_cells_stay():
    assert csv_text(("a", "b"), [("x", 1.5), ("-2", None), (1e-9, "")]) == "a,b\nx,1.5\n-2,\n1e-09,\n"


def test_exports_hold_no_formulas_and_are_read_back():
    plan = hostile_plan()
    made = export_plan(plan, Options("csv"))
    for file in ("ports.csv", "mac-entries.csv", "cabling.csv"):
        require_texts(made.files[file])
    assert "'=cmd" in made.files["ports.csv"]


def test_what_was_exported_is_checked_under_its_names():
    plan = plan_of("ring", switches=7)
    names = tuple(name for name in _FORMULAS if name.isprintable())
    named = replace(plan.topology, switch_names=(*names, "s6", "s7"))
    plan = replace(plan, topology=named)
    made = export_plan(plan, Options("csv"))
    found = compare_files(plan, made.manifest, made.files)
    assert found.is_same, found
    problems: list[Problem] = []
    rows = list(_table("cabling.csv", made.files["cabling.csv"], problems))
    assert problems == []
    assert {row.one[0] for row in rows} == {*named.switch_names}


def test_replays_hold_no_formulas_and_such_matrices_are_read(tmp_path):
    plan = hostile_plan()
    found = replay_plan(plan, Settings(), make_all_to_all(plan.topology, 1500), tmp_path, lambda text: None)
    require_texts((found.folder / "pairs.csv").read_text())
    one, other = (plan.topology.host_name(host) for host in (0, 1))
    table = csv_text(("source", "destination", "bytes"), [(one, other, 7)])
    assert np.argwhere(_csv_matrix(tmp_path / "m.csv", table, plan.topology)).tolist() == [[0, 1]]


def test_analyses_hold_no_formulas():
    plan = plan_of("ring", switches=3)
    plan = replace(plan, scenario=replace(plan.scenario, name="=cmd"))
    require_texts(as_csv([analyse(plan)]))


def test_one_function_writes_tables():
    root = Path(testbed.__file__).parent
    writing = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if "import csv" in (text := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr in ("writer", "DictWriter")
    }
    assert writing == {"base/untrusted_text.py"}
