"""Questions to an audit as they are typed: without a link or switch, old and new, and the forms of other programs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.ui.cli import audit_command  # noqa: F401 - it adds its command
from testbed.ui.cli.app import app

SWITCH = """! device: s1 (EOS-4.28)
spanning-tree mode none
vlan 10
interface Ethernet1
   switchport mode trunk
   switchport trunk allowed vlan 10
interface Ethernet2
   switchport mode trunk
   switchport trunk allowed vlan {}
interface Ethernet3
   switchport access vlan 10
"""


def typed(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["audit", *(str(word) for word in words)], catch_exceptions=False)
    return found.exit_code, found.stdout


def _save(folder: Path, switches: int, *, ring: bool = False, first: str = "10", host: str = "h1") -> Path:
    """A chain of switches, each with a host, or a ring; `first` are the VLANs of the first switch's second port."""
    folder.mkdir()
    rows = ["switch,port,peer,peer_port", f"s1,Ethernet3,{host},"]
    rows += [f"s{number},Ethernet3,h{number}," for number in range(2, switches + 1)]
    rows += [f"s{number},Ethernet2,s{number + 1},Ethernet1" for number in range(1, switches)]
    rows += [f"s{switches},Ethernet2,s1,Ethernet1"] * ring
    (folder / "cabling.csv").write_text("\n".join(rows))
    for number in range(1, switches + 1):
        (folder / f"s{number}.txt").write_text(SWITCH.format(first if number == 1 else "10"))
    return folder


def test_each_link_of_a_chain_cuts_and_says_which_pairs(tmp_path):
    code, text = typed(_save(tmp_path / "net", 3), "--each-link", "--each-switch", "--format", "json")
    found = json.loads(text)
    assert code == 1
    assert [(part["without"], part["lost"]) for part in found["parts"]] == [
        ("s1:Ethernet2–s2:Ethernet1", 4), ("s2:Ethernet2–s3:Ethernet1", 4), ("s1", 0), ("s2", 2), ("s3", 0),
    ]  # fmt: skip
    assert found["parts"][3]["pairs"] == ["h1→h3", "h3→h1"]
    assert found["broken"] == 3


def test_without_a_link_of_a_ring_nothing_loops(tmp_path):
    ring = _save(tmp_path / "net", 3, ring=True)
    assert typed(ring)[0] == 1
    assert typed(ring, "--without", "s2:et2", "--no-pauses")[0] == 0
    code, text = typed(ring, "--without", "s2", "--format", "json", "--no-pauses")
    assert (code, json.loads(text)["hosts"]) == (0, 2)


@pytest.mark.parametrize(("place", "sentence"), [("s9", "names no switch"), ("s1:Ethernet7", "no cable of s1")])
def test_without_what_there_is_not(tmp_path, place, sentence):
    with pytest.raises(InputError, match=sentence):
        typed(_save(tmp_path / "net", 2), "--without", place)


def test_old_and_new_say_what_changes(tmp_path):
    old, new = _save(tmp_path / "old", 2), _save(tmp_path / "new", 2, first="none")
    code, text = typed(old, new)
    assert code == 1
    assert "pairs that do not arrive any more: 2: h1→h2, h2→h1" in text
    assert "new: cut:" in text
    code, text = typed(new, old, "--format", "json")
    found = json.loads(text)
    assert (code, found["gained"], found["new"]) == (0, ["h1→h2", "h2→h1"], [])
    assert len(found["gone"]) == 2


def test_junit_has_a_case_a_kind_and_fails_if_nothing_is_audited(tmp_path):
    code, text = typed(_save(tmp_path / "net", 2, first="none"), "--format", "junit")
    suite = ET.fromstring(text)
    failed = {case.get("name").split(":")[0] for case in suite if case.find("failure") is not None}
    assert (code, failed) == (1, {"cut"})
    assert suite.get("failures") == "1"
    (tmp_path / "net" / "cabling.csv").write_text("switch,port,peer,peer_port\ns1,Ethernet3,h1,\ns1,Ethernet2,s2,Et1\n")
    code, text = typed(tmp_path / "net", "--format", "junit")
    failed = {case.get("name").split(":")[0] for case in ET.fromstring(text) if case.find("failure") is not None}
    assert (code, failed) == (2, {"audited"})


