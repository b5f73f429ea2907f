"""The command verify as it is typed, with one scenario or many, and in the forms of continuous integration."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from testbed.ui.cli import plan_commands, verify_command  # noqa: F401 - they add their commands
from testbed.ui.cli.app import app

LONG_WAY = "name: cyclic\ntopology: {kind: ring, switches: 5}\nrouting: {ring: shortest}\n"


def typed(*words: object) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    return found.exit_code, found.stdout, found.stderr


@pytest.fixture
def cyclic(tmp_path):
    file = tmp_path / "cyclic.yaml"
    file.write_text(LONG_WAY)
    return file


@pytest.fixture
def stored(tmp_path):
    file = tmp_path / "plan.json"
    assert typed("plan", "ring4", "-o", file)[0] == 0
    return file


def test_several_scenarios_in_one_call(cyclic):
    code, text, _ = typed("verify", "ring4", cyclic, "ring5-deadlock")
    assert code == 1
    lines = text.splitlines()
    assert lines[0] == "ring4: passed: 12 pairs, 2 VLANs, deadlock free"
    assert lines[1].startswith("deadlock: the channel dependency graph has a cycle: s1→s2 waits for ")
    assert lines[2] == f"{cyclic}: FAILED: 20 pairs, 5 VLANs, can deadlock"
    assert lines[-1] == "2 of 3 passed"


def test_an_unplannable_scenario_does_not_stop_proofs_of_others(cyclic):
    code, text, errors = typed("verify", "ring4", "rnig4", cyclic)
    assert code == 2
    assert 'rnig4: no scenario of that name. Did you mean "ring4"?' in errors
    assert [line.split(":")[0] for line in text.splitlines() if "passed" in line] == ["ring4", "1 of 3 passed"]
    assert f"{cyclic}: FAILED" in text


def test_as_json(cyclic):
    code, text, _ = typed("verify", "ring4", cyclic, "rnig4", "--format", "json")
    found = json.loads(text)
    assert (code, found["schema_version"], found["passed"]) == (2, 1, False)
    assert [plan["passed"] for plan in found["plans"]] == [True, False, False]
    assert found["plans"][1]["violations"][0]["witness"] == ["s1→s2", "s2→s3", "s3→s4", "s4→s5", "s5→s1"]
    assert found["plans"][2]["problems"][0]["place"] == "rnig4"


def test_as_junit(cyclic):
    code, text, _ = typed("verify", "ring4", cyclic, "rnig4", "--format", "junit")
    suite = next(iter(ET.fromstring(text)))
    assert code == 2
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "3", "failures": "1", "errors": "1",
    }  # fmt: skip
    good, bad, none = suite
    assert good.find("failure") is None
    assert (bad.get("name"), bad.get("file")) == (str(cyclic), str(cyclic))
    assert bad.find("failure").get("type") == "deadlock"
    assert "witness of deadlock: s1→s2 s2→s3" in bad.findtext("failure", "")
    assert "Did you mean" in none.findtext("error", "")


def test_as_annotations_of_github(cyclic):
    code, text, _ = typed("verify", "ring4", cyclic, "--format", "github")
    assert code == 1
    lines = text.splitlines()
    assert lines[0] == "ring4: passed: 12 pairs, 2 VLANs, deadlock free"
    assert lines[1].startswith(f"::error file={cyclic},title=deadlock::the channel dependency graph has a cycle: ")
    code, text, _ = typed("verify", "a:b,c\n%.yaml", "--format", "github")
    assert (code, text.splitlines()[0].startswith("::error file=a%3Ab%2Cc%0A%25.yaml,title=cannot be planned::")) == (
        2, True,
    )  # fmt: skip


def test_a_declared_deadlock_that_is_not_there():
    code, text, _ = typed("verify", "ring4", "--set", "expect=deadlock")
    assert (code, text.splitlines()[0].startswith("deadlock: expect: deadlock, but ")) == (1, True)


def test_a_stored_plan_and_one_that_was_changed(stored):
    code, text, _ = typed("verify", stored)
    assert (code, text) == (0, f"{stored}: passed: 12 pairs, 2 VLANs, deadlock free\n")
    raw = json.loads(stored.read_text())
    raw["vlans"]["pvid"]["values"][0] ^= 1
    stored.write_text(json.dumps(raw))
    code, text, _ = typed("verify", stored)
    assert code == 1
    assert text.startswith("stored plan: says that its digest is ")
    assert text.endswith(f"{stored}: FAILED: the file does not hold\n")
    found = json.loads(typed("verify", stored, "--format", "json")[1])
    assert found["plans"][0]["violations"][0]["invariant"] == "stored plan"


def test_plan_files_that_are_none(tmp_path, stored):
    missing, foreign = tmp_path / "no.json", tmp_path / "foreign.json"
    foreign.write_bytes(b"\xff\xfe")
    code, _, errors = typed("verify", missing, foreign, "--format", "text")
    assert code == 2
    assert f"{missing}: cannot be read: No such file or directory" in errors.replace("\n", " ")
    assert f"{foreign}: cannot be read: it is not UTF-8 text" in errors.replace("\n", " ")
    code, _, errors = typed("verify", stored, "--set", "expect=deadlock")
    assert (code, errors.startswith("--set: changes scenarios, and ")) == (2, True)


REPAIRED = (
    "name: repaired\ntopology: {kind: ring, switches: 6}\nrouting: {kind: stp}\nengine: realtime\n"
    "simulator: {flow_control: CONTROL}\nlab: {controller: segment_manager, dilation: 20}\n"
    "workloads:\n- kind: probe\n  failures: ['at 1s: down s1-s2', 'at 2s: up s1-s2']\n"
)


@pytest.mark.parametrize(
    ("control", "could"), [("pause", "can deadlock"), ("none", "could deadlock with flow control, which there is not")]
)
def test_cycles_of_tables_used_together_are_named_and_fail_none(tmp_path, control, could):
    file = tmp_path / "repaired.yaml"
    file.write_text(REPAIRED.replace("CONTROL", control))
    code, text, _ = typed("verify", file)
    assert code == 0
    wanted = (
        f"{could}: load 1, at 2 s: up s1-s2: frames on old and new paths together: the channel dependency graph has"
    )
    assert any(line.startswith(wanted) for line in text.splitlines())
    assert text.splitlines()[-1] == f"{file}: passed: 30 pairs, 1 VLAN, deadlock free"
    found = json.loads(typed("verify", file, "--format", "json")[1])
    assert found["plans"][0]["shared_cycles"][-1].startswith(wanted)
    assert any(line.startswith("::warning ") for line in typed("verify", file, "--format", "github")[1].splitlines())
    assert wanted in typed("verify", file, "--format", "junit")[1]
    assert "deadlock until then: frames on old and new paths together" in typed("plan", file)[1]
