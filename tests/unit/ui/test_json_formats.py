"""Every command's JSON conforms to the schema that is published for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.main import get_command

from testbed.engines.vm import box, image
from testbed.ui import cli
from testbed.ui.cli.app import app
from tests.json_formats import FOLDER, closed, conforms, file_of
from tests.unit.ui.test_cli_surface import typed

cli.load_commands()


def commands(command: Any = None, path: tuple[str, ...] = ()) -> list[str]:
    """Names of all commands that print JSON."""
    command = command or get_command(app)
    if hasattr(command, "commands"):
        return [found for name, one in command.commands.items() for found in commands(one, (*path, name))]
    options = [option for parameter in command.params for option in parameter.opts]
    return [" ".join(path)] if "--format" in options and not command.hidden else []


def printed(*words: str, command: str | None = None) -> dict[str, Any]:
    return conforms(command or words[0], typed(*words, "--json")[1])


def test_each_command_has_its_schema():
    missing = [name for name in commands() if not file_of(name).exists()]
    assert missing == []
    for file in FOLDER.glob("*.json"):
        Draft202012Validator.check_schema(json.loads(file.read_text(encoding="utf-8")))
    known = {file_of(name).name for name in (*commands(), "error", "variants")}
    assert {file.name for file in FOLDER.glob("*.json")} <= known


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "torus4x4"), ("plan", "mesh4x4-renamed"), ("plan", "torus4x4-failures"), ("plan", "ring8-lag"),
        ("plan", "deadlock-torus8x8"), ("list",), ("analyse", "ring4", "torus4x4"),
        ("analyse", "mesh4x4-renamed", "--pattern", "transpose"),
        ("analyse", "ring4", "--vary", "routing=north_last,updown"),
        ("analyse", "dl-ud3-irregular16"),
        ("analyse", "fattree14", "--set", "routing={kind: ecmp}"),
        ("explain", "torus4x4", "h1", "h16"), ("explain", "mesh4x4-renamed", "h1", "h9"),
        ("explain", "sr-irregular16", "h1", "h9"), ("explain", "dl-ud3-irregular16", "h1", "h9"),
        ("explain", "updown-irregular16", "h2", "h6"),
        ("verify", "torus4x4", "deadlock-torus8x8"), ("verify", "ring8", "--set", "routing.ring=shortest"),
        ("power", "torus4x4-3links"), ("power", "torus4x4-3links", "--pattern", "neighbour", "--slower"),
        ("segments", "sr-irregular16"), ("doctor",), ("exercise", "list"), ("export", "-d", "list"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_reads_nothing_but_scenarios(words, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    printed(*words, command="exercise list" if words[0] == "exercise" else None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--loads", "0.1", "--cycles", "2000", "--warm-up", "500"),
        ("--loads", "0.1,0.9", "--level", "packet", "--duration", "1", "--warm-up", "0.2", "--seeds", "2"),
        ("--loads", "0.9", "--level", "packet", "--duration", "1", "--warm-up", "0.2", "--flow-control", "none"),
        ("--loads", "0.9", "--level", "packet", "--duration", "1", "--warm-up", "0.2", "--tie-orders", "2"),
        ("--pattern", "all_to_all", "--message", "2000"),
        ("--loads", "1", "--cycles", "20000", "--warm-up", "500"),
    ],
    ids=["flit", "packet", "drops", "orders", "replay", "deadlock"],
)  # fmt: skip
def test_simulations(words, tmp_path):
    scenario = "ring5-deadlock" if "20000" in words else "ring4"
    printed("simulate", scenario, *words, "--results", str(tmp_path))


@pytest.mark.slow
def test_runs_and_what_is_made_of_them(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "topology: {kind: ring, switches: 4}\nrouting: updown\nengine: simulate\n"
        "simulator: {duration: 2, warm_up: 0.5}\n"
        "workloads: [{kind: iperf3, protocol: udp, repeats: 2}, {kind: ping}]\n"
    )
    run = printed("run", str(tmp_path / "mine.yaml"), "--results", str(tmp_path / "one"))
    other = printed("run", str(tmp_path / "mine.yaml"), "--results", str(tmp_path / "two"), "--set", "routing=sr")
    printed("report", run["results"])
    printed("compare", run["results"], other["results"])
    (tmp_path / "sweep.yaml").write_text("scenarios: [mine.yaml]\nset: {routing.kind: [updown, sr]}\n")
    sweep = printed("sweep", str(tmp_path / "sweep.yaml"), "--results", str(tmp_path / "three"))
    assert printed("compare", *(str(Path(sweep["results"]) / run["folder"]) for run in sweep["runs"]))


def test_configurations_of_switches(tmp_path):
    for dialect in ("linux-bridge-iproute2", "powerconnect-5300", "csv"):
        printed("export", "ring4", "-d", dialect, "-o", str(tmp_path / dialect))
    printed("check", str(tmp_path / "linux-bridge-iproute2"), "--against", "ring4")
    printed("check", str(tmp_path / "powerconnect-5300"), "--against", "ring4")
    assert printed("check", str(tmp_path / "csv"), "--against", "ring4", "--set", "routing=sr")["other_plan"]
    changed = next((tmp_path / "linux-bridge-iproute2").glob("s2*"))
    lines = changed.read_text().splitlines(keepends=True)
    tagged = next(n for n, line in enumerate(lines) if "vlan add" in line and "pvid" not in line)
    changed.write_text("".join(lines[:tagged] + lines[tagged + 1 :]))
    assert printed("check", str(tmp_path / "linux-bridge-iproute2"), "--against", "ring4")
    printed("audit", str(tmp_path / "powerconnect-5300"))
    printed("audit", str(tmp_path / "linux-bridge-iproute2"))


def test_folders_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed("init", "hall")
    first = printed("exercise", "list", command="exercise list")["exercises"][2]
    name = first["exercise"]
    printed("exercise", "start", name, command="exercise start")
    printed("exercise", "check", name, command="exercise check")
    printed("exercise", "hint", name, command="exercise hint")
    printed("exercise", "reset", name, command="exercise reset")
    (tmp_path / "class" / "ada").mkdir(parents=True)
    shutil.copytree(tmp_path / name, tmp_path / "class" / "ada" / name)
    (tmp_path / "class" / "bob").mkdir()
    (tmp_path / "class" / "cid.zip").touch()
    printed("exercise", "grade", "class", command="exercise grade")


def test_rows_of_papers(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    printed("paper", "--only", "k11-table3", "--quick", "--results", str(tmp_path))


def test_the_virtual_machine(tmp_path, monkeypatch):
    """What takes minutes, the image and its boxes, is said to be there."""
    (tmp_path / "versions").write_text("kernel 6.1.0-38-amd64\nopenvswitch-switch 3.1.0\n")
    monkeypatch.setattr(image, "build_image", lambda progress: image.Image(tmp_path))
    monkeypatch.setattr(box, "build_boxes", lambda providers, progress, folder: [folder / name for name in providers])
    assert printed("vm", "build", command="vm build")["versions"] == {
        "kernel": "6.1.0-38-amd64",
        "openvswitch-switch": "3.1.0",
    }
    printed("vm", "box", "-o", str(tmp_path), command="vm box")


def test_errors():
    printed("plan", "torus4x5", command="error")
    printed("plan", "torus4x4", "--set", "topology.sizes=[1]", "--set", "lab.dilatation=3", command="error")
    printed("status", "no-such-lab", command="error")


def test_a_key_that_is_not_published_is_found():
    schema = closed(json.loads(file_of("plan").read_text(encoding="utf-8")))
    value = json.loads(typed("plan", "ring4", "--json")[1])
    assert Draft202012Validator(schema).is_valid(value)
    assert not Draft202012Validator(schema).is_valid({**value, "more": 1})
    del value["vlans"]
    assert not Draft202012Validator(schema).is_valid(value)


def test_a_schema_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert json.loads(typed("schema", "plan")[1]) == json.loads(file_of("plan").read_text(encoding="utf-8"))
    code, _, said = typed("schema", "pln")
    assert (code, said) == (2, 'COMMAND: nothing is published for "pln". Did you mean "plan"?\n')
