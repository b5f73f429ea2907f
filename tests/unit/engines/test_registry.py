"""Names of labs are taken by one program at a time, and what is remembered belongs to root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.base.errors import CapabilityError, InputError
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.launch import read_start_time
from tests.unit.ui.test_command_line import command


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "FOLDER", tmp_path / "labs")
    return tmp_path / "labs"


_HOLD = """
import sys, time
from pathlib import Path
from testbed.engines.lab.control import registry
from testbed.base.errors import InputError
registry.FOLDER = Path(sys.argv[1])
try:
    with registry.reserve_name("twin"):
        print("mine", flush=True)
        sys.stdin.read()
except InputError as error:
    print(error, flush=True)
    sys.exit(error.exit_code)
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _HOLD, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_of_two_programs_one_gets_the_name(folder):
    programs = [holder(folder) for _ in range(6)]
    said = {program.pid: program.stdout.readline().strip() for program in programs}
    owners = [pid for pid, line in said.items() if line == "mine"]
    assert len(owners) == 1
    sentence = f"twin: a lab of that name is being built by process {owners[0]}; give this one another name"
    assert sorted(said.values()) == sorted(["mine", *[sentence] * 5])
    assert [claim.owner for claim in registry.being_built()] == owners
    with pytest.raises(InputError, match=f"twin: is still being built, by process {owners[0]}"):
        registry.find("twin")
    for program in programs:
        program.communicate()
    assert sorted(program.returncode for program in programs) == [0, 2, 2, 2, 2, 2]


def test_a_name_whose_program_was_killed_is_free(folder):
    program = holder(folder)
    assert program.stdout.readline() == "mine\n"
    program.kill()
    program.communicate()
    assert registry.being_built() == []
    assert [*folder.glob("*.json")] == []
    with registry.reserve_name("twin"):
        assert [claim.owner for claim in registry.being_built()] == [os.getpid()]


def test_a_lab_that_could_not_be_built_gives_its_name_back():
    with pytest.raises(ValueError, match="no room"), registry.reserve_name("twin"):
        raise ValueError("no room")
    assert registry.being_built() == []


def test_a_program_that_builds_a_lab_can_be_ended(folder):
    program = holder(folder)
    assert program.stdout.readline() == "mine\n"
    (claim,) = registry.being_built()
    registry.kill_builder(claim)
    assert program.wait() == -15
    assert registry.being_built() == []
    program.communicate()


def test_of_labs_in_use_the_oldest_keeps_the_bare_name(monkeypatch, tmp_path):
    # Process numbers begin anew at some time, so that a younger lab can have the smaller.
    ages = {31_000: 500, 800: 700, 900: 600}
    lab = SimpleNamespace(is_listening=lambda: True)
    found = [
        SimpleNamespace(init=init, owner=init + 1, scenario="long", has_owner=True, namespaces=lab) for init in ages
    ]
    monkeypatch.setattr(registry, "read_start_time", lambda init: ages[init])
    monkeypatch.setattr(registry, "labs", lambda: iter(found))
    names = {31_001: "long", 901: "long-901", 801: "long-801"}
    assert {entry.owner: entry.name for entry in registry.in_use()} == names
    with pytest.raises(InputError, match="long: process 31001 measures in it and ends it"):
        registry.find_standing("long")
    with pytest.raises(InputError, match="long-801: process 801 measures in it and ends it"):
        registry.find_standing("long-801")


def test_nobody_else_writes_records(folder):
    before = os.umask(0)
    try:
        with registry.reserve_name("twin"):
            modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    finally:
        os.umask(before)
    assert modes == {"labs": 0o755, ".lock": 0o600, "twin.json": 0o644}


def test_a_record_of_another_program_is_not_forgotten(folder):
    mine = registry.Entry("twin", os.getpid(), read_start_time(os.getpid()), "x", "d")
    with registry.reserve_name("twin"):
        registry.forget(mine)
        assert [claim.name for claim in registry.being_built()] == ["twin"]


def test_a_folder_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(registry, "FOLDER", tmp_path / "file" / "labs")
    with pytest.raises(
        CapabilityError, match=r"labs cannot be written \(Not a directory\), so no lab can be left running; "
    ):
        registry.reserve_name("twin").__enter__()


def test_what_else_is_remembered_is_no_lab(folder):
    folder.mkdir()
    (folder / "kvm.json").write_text(json.dumps({"boots": True}))
    assert registry.entries() == []
    assert (folder / "kvm.json").exists()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("a" * 300, "name: should be 100 letters at most, not 300"),
        ("", 'name: should be letters, digits, "-" and "_", not ""'),
        ("../x", 'name: should be letters, digits, "-" and "_", not "../x"'),
    ],
    ids=["long", "empty", "path"],
)
def test_names_that_no_lab_can_have(name, sentence):
    with pytest.raises(InputError) as caught:
        registry.check_name(name)
    assert str(caught.value) == sentence


