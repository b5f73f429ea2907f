"""The commands analyse and explain, as they are typed."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.ui.cli import analyse_commands
from testbed.ui.cli.app import app
from testbed.ui.cli.output import results

LONG_WAY = "topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}\n"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(results, "_width", 200)


def typed(*words):
    """Exit code and what is printed on standard output."""
    found = CliRunner().invoke(app, words, catch_exceptions=False)
    return found.exit_code, found.stdout


def problems_of(*words):
    with pytest.raises(InputError) as caught:
        typed(*words)
    return [str(problem) for problem in caught.value.problems]


def test_scenarios_stand_side_by_side():
    code, text = typed("analyse", "mesh4x4", "torus4x4", "--pattern", "all_to_all", "--pattern", "transpose")
    assert code == 0
    lines = text.splitlines()
    assert lines[0].split() == ["mesh4x4", "torus4x4"]
    wanted = {
        "links between switches": ["24", "32"],
        "hops, mean (same switch 0)": ["2.6667", "2.1333"],
        "hops, max": ["6", "4"],
        "switches on a path, max": ["7", "5"],
        "all_to_all: flows on a channel, max": ["16", "8"],
        "all_to_all: flows on a channel, mean": ["13.333", "8"],
        "VLANs, max per switch": ["4", "8"],
    }
    for label, values in wanted.items():  # one value a cell
        (row,) = (line for line in lines if line.startswith(f"{label} "))
        assert row.removeprefix(label).split() == values
    assert any(line.startswith("transpose: saturates") for line in lines)


def test_as_json_there_is_one_object_a_scenario():
    code, text = typed("analyse", "mesh4x4", "mesh4x2", "--format", "json")
    found = json.loads(text)["analyses"]
    assert code == 0
    assert [one["scenario"] for one in found] == ["mesh4x4", "mesh4x2"]
    assert [one["mean_switches_on_path"] for one in found] == [3.5, 2.75]
    assert list(found[0]["patterns"]) == ["all_to_all"]


def test_settings_hold_for_every_scenario():
    found = json.loads(typed("analyse", "mesh4x4", "torus4x4", "--set", "topology.sizes=[8,2]", "--format=json")[1])[
        "analyses"
    ]
    assert [one["switch_links"] for one in found] == [22, 24]


def test_a_plan_that_is_not_proved_is_shown_and_ends_with_1(tmp_path):
    (tmp_path / "cyclic.yaml").write_text(LONG_WAY)
    (tmp_path / "declared.yaml").write_text(LONG_WAY + "expect: deadlock\n")
    code, text = typed("analyse", str(tmp_path / "cyclic.yaml"), "mesh4x2")
    assert code == 1
    assert "NO" in next(line for line in text.splitlines() if line.startswith("proved"))
    assert typed("analyse", str(tmp_path / "declared.yaml"))[0] == 0
    code, text = typed("explain", str(tmp_path / "cyclic.yaml"), "h1", "h3")
    assert (code, "2 hops; no path has fewer" in text) == (1, True)


def test_all_problems_of_all_scenarios_come_at_once(tmp_path):
    (tmp_path / "wrong.yaml").write_text("topology: {kind: messh, sizes: [2, 2]}\n")
    (tmp_path / "six.yaml").write_text("topology: {kind: mesh, sizes: [3, 2]}\n")
    found = problems_of(
        "analyse", str(tmp_path / "wrong.yaml"), "mesh4x5", "--pattern", "transpsoe", "--output", "x.gif"
    )
    assert found[0] == '--output: should be a file that ends in .svg, .pdf or .png, not "x.gif"'
    assert found[1].startswith('--pattern: there is no pattern "transpsoe". Did you mean "transpose"? Known: ')
    assert found[2].startswith(f'{tmp_path / "wrong.yaml"}: topology.kind: there is no topology "messh".')
    assert found[3].startswith('mesh4x5: no scenario of that name. Did you mean "mesh4x4"?')
    assert len(found) == 4
    found = problems_of("analyse", str(tmp_path / "six.yaml"), "mesh4x2", "mesh4x5", "--pattern", "transpose")
    assert found[0].endswith('six.yaml: --pattern: pattern "transpose" needs a square number of hosts, not 6')
    assert found[1].startswith("mesh4x5: no scenario of that name")


def test_too_many_scenarios_for_one_plot():
    found = problems_of("analyse", *["mesh4x2"] * 13, "--output", "x.svg")
    assert found == ["--output: draws up to 12 scenarios and here are 13; draw them in parts"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["svg", "PNG", "pdf"])
def test_a_plot_is_written(tmp_path, suffix):
    file = tmp_path / f"loads.{suffix}"
    code, text = typed("analyse", "mesh4x4", "torus4x4", "--output", str(file))
    data = file.with_suffix(".csv")
    assert (code, f"plot: {file}\ndata: {data}" in text) == (0, True)
    rows = list(csv.DictReader(data.read_text().splitlines()))
    channels = [row for row in rows if (row["scenario"], row["figure"]) == ("torus4x4", "channel load all_to_all")]
    assert [int(row["place"]) for row in channels] == list(range(1, 65))
    assert sum(float(row["value"]) for row in channels) == pytest.approx(16 * 32 / 15)  # 32 hops from a host to all 15
    shares = [float(row["value"]) for row in rows if (row["scenario"], row["figure"]) == ("mesh4x4", "path length")]
    assert sum(shares) == pytest.approx(100)
    if suffix == "svg":
        drawn = "".join(ElementTree.fromstring(file.read_text()).itertext())
        assert "torus4x4 (mean 2.13 hops)" in drawn
    else:
        assert file.read_bytes().startswith({"PNG": b"\x89PNG\r\n", "pdf": b"%PDF-"}[suffix])
    assert problems_of("analyse", "mesh4x4", "--output", str(tmp_path / "no" / file.name)) == [
        f"{tmp_path / 'no' / file.name}: cannot be written: No such file or directory"
    ]


def test_a_path_is_explained_hop_by_hop():
    code, text = typed("explain", "torus8x8", "h9", "h64")
    assert code == 0
    assert "torus8x8: h9 to h64, dor, fixed" in text
    assert ["s16", "4", "s9", "5", "s24", "s16→s24", "13"] in [line.split() for line in text.splitlines()]
    assert "  s64  table=1,priority=200,dl_vlan=13,dl_dst=02:00:00:00:00:40,actions=pop_vlan,output:1" in text
    assert "7 hops; a path of 3 hops is there: s9 s16 s8 s64" in text
    assert "not taken: in dimension 2 it goes from 1 to 7 in 6 hops and not 2" in text


def test_an_explanation_as_json():
    code, text = typed("explain", "mesh4x4", "s1", "h16", "--format", "json")
    found = json.loads(text)
    assert (code, found["source"], found["destination"], found["proved"]) == (0, "h1", "h16", True)
    assert [step["switch"] for step in found["steps"]] == ["s1", "s2", "s3", "s4", "s8", "s12", "s16"]
    assert (found["shorter"], found["backup"], found["hops"]) == (None, None, 6)


def test_backup_paths_and_layers_have_their_lines():
    routing = ["--set", "routing.kind=sr", "--set", "assignment.kind=openflow"]
    code, text = typed("explain", "hypercube4", "s1", "s16", *routing, "--set", "routing.backup=true")
    assert code == 0
    assert "layer" in text.splitlines()[1]
    assert "backup path, no link in common: " in text


@pytest.mark.parametrize(
    ("source", "sentence"), [("h161", "SRC: there is no host or switch"), ("h16", "DST: both are h16")]
)
def test_names_that_explain_cannot_use(source, sentence):
    (found,) = problems_of("explain", "mesh4x4", source, "h16")
    assert found.startswith(sentence)


@pytest.mark.parametrize("name", ["analyse", "explain"])
def test_the_program_has_the_commands_with_help_and_an_example(name):
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-m", "testbed", name, "--help"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": root, "COLUMNS": "200"},
    )  # fmt: skip
    assert (done.returncode, f"testbed {name}" in done.stdout, "Example" in done.stdout) == (0, True, True)


@pytest.mark.slow
def test_wrong_input_ends_with_2_and_no_traceback():
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-m", "testbed", "analyse", "mesh4x5", "torus4x5"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": root, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 2
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["mesh4x5", "torus4x5"]


def test_the_module_adds_both_commands():
    assert {command.callback for command in app.registered_commands} >= {
        analyse_commands.analyse,
        analyse_commands.explain,
    }
