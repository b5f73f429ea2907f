"""The command check as it is typed: every dialect without an export.json, planted faults, diffs, running bridges."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.devices import DIALECTS
from testbed.ui.cli import check_command, export_commands, plan_commands  # noqa: F401 - they add their commands
from testbed.ui.cli.app import app
from testbed.ui.cli.output import results

MESH = "name: mesh\ntopology: {kind: mesh, sizes: [3, 2]}\n"
TREE = "name: tree\ntopology: {kind: tree, switches: 3}\n"
ONE_VLAN = ("cisco-ios", "sonic")


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(results, "_width", 200)


def typed(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return found.exit_code, found.stdout


def problems_of(*words: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        typed(*words)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder a dialect, as if switches had saved it, and the scenario of each."""
    top = tmp_path_factory.mktemp("saved")
    for name, text in (("mesh", MESH), ("tree", TREE)):
        (top / f"{name}.yaml").write_text(text)
    for dialect in DIALECTS:
        pauses = ["--flow-control", "keep"] if dialect == "sonic" else []
        assert typed("export", scenario(top, dialect), "-d", dialect, "-o", top / dialect, *pauses)[0] == 0
        for file in ("export.json", "README.md"):
            (top / dialect / file).unlink()
    return top


def scenario(top: Path, dialect: str) -> Path:
    return top / ("tree.yaml" if dialect in ONE_VLAN else "mesh.yaml")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_saved_is_recognised_and_matches(saved, dialect):
    code, text = typed("check", saved / dialect, "--against", scenario(saved, dialect))
    assert (code, " matches " in text) == (0, True), text


# file of one switch, what is changed in it, and what must be told of settings and of paths
FAULTS = {
    "powerconnect-5300": [
        ("s1.txt", "allowed vlan add 10-11 tagged", "allowed vlan add 10 tagged",
         "s1 g3: membership in VLAN 11 is none, expected tagged", "h4→h1: dropped after s4:g2, expected h1"),
        ("s1.txt", "general pvid 10", "general pvid 11", "s1 g1: the PVID is 11, expected 10", "arrives by"),
        ("s2.txt", "allowed vlan add 10-11 untagged", "allowed vlan add 10-11 tagged",
         "s2 g1: membership in VLANs 10-11 is tagged, expected untagged", "h1→h2: reaches h2 with a tag"),
        ("s2.txt", "no spanning-tree\n", "", "s2: the spanning tree protocol is on, expected off", ""),
        ("s2.txt", "no switchport general ingress", "switchport general ingress",
         "s2 g1: ingress filtering is off, expected on", ""),
        ("s3.txt", "00:00:01 ethernet g2 permanent", "00:00:01 ethernet g1 permanent",
         "the entry of 02:00:00:00:00:01 in VLAN", ""),
    ],
    "powerconnect-6200": [
        ("s1.txt", "bridge address 02:00:00:00:00:06 ethernet 1/g2 permanent\n", "",
         "s1: the entry of 02:00:00:00:00:06 in VLAN 10 is not there", "h1→h6: flooded to"),
        ("s5.txt", "no shutdown", "shutdown", "s5 1/g1: the port is not in the bridge, since it is shut,",
         "h5→h1: dropped"),
        ("s5.txt", "interface ethernet 1/g2", "interface ethernet 1/g9",
         "s5 1/g2: membership in VLAN 1 is untagged, expected none",
         "dropped"),
    ],
    "cisco-ios": [
        ("s1.txt", "switchport access vlan 10", "switchport access vlan 11",
         "the port is not in the bridge, since it is in VLAN 11, which this switch does not have",
         "h1→h2: dropped at s1"),
        ("s1.txt", "trunk allowed vlan 10", "trunk allowed vlan 12", "is in no VLAN that this switch has", "dropped"),
        ("s2.txt", "no spanning-tree vlan 1-4094", "", "s2: the spanning tree protocol is on", ""),
        ("s1.txt", "mac address-table static 0200.0000.0002 vlan 10 interface GigabitEthernet1/0/",
         "mac address-table static 0200.0000.0002 vlan 10 interface GigabitEthernet1/1/",
         "the entry of", "h1→h2: dropped"),
    ],
    "sonic": [
        ("s1/config_db.json", '"tagging_mode": "untagged"', '"tagging_mode": "tagged"',
         "s1 Ethernet0: the PVID is none, expected 10", "h1→h2: dropped at s1"),
        ("s1/config_db.json", '"admin_status": "up"', '"admin_status": "down"', "s1 Ethernet0: the port is not in",
         "h1→h2"),
        ("s2/fdb.json", '"type": "static"', '"type": "dynamic"', "is not static", ""),
    ],
    "csv": [
        ("ports.csv", "s1,1,h1,,10,,10-11,yes", "s1,1,h1,,11,,10-11,yes", "s1 1: the PVID is 11, expected 10", ""),
        ("ports.csv", "s1,3,s4,2,,10-11,,yes,off", "s1,3,s4,2,,10-11,,no,on", "s1 3: flooding of broadcasts is off",
         "broadcast from h1: does not reach"),
        ("mac-entries.csv", "s1,10,02:00:00:00:00:02,h2,2", "s1,10,02:00:00:00:00:02,h2,3", "the entry of", "h1→h2"),
    ],
    "linux-networkd": [
        ("s1/20-swp3.network", "VLAN=10-11", "VLAN=10", "s1 swp3: membership in VLAN 11 is none",
         "h4→h1: dropped after s4:swp2, expected h1"),
        ("s1/20-swp1.network", "PVID=10", "PVID=11", "s1 swp1: the PVID is 11", ""),
        ("s1/10-br0.netdev", "STP=no", "STP=yes", "s1: the spanning tree protocol is on", ""),
        ("s1/testbed-bridge.batch", "learning off", "learning on", "learning is on, expected off", ""),
    ],
    "ifupdown2": [
        ("s1/interfaces", "bridge-vids 10-11", "bridge-vids 10", "s1 swp", "dropped"),
        ("s1/interfaces", "bridge-stp off", "bridge-stp on", "s1: the spanning tree protocol is on, expected off", ""),
        ("s1/interfaces", "bridge-vlan-aware yes", "bridge-vlan-aware no", "s1: VLAN filtering is off", ""),
    ],
    "linux-bridge-iproute2": [
        ("s1.sh", "vlan add dev swp3 vid 10-11\n", "vlan add dev swp3 vid 10\n", "s1 swp3: membership in VLAN 11",
         "h4→h1: dropped after s4:swp2, expected h1"),
        ("s1.sh", "static vlan 10", "static vlan 11", "has an entry of", ""),
    ],
}  # fmt: skip
CASES = [(dialect, *fault) for dialect, faults in FAULTS.items() for fault in faults]