def test_sarif_has_a_result_for_each_finding(tmp_path):
    code, text = typed(_save(tmp_path / "net", 2, first="none"), "--format", "sarif")
    run = json.loads(text)["runs"][0]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert (code, len(run["results"])) == (1, 2)
    assert {result["ruleId"] for result in run["results"]} <= rules


@pytest.mark.parametrize("form", ["text", "junit", "sarif"])
def test_escape_sequences_of_names_reach_no_output(tmp_path, form):
    _, text = typed(_save(tmp_path / "net", 2, first="none", host="h\x1b[31m1"), "--format", form, "--all")
    assert "\x1b" not in text
    if form == "junit":
        ET.fromstring(text)


def test_five_findings_of_a_kind_and_all_of_them(tmp_path):
    folder = _save(tmp_path / "net", 8)
    for number in range(1, 9):
        (folder / f"s{number}.txt").write_text(SWITCH.format("none"))
    text = typed(folder)[1]
    assert "cut: … and 3 more; --all shows them" in text
    assert typed(folder, "--all")[1].count("cut: ") == 8


def test_a_wrong_network_does_not_pass_since_no_link_matters(tmp_path):
    folder = _save(tmp_path / "net", 3, first="none")
    (folder / "s2.txt").write_text(SWITCH.format("none"))
    code, text = typed(folder, "--each-link")
    assert "0 of 2 break something when they are gone" in text
    assert "the network as it is: 3 findings" in text
    assert code == 1


def test_where_nothing_was_audited_no_link_passes(tmp_path):
    folder = _save(tmp_path / "net", 2)
    (folder / "cabling.csv").write_text("switch,port,peer,peer_port\ns1,Ethernet3,h1,\ns1,Ethernet2,s2,Ethernet1\n")
    code, text = typed(folder, "--each-link", "--format", "json")
    assert (code, json.loads(text)["verdict"]) == (2, "nothing audited")


def test_questions_that_exclude_each_other_are_refused_at_once(tmp_path):
    folder = _save(tmp_path / "net", 2)
    with pytest.raises(InputError) as refused:
        typed(folder, folder, "--each-link", "--without", "s1", "--format", "junit")
    assert [problem.key for problem in refused.value.problems] == ["NEW", "NEW", "--format"]


@pytest.mark.parametrize("question", [("--without", "s1"), ("--each-link",), ("--each-switch",)])
def test_what_the_spanning_tree_opens_is_not_guessed(tmp_path, question):
    """A bridge shows the ports that its protocol has blocked; without a link it would open one."""
    names = ["swp1", "swp2"]
    kinds = dict.fromkeys(("learning", "flood", "mcast_flood", "bcast_flood"), True)
    saved = {
        "bridge": [{"ifname": "br0", "linkinfo": {"info_data": {"stp_state": 1, "vlan_filtering": 1}}}],
        "link": [{"ifname": name, "flags": ["UP"], "state": "forwarding", "master": "br0", **kinds} for name in names],
        "vlan": [{"ifname": name, "vlans": [{"vlan": 1, "flags": ["PVID", "Egress Untagged"]}]} for name in names],
        "fdb": [],
    }
    (tmp_path / "net" / "s1").mkdir(parents=True)
    for name, content in saved.items():
        (tmp_path / "net" / "s1" / f"{name}.json").write_text(json.dumps(content))
    (tmp_path / "net" / "cabling.csv").write_text("switch,port,peer,peer_port\ns1,swp1,h1,\ns1,swp2,h2,\n")
    assert typed(tmp_path / "net")[0] == 0
    with pytest.raises(InputError, match="would open ports that are saved as blocked"):
        typed(tmp_path / "net", *question)
