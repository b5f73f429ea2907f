"""The commands export and check as they are typed, and the folders they leave and read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.devices import DIALECTS
from testbed.ui.cli import check_command, export_commands  # noqa: F401 - they add their commands
from testbed.ui.cli.app import app
from testbed.ui.cli.output import results

MESH = "topology: {kind: mesh, sizes: [3, 2]}\n"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(results, "_width", 200)


@pytest.fixture
def mesh(tmp_path):
    file = tmp_path / "mesh.yaml"
    file.write_text(MESH)
    return str(file)


def typed(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return found.exit_code, found.stdout


def problems_of(*words: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        typed(*words)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def written(tmp_path, mesh):
    """A folder of scripts."""
    folder = tmp_path / "switches"
    assert typed("export", mesh, "--dialect", "linux-bridge-iproute2", "--output", folder)[0] == 0
    return folder


def test_the_list_of_dialects():
    code, text = typed("export", "--dialect", "list")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()] == list(DIALECTS)
    code, text = typed("export", "--dialect", "list", "--format", "json")
    assert json.loads(text)["dialects"]["powerconnect-6200"]["models"] == ["PC6224", "PC6248"]


def test_a_folder_a_switch_with_readme_cabling_and_manifest(tmp_path, mesh):
    folder = tmp_path / "new" / "switches"
    code, text = typed("export", mesh, "--dialect", "linux-networkd", "-o", folder, "--ports", "lan{}")
    assert code == 0
    assert text.splitlines()[-1].startswith(f"{folder}: ")
    manifest = json.loads((folder / "export.json").read_text())
    assert {file for file in manifest["files"] if "/" not in file} == {"README.md", "cabling.csv"}
    assert sorted([*manifest["files"], "export.json"]) == sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()
    )
    assert (folder / "s6" / "20-lan1.network").is_file()
    rows = list(csv.DictReader((folder / "cabling.csv").read_text().splitlines()))
    assert len(rows) == 6 + 7  # hosts and links
    assert [file.name for file in folder.parent.iterdir()] == ["switches"]


def test_as_json(tmp_path, mesh):
    code, text = typed("export", mesh, "-d", "csv", "-o", tmp_path / "out", "--flow-control", "off", "--format", "json")
    found = json.loads(text)
    assert (code, found["dialect"], found["flow_control"]) == (0, "csv", "off")
    assert found["files"] == ["README.md", "cabling.csv", "mac-entries.csv", "ports.csv"]


def test_exporting_again_takes_the_place_of_the_earlier_export(written, mesh):
    assert (written / "s1.sh").is_file()
    assert typed("export", mesh, "-d", "csv", "-o", written)[0] == 0
    assert not (written / "s1.sh").exists()
    assert (written / "ports.csv").is_file()
    (written / "notes.txt").write_text("mine")
    before = sorted(written.iterdir())
    assert problems_of("export", mesh, "-d", "csv", "-o", written) == [
        f"--output: {written} holds notes.txt, which no export wrote; give another folder, or empty this one"
    ]
    assert sorted(written.iterdir()) == before


def test_folders_of_others_are_left_alone(tmp_path, mesh):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "a").write_text("")
    (foreign / "b").write_text("")
    assert problems_of("export", mesh, "-d", "csv", "-o", foreign) == [
        f"--output: {foreign} holds a and 1 more, which no export wrote; give another folder, or empty this one"
    ]
    assert problems_of("export", mesh, "-d", "csv", "-o", mesh) == [
        f"--output: {mesh} is a file; give the name of a folder"
    ]
    (foreign / "export.json").write_text("{")
    assert problems_of("export", mesh, "-d", "csv", "-o", foreign)[0].startswith(
        f"{foreign / 'export.json'}: is damaged: "
    )
    (foreign / "export.json").write_text("[]")
    assert problems_of("export", mesh, "-d", "csv", "-o", foreign) == [
        f"{foreign / 'export.json'}: is damaged: it lists no files; export again into another folder"
    ]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert typed("export", mesh, "-d", "csv", "-o", empty)[0] == 0


def test_nothing_is_written_when_anything_is_refused(tmp_path, mesh):
    assert problems_of("export", mesh, "-d", "cisco-ios", "-o", tmp_path / "out")
    assert problems_of("export", mesh, "-d", "csv", "-o", tmp_path / "out", "--ports", "swp")
    assert problems_of("export", "-d", "csv") == [
        "NAME: is required: a scenario to export",
        "--output: is required: the folder to write",
    ]
    missing, dialect = problems_of("export", mesh, "-d", "cisco")
    assert missing == "--output: is required: the folder to write"
    assert dialect.endswith('Did you mean "cisco-ios"?')
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mesh.yaml"]


def test_a_folder_that_cannot_be_made(mesh):
    assert problems_of("export", mesh, "-d", "csv", "-o", "/proc/no/such") == [
        "--output: /proc/no/such cannot be written: No such file or directory"
    ]


def test_addresses_from_a_file(tmp_path, mesh):
    file = tmp_path / "macs.csv"
    rows = [f"h{host},AA:00:00:00:00:0{host}" for host in range(1, 7)]
    file.write_text("\n".join(["host,mac", *rows]))
    assert typed("export", mesh, "-d", "csv", "-o", tmp_path / "out", "--macs", file)[0] == 0
    entries = list(csv.DictReader((tmp_path / "out" / "mac-entries.csv").read_text().splitlines()))
    assert {row["mac"] for row in entries} == {f"aa:00:00:00:00:0{host}" for host in range(1, 7)}
    file.write_text("h1,aa:00:00:00:00:01\nh1,aa:00:00:00:00:02\nh2\n")
    assert problems_of("export", mesh, "-d", "csv", "-o", tmp_path / "other", "--macs", file) == [
        f"--macs {file}: h1 is listed more than once",
        f'--macs {file}: "h2" should be a host and its address: h1,02:…',
    ]
    assert problems_of("export", mesh, "-d", "csv", "-o", tmp_path / "other", "--macs", tmp_path / "none") == [
        f"--macs {tmp_path / 'none'}: cannot be read: No such file or directory"
    ]


def test_what_was_written_carries_the_plan_out(written, mesh):
    code, text = typed("check", written, "--against", mesh)
    assert code == 0
    assert text == f"{written} matches {mesh}: every setting compared, 30 pairs and all broadcasts walked\n"


def change(folder: Path, file: str, before: str, after: str) -> None:
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after, 1))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            "vlan add dev swp3 vid 10-11\n",
            "vlan add dev swp3 vid 10\n",
            "s1 swp3: membership in VLAN 11 is none, expected tagged",
        ),
        (
            "vid 10 pvid untagged\nvlan add dev swp1 vid 11 untagged",
            "vid 10 untagged\nvlan add dev swp1 vid 11 pvid untagged",
            "s1 swp1: the PVID is 11, expected 10",
        ),
        (
            "vlan add dev swp1 vid 11 untagged",
            "vlan add dev swp1 vid 11",
            "s1 swp1: membership in VLAN 11 is tagged, expected untagged",
        ),
        (
            "00:02 dev swp2 master static vlan 10",
            "00:02 dev swp3 master static vlan 10",
            "s1: the entry of 02:00:00:00:00:02 in VLAN 10 is swp3, expected swp2",
        ),
        ("swp3 learning off", "swp3 learning on", "s1 swp3: learning is on, expected off"),
        ("stp_state 0", "stp_state 1", "s1: the spanning tree protocol is on, expected off"),
        ("vlan_filtering 1 ", "", "s1: VLAN filtering is off, expected on"),
        ("link set dev swp2 master br0\n", "", "s1.sh line"),
        ("vid 10 pvid untagged", "vid 10 pvid untagget", "s1.sh line"),
    ],
)
def test_a_planted_fault_is_found(written, mesh, before, after, told):
    change(written, "s1.sh", before, after)
    code, text = typed("check", written, "--against", mesh)
    assert code == 1
    assert told in text
    assert "DIFFERS FROM" in text


def test_differences_as_json(written, mesh):
    change(written, "s1.sh", "vid 10 pvid untagged", "vid 10 untagged")
    (written / "s2.sh").unlink()
    code, text = typed("check", written, "--against", mesh, "--format", "json")
    found = json.loads(text)
    assert (code, found["same"], found["pairs"]) == (1, False, 30)
    pvid = next(one for one in found["settings"] if one["what"] == "the PVID")
    assert (pvid["switch"], pvid["port"], pvid["found"], pvid["planned"]) == ("s1", "swp1", "none", "10")
    assert pvid["pairs_astray_at_switch"] >= 5
    assert {"place": "s2.sh", "sentence": "is not there, so s2 cannot be checked"} in found["unread"]
    assert any(walk["source"] == "h1" and walk["received"] == {} for walk in found["walks"])


def test_another_plan_than_the_one_that_was_exported(written, mesh, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("topology: {kind: mesh, sizes: [2, 3]}\n")
    found = CliRunner().invoke(app, ["check", str(written), "--against", str(other)], catch_exceptions=False)
    assert found.exit_code == 1
    assert "was written from the plan" in found.stderr
    crowd = tmp_path / "crowd.yaml"
    crowd.write_text("topology: {kind: flat, hosts: 7}\n")
    assert problems_of("check", written, "--against", crowd)[0] == "--macs: lacks h7"


def test_a_manifest_of_another_version(tmp_path, mesh):
    folder = tmp_path / "tables"
    typed("export", mesh, "-d", "csv", "-o", folder)
    (folder / "export.json").write_text('{"files": [], "schema_version": 9}')
    assert problems_of("check", folder, "--against", mesh) == [
        "export.json: has schema version 9; this program reads 1"
    ]
    (folder / "export.json").write_text("{")
    assert problems_of("check", folder, "--against", mesh)[0].startswith(f"{folder / 'export.json'}: is damaged: ")