def test_a_clock_that_is_set_makes_no_lab_older(monkeypatch):
    with subprocess.Popen(["sleep", "60"]) as process:
        entry = registry.Entry("twin", process.pid, read_start_time(process.pid), "x", "d")
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert 0 <= entry.seconds < 30
        process.kill()


def test_a_lab_in_use_keeps_the_name_that_it_had_beside_another(monkeypatch):
    one, other = (registry.Entry(name, 7, 1, "long", "", owner) for name, owner in (("long", 41), ("long-42", 42)))
    monkeypatch.setattr(registry, "entries", list)
    monkeypatch.setattr(registry, "being_built", list)
    monkeypatch.setattr(registry, "in_use", lambda: [one, other])
    assert (registry.find("long"), registry.find("long-42")) == (one, other)
    alone = registry.Entry("long", 7, 1, "long", "", 42)
    monkeypatch.setattr(registry, "in_use", lambda: [alone])  # the first one has ended
    assert registry.find("long-42") == registry.find("long") == alone


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", "it should be a JSON object"),
        ("[" * 100_000, "it is nested too deeply: 64"),
        ("", "Expecting value"),
        ("{}", "it lacks name, owner, owner_born"),
        ('{"name": "bad", "init": 1}', "it lacks born, scenario, digest"),
        ('{"name": "bad", "init": "x", "born": 2, "scenario": "s", "digest": ""}', "its init should be a whole number"),
        ('{"name": 3, "owner": 1, "owner_born": 2}', "its name should be text"),
        ('{"name": "bad", "owner": true, "owner_born": 2}', "its owner should be a whole number"),
        ('{"name": "../x", "owner": 1, "owner_born": 2}', "it is of the lab '../x'"),
        ('{"name": "bad\\ud800", "owner": 1, "owner_born": 2}', "half a character"),
        (b"\xff", "utf-8"),
    ],
)
def test_a_damaged_record_is_told_and_hides_no_other(folder, text, why):
    folder.mkdir()
    (folder / "bad.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with registry.reserve_name("good"):
        assert [claim.name for claim in registry.being_built()] == ["good"]
        (sentence,) = registry.list_damaged()
    assert sentence.startswith(f"{folder}/bad.json: is damaged: ")
    assert why in sentence
    assert f"rm {folder}/bad.json" in sentence
    assert (folder / "bad.json").exists()
    assert registry.entries() == []


def test_what_else_is_remembered_there_is_no_damaged_record(folder):
    folder.mkdir()
    (folder / f"{registry.OTHER_RECORDS}vm-1.json").write_text('{"why_not": "no device"}')
    assert registry.list_damaged() == []
    assert registry.entries() == []


def test_status_tells_a_damaged_record_and_lists_the_others(folder):
    folder.mkdir()
    (folder / "bad.json").write_text("[1]")
    with registry.reserve_name("good"):
        done = command("status")
    assert "bad.json: is damaged: it should be a JSON object" in done.stderr
    assert f"good: being built by process {os.getpid()}" in done.stdout


def test_a_name_that_is_taken_says_how_to_end_its_lab(folder):
    folder.mkdir()
    facts = {"name": "twin", "init": os.getpid(), "born": read_start_time(os.getpid()), "scenario": "x", "digest": ""}
    (folder / "twin.json").write_text(json.dumps(facts))
    with (
        pytest.raises(InputError, match=r"already running; end it with `testbed down twin`"),
        registry.reserve_name("twin"),
    ):
        pass


def test_exec_without_a_lab_among_several_proposes_one(monkeypatch):
    running = [SimpleNamespace(name=name) for name in ("line", "soak0")]
    monkeypatch.setattr(registry, "running", lambda: running)
    done = command("exec", "h1", "--", "ping", "-c", "1", "h2")
    assert done.returncode == 2
    assert (
        "LAB: is missing, and several are running: line, soak0; name one first: testbed exec line h1 --" in done.stderr
    )


def test_exec_means_the_lab_that_was_left_running(monkeypatch):
    mine, other = (SimpleNamespace(name=name) for name in ("mine", "measured"))
    monkeypatch.setattr(registry, "entries", lambda: [mine])
    monkeypatch.setattr(registry, "running", lambda: [mine, other])
    asked = []

    def find(name):
        asked.append(name)
        raise InputError.one("LAB", "asked for")

    monkeypatch.setattr(registry, "find", find)
    assert "asked for" in command("exec", "h1", "--", "true").stderr
    assert asked == [None]