@pytest.mark.parametrize(("dialect", "file", "before", "after", "setting", "way"), CASES)
def test_a_planted_fault_is_found(saved, tmp_path, dialect, file, before, after, setting, way):
    folder = tmp_path / "changed"
    shutil.copytree(saved / dialect, folder)
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after, 1))
    code, text = typed("check", folder, "--against", scenario(saved, dialect))
    assert code == 1
    assert setting in text
    assert way in text


def test_faults_are_many():
    assert len(CASES) >= 25


def fault(saved: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "changed"
    shutil.copytree(saved / "powerconnect-5300", folder)
    text = (folder / "s1.txt").read_text()
    (folder / "s1.txt").write_text(text.replace("allowed vlan add 10-11 tagged", "allowed vlan add 10 tagged"))
    return folder


def test_json_has_whole_lists(saved, tmp_path):
    folder = fault(saved, tmp_path)
    code, text = typed("check", folder, "--against", saved / "mesh.yaml", "--format", "json")
    found = json.loads(text)
    assert (code, found["schema_version"], found["same"], found["dialect"]) == (1, 1, False, "powerconnect-5300")
    assert {one["port"] for one in found["settings"]} == {"g3"}
    walk = next(walk for walk in found["walks"] if (walk["source"], walk["destination"]) == ("h4", "h1"))
    assert walk["sentence"].startswith("h4→h1: ")
    flood = next(walk for walk in found["walks"] if walk["destination"] == "")
    assert len(flood["planned_hosts"]) == 5
    assert all("more" not in name for name in flood["received"])


def test_a_unified_diff(saved, tmp_path):
    folder = fault(saved, tmp_path)
    code, text = typed("check", folder, "--against", saved / "mesh.yaml", "--format", "diff")
    assert code == 1
    assert "--- planned/s1\n+++ found/s1\n@@" in text
    assert [line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("---", "+++")] == [
        "-port g3 vlan 11 tagged",
    ]  # fmt: skip
    assert typed("check", saved / "csv", "--against", saved / "mesh.yaml", "--format", "diff") == (0, "")


def test_a_stored_plan_and_other_names_of_ports(saved, tmp_path):
    typed("plan", saved / "mesh.yaml", "-o", tmp_path / "plan.json")
    folder = tmp_path / "named"
    typed("export", saved / "mesh.yaml", "-d", "linux-bridge-iproute2", "-o", folder, "--ports", "eno{}")
    assert typed("check", folder, "--against", tmp_path / "plan.json")[0] == 0  # export.json tells the names
    (folder / "export.json").unlink()
    assert typed("check", folder, "--against", tmp_path / "plan.json", "--ports", "eno{}")[0] == 0
    assert problems_of("check", folder, "--against", tmp_path / "plan.json") == [
        "--ports: swp{} gives names such as swp1, and the configurations have eno1; say how ports are called, as in "
        "--ports 'swp{}' or 'Ethernet{0+4}'"
    ]


def test_folders_that_hold_something_else(saved, tmp_path):
    folder = tmp_path / "foreign"
    folder.mkdir()
    assert problems_of("check", folder, "--against", saved / "mesh.yaml") == [f"{folder}: holds no file"]
    (folder / "s1.txt").write_text("nothing of the kind\n")
    assert problems_of("check", folder, "--against", saved / "mesh.yaml")[0].startswith(
        "configurations: no file looks like a configuration of linux-bridge-iproute2, "
    )
    assert problems_of("check", folder, "--against", saved / "mesh.yaml", "-d", "cisco")[0].endswith(
        'Did you mean "cisco-ios"?'
    )
    (folder / "s1.txt").write_bytes(b"a\nb\xff\n")
    assert problems_of("check", folder, "--against", saved / "mesh.yaml") == [
        f"{folder / 's1.txt'} line 2: is not UTF-8 text; save the configuration as text"
    ]
    shutil.copy(saved / "powerconnect-5300" / "s1.txt", folder / "s9.txt")
    (folder / "s1.txt").unlink()
    assert problems_of("check", folder, "--against", saved / "mesh.yaml")[0].startswith(
        "s9: is of no switch of mesh; name it as the plan does."
    )
    assert problems_of("check", "--against", saved / "mesh.yaml")[0].startswith("CONFIGURATIONS: give a folder")
    assert problems_of("check", "--bridge", "br0", "--against", saved / "mesh.yaml") == [
        '--bridge: "br0" should be a bridge and its switch, as in br0=s3'
    ]


def test_the_old_name_is_understood(saved):
    found = CliRunner().invoke(app, ["import", str(saved / "csv"), "--against", str(saved / "mesh.yaml")])
    assert found.exit_code == 0
    assert "testbed import is called testbed check now" in found.stderr
