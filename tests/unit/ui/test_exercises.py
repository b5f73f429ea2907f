"""The exercises: each is solved by its solution, and wrong answers are named for what they are."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.ui.cli import exercise_commands, lab_commands, simulate_commands
from testbed.ui.cli.app import app
from testbed.ui.teaching import course, grade, student_folder
from testbed.ui.teaching.demands import links

assert exercise_commands is not None
assert simulate_commands is not None
assert lab_commands is not None
NAMES = course.names()


def begun(name: str, folder: Path) -> course.Exercise:
    found = course.find(name)
    student_folder.begin(found.name, found.folder / course.START, found.folder / course.SHEET, folder)
    return found


def solved(name: str, folder: Path) -> course.Exercise:
    """The folder of a student who has handed in the solution, but for what commands give."""
    found = begun(name, folder)
    for file in (course.FOLDER / course.SOLUTIONS / found.name).iterdir():
        if file.name != "commands.txt":
            shutil.copyfile(file, folder / file.name)
    return found


def run_commands(found: course.Exercise, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run what the solution's commands.txt says, unless its output is there."""
    file = course.FOLDER / course.SOLUTIONS / found.name / "commands.txt"
    monkeypatch.chdir(folder)
    for line in file.read_text().splitlines() if file.exists() else ():
        command, _, output = line.partition(" > ")
        if output and Path(output).exists():
            continue
        ended = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert ended.exit_code == 0, ended.output
        if output:
            Path(output).write_text(ended.stdout)


def test_there_are_ten():
    assert [name.partition("-")[0] for name in NAMES] == [f"{number:02d}" for number in range(1, 11)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_solution_has_all_points(name, tmp_path, monkeypatch):
    found = solved(name, tmp_path / "mine")
    run_commands(found, tmp_path / "mine", monkeypatch)
    result = grade.check(found, tmp_path / "mine")
    assert [one.wrong for task in result.tasks for one in task.demands if one.wrong] == []
    assert result.complete
    assert result.points == found.points


@pytest.mark.parametrize("name", NAMES)
def test_sheet_names_every_task_and_answer(name):
    found = course.find(name)
    sheet = (found.folder / course.SHEET).read_text()
    for task in found.tasks:
        assert f"Task **{task.name}**" in sheet
    for key in yaml.safe_load((found.folder / course.START / "answers.yaml").read_text()):
        assert f"`{key}`" in sheet
    assert f"{found.minutes} minutes" in sheet


# Exercise, task, what is handed in instead of the solution, and what must be said. A block is merged into
# answers.yaml; texts are a file, and what is replaced in it by what.
Change = dict[str, object] | tuple[str, str, str]
WRONG: list[tuple[str, str, Change, str]] = [
    ("1", "counted", {"copies_ring": 1}, "One goes round each way"),
    ("1", "counted", {"copies_mesh": 243}, "does not send a frame back by the interface it came by"),
    ("1", "counted", {"copies_mesh": 15}, "adds three copies a hop"),
    ("1", "tree", ("mesh.txt", "switch s3\n  interface s4\n    shutdown\n", ""), "circulates for ever"),
    ("1", "tree", ("mesh.txt", "interface s3\n", "interface s1\n    shutdown\n  interface s3\n"), "s2:s1 is shut down"),
    ("1", "measured", {"storm_ends": "b"}, "Switches do not look at it"),
    ("1", "measured", ("storm.json", '"switches": 4', '"switches": 5'), "is of 5 switches, not 4"),
    ("2", "blocked", {"blocked": ["s4-s5", "s5-s6", "s7-s8"]}, "1 more must be blocked"),
    ("2", "blocked", {"blocked": ["s4-s5", "s5-s6", "s7-s8", "s5-s8"]}, "s5-s8 is not blocked"),
    ("2", "blocked", {"blocked": ["s1-s2", "s1-s4", "s7-s8", "s8-s9"]}, "is cut off from s1"),
    ("2", "root", {"best_root": "s5"}, "3.123 switches on average; another root gives 3.074"),
    ("2", "waste", {"busiest_tree": 36}, "counts both directions"),
    ("2", "waste", {"unused_links": 8}, "eight are unused channels, two of each link"),
    ("2", "blocked", {"blocked": ["s1-s5"]}, 'there is no link "s1-s5". s1 has s1-s2, s1-s4'),
    ("2", "better", ("better.yaml", "dor", "stp"), "18 paths on the busiest channel, and at most 9"),
    ("3", "one", ("one.txt", "  interface s2\n    tagged 10\n", ""), "VLAN 10 does not lead from s1:h1 to s2:h2"),
    ("3", "one", ("one.txt", "    pvid 10\n    untagged 10\n", "    pvid 10\n    tagged 10\n"), "does not understand"),
    ("3", "one", ("one.txt", "10", "7"), "s1:h1 has PVID 7, and VLAN 10 is asked for"),
    ("3", "one", ("one.txt", "    pvid 10\n", ""), "has PVID 1 and is no member of that VLAN"),
    ("3", "four", ("four.txt", "pvid 40", "pvid 30"), "h3 and h4 have the same PVID, 30"),
    (
        "3",
        "four",
        ("four.txt", "untagged 10,20,30,40", "untagged 10"),
        "s2:h2 has PVID 20 and is no member of that VLAN",
    ),
    ("3", "reply", {"reply_vlan": 30}, "30 is the PVID of h3, in which it gets to h1"),
    ("3", "four", ("four.txt", "switch s3\n", "switch s3\n  interface s9\n    tagged 10\n"), 'no interface to "s9"'),
    ("4", "one", ("one.txt", "switch s3\n", "switch s3\n  interface s2\nswitch s3\n"), "s3:s2 is configured twice"),
    ("4", "two", ("two.txt", "pvid 20", "pvid 10"), "4 flows share"),
    ("4", "two", ("two.txt", "untagged 10,20", "untagged 10"), "s1:h3 has PVID 20 and is no member of that VLAN"),
    ("4", "predicted", {"one_tree": 250}, "share of the link with all headers"),
    ("4", "predicted", {"one_tree": 125}, "they do not share"),
    ("5", "counted", {"mesh_4x4": 16}, "a VLAN for each host"),
    ("5", "counted", {"mesh_12x12": 144}, "the trees of one row's hosts are the same"),
    ("5", "torus", ("design.yaml", "{kind: dor}", "{kind: dor, ties: positive}"), "12 VLANs, and at most 8"),
    ("5", "torus", ("design.yaml", "[4, 4]", "[4, 5]"), "leave topology: as it was"),
    ("5", "torus", ("design.yaml", "{kind: dor}", "{kind: stp}"), "4.062 switches on a path, on average"),
    (
        "5",
        "torus",
        ("design.yaml", "fixed", "openflow"),
        "its VLAN assignment is openflow, and this task is about fixed",
    ),
    ("5", "large", ("large.yaml", "two_trees", "shortest"), "18 VLANs"),
    ("5", "large", ("large.yaml", "{kind: dor, ring: two_trees}", "{kind: stp}"), "One tree for all makes long paths"),
    ("6", "made", ("deadlock.yaml", "shortest", "no_transit"), "it cannot deadlock"),
    ("6", "turned", ("turned.yaml", "updown", "stp"), "The spanning tree leaves a link idle"),
    ("6", "made", ("deadlock.yaml", "expect: deadlock\n", ""), "does not declare it; add the line expect: deadlock"),
    ("6", "prices", {"length_cut": 3}, "also counts each host with itself"),
    ("6", "made", {"cycle": ["s1→s2", "s3→s4"]}, "s3→s4 does not begin where s1→s2 ends"),
    ("6", "made", {"cycle": ["s1→s2", "s2→s1"]}, "no path takes one after the other"),
    ("6", "turned", ("turned.yaml", "updown", "lash"), "Layers are the next task"),
    ("6", "layered", ("layered.yaml", "lash", "stp"), "Layers let every path be a shortest one"),
    ("6", "cut", ("cut.yaml", "faults: {links: [[s1, s5]]}\n", ""), "exactly 1 of its links may be missing"),
    ("7", "predicted", {"shares": {"h1-h2": 333}}, "too little: a link on its way has room left"),
    ("7", "predicted", {"shares": {"h1-h3": 500}}, "too much"),
    ("7", "measured", {"run": "nowhere"}, "is not a result folder"),
    ("7", "explained", {"less": "a"}, "lost in a full queue of a switch"),
    ("8", "bounds", {"least_tree": 7.86}, "is too small"),
    ("8", "bounds", {"least_flat": 8.39}, "nothing to itself"),
    ("8", "bounds", {"least_torus": 4.19}, "That is the busiest channel alone"),
    ("8", "bounds", {"least_mesh": 1.05}, "counts a byte as one bit"),
    ("8", "chosen", {"fastest_first": ["flat", "tree", "mesh", "torus"]}, "mesh stands behind tree"),
    ("8", "chosen", {"limit_torus": "a"}, "what a host sends are 15"),
    ("8", "chosen", {"fastest_first": ["flat", "tree"]}, "all of flat, tree, mesh, torus"),
    ("9", "backup", ("backup.txt", "tagged 20", "tagged 10"), "circulates for ever"),
    (
        "9",
        "backup",
        ("backup.txt", "interface s3\n    tagged 20", "interface s3\n"),
        "when s1-s2 dies, no VLAN is left",
    ),
    ("9", "backup", ("backup.txt", "switch s4", "switch s4\n  interface s2\nswitch s4"), "is configured twice"),
    (
        "9",
        "backup",
        ("backup.txt", "untagged 10,20", "untagged 10"),
        "were it all hosts' PVID, is not whole even while all links live",
    ),
    (
        "9",
        "backup",
        ("backup.txt", "20", "30"),
        "were it all hosts' PVID, is not whole even while all links live: h1 does not reach h2",
    ),
    ("9", "backup", ("backup.txt", "pvid 10", "pvid 20"), "has PVID 20, and VLAN 10 is asked for"),
    ("9", "ring", {"ring_vlans": 2}, "have two links in common"),
    ("9", "outlook", {"diverted": 2}, "too small"),
    ("9", "recomputed", {"which": "b"}, "before anybody knew what would die"),
    ("10", "watts", {"watts_all": 23.4}, "That is one switch"),
    (
        "10",
        "neighbours",
        {"off_neighbour": ["s1-s2", "s1-s2#1", "s1-s2#2", "s2-s3"]},
        "no link is left between s1 and s2",
    ),
    ("10", "neighbours", {"off_neighbour": ["s1-s2#1"]}, "W that can be"),
    ("10", "everybody", {"off_all": ["s1-s2#3"]}, 'there is no link "s1-s2#3"'),
    ("10", "careful", {"price": "c"}, "that was the condition"),
]


def changed(folder: Path, change: Change) -> None:
    if isinstance(change, tuple):
        name, old, new = change
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
        return
    answers = yaml.safe_load((folder / "answers.yaml").read_text())
    for key, value in change.items():
        if isinstance(value, dict):
            answers[key].update(value)
        else:
            answers[key] = value
    (folder / "answers.yaml").write_text(yaml.safe_dump(answers, allow_unicode=True))


@pytest.mark.parametrize(("name", "task", "change", "says"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_answer_is_named(name, task, change, says, tmp_path):
    found = solved(name, tmp_path / "mine")
    changed(tmp_path / "mine", change)
    only = dataclasses.replace(found, tasks=tuple(one for one in found.tasks if one.name == task))
    assert only.tasks
    result = grade.check(only, tmp_path / "mine")
    wrong = [one.wrong for one in result.tasks[0].demands if one.wrong]
    assert says in "\n".join(wrong)
    assert wrong


def test_each_exercise_has_three_wrong_answers():
    for number in range(1, 11):
        assert sum(name == str(number) for name, *_ in WRONG) >= 3


BAD_FILES = [
    ("1", "mesh.txt", "", "mesh.txt: is empty"),
    ("1", "mesh.txt", "swich s1\n", 'line 1: "swich" is no word of a switch. Did you mean "switch"?'),
    ("1", "mesh.txt", "switch s9\n", 'there is no switch "s9"'),
    ("1", "mesh.txt", "switch s1\n  interface h2\n", 's1 has no interface to "h2", only to h1, s2, s3, s4'),
    ("1", "mesh.txt", "interface h1\n", "write a line such as: switch s1 above it"),
    ("1", "mesh.txt", "switch s1\n  pvid 1\n", "pvid belongs to an interface"),
    ("1", "mesh.txt", "switch s1\n  interface h1\n  pvid 1,2\n", "a port has one PVID"),
    ("1", "mesh.txt", "switch s1\n  interface h1\n  untagged 5000\n", "numbers from 1 to 4094, not 5000"),
    ("1", "mesh.txt", "switch s1\n  interface h1\n  tagged x\n", '"x" is no VLAN'),
    ("1", "mesh.txt", "switch s1\n  interface h1\n  tagged 3\n  untagged 3\n", "a tagged and an untagged member"),
    ("1", "mesh.txt", "switch s1\n  interface h1\n  untagged\n", "write at least one VLAN"),
    ("1", "mesh.txt", "sw s1\n  interface h1\n  interface s2\n", "line 2: belongs to a switch; write a line such as"),
    ("1", "mesh.txt", "# nothing\n", "says nothing"),
    ("1", "mesh.txt", "\0" * 2**20 + "\0", "is larger than 1 MB"),
    (
        "1",
        "answers.yaml",
        "copies_ring: two\n",
        'should be a number, with a point and without a unit, such as 2.5, not "two"',
    ),
    ("1", "answers.yaml", "a: [\n", "answers.yaml: line"),
    ("1", "answers.yaml", "storm_ends: f\n", "should be one of a, b, c, d"),
    ("1", "storm.json", "no", "is not the JSON that the command prints"),
    ("1", "storm.json", "[]", "should be the JSON object"),
    ("1", "storm.json", '{"seconds": 1}', "is not of `testbed storm`"),
    ("2", "answers.yaml", "blocked: s1-s2\n", "should be a list"),
    ("2", "answers.yaml", "blocked: [s1-s2, s2-s1]\n", "is listed twice"),
    ("2", "answers.yaml", "best_root: s99\n", 'there is no switch "s99"'),
    ("2", "better.yaml", "topology: {kind: mush}\n", 'there is no topology "mush"'),
    ("2", "better.yaml", "topology: {kind: mesh, sizes: [9, 1]}\n", "none of its links may be missing"),
    ("3", "answers.yaml", "reply_vlan: h3\n", "should be the number of a VLAN"),
    ("6", "answers.yaml", "cycle: [s1-s2]\n", "two channels or more"),
    ("6", "answers.yaml", "cycle: [s1-s3, s3-s1]\n", 'there is no channel "s1→s3"'),
    ("7", "answers.yaml", "shares: {h1-h9: 3}\n", 'there is no flow "h1-h9"'),
    ("7", "answers.yaml", "shares: {h1-h2: 500}\n", "have no number yet"),
    ("7", "answers.yaml", "shares: 3\n", "should be a block of flows"),
    (
        "8",
        "flat.json",
        '{"seconds": 1, "digest": "x", "scenario": "tree"}',
        "is of tree, not of flat.yaml",
    ),
    ("8", "flat.json", '{"time": 1}', "is not of `testbed simulate`"),
]


@pytest.mark.parametrize(("name", "file", "text", "says"), BAD_FILES, ids=lambda value: str(value)[:40])
def test_bad_file_gets_a_sentence(name, file, text, says, tmp_path):
    found = begun(name, tmp_path / "mine")
    (tmp_path / "mine" / file).write_text(text)
    result = grade.check(found, tmp_path / "mine")
    said = "\n".join(one.wrong for task in result.tasks for one in task.demands)
    assert says in said
    assert str(tmp_path) not in said


def test_links_without_which_others_get_busier_are_named(tmp_path):
    given, mine = tmp_path / "given", tmp_path / "mine"
    given.mkdir()
    mine.mkdir()
    routed = "topology: {kind: ring, switches: 4, parallel_links: 3}\nrouting: {kind: north_last}\n"
    (given / "ring.yaml").write_text(routed)
    (mine / "answers.yaml").write_text(
        "some: [s1-s2, s1-s2#1, s1-s2#2]\nall: [s1-s2, s1-s2#1, s1-s2#2, s2-s3, s2-s3#1, s2-s3#2]\n"
    )
    handed_in = student_folder.Work(mine, given)
    said = links.judge_spared(handed_in, links.Spared("some", "ring.yaml", "all_to_all", "PC5324"))
    assert said is not None
    assert "flows, and with all links on none carried more than" in said
    said = links.judge_spared(handed_in, links.Spared("all", "ring.yaml", "all_to_all", "PC5324"))
    assert said == "all: what is left is not connected; traffic or not, every host must be reached"


def typed(*words: str) -> tuple[int, str]:
    ended = CliRunner().invoke(app, ["exercise", *words], catch_exceptions=False)
    return ended.exit_code, ended.stdout


def problem_of(*words: str) -> str:
    with pytest.raises(InputError) as caught:
        typed(*words)
    return str(caught.value)


@pytest.mark.slow
def test_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "03-vlans-by-hand" in typed("list")[1]
    assert len(json.loads(typed("list", "--format", "json")[1])["exercises"]) == 10
    code, text = typed("start", "3")
    assert code == 0
    assert "90 minutes" in text
    assert "is there already" in problem_of("start", "3")
    code, text = typed("check", "vlans-by-hand")
    assert code == 1
    assert "open" in text
    assert "a hint: testbed exercise hint 03-vlans-by-hand --task one" in text
    assert "one, hint 1 of 3" in typed("hint", "3")[1]
    assert "hint 2 of 3" in typed("hint", "3", "--task", "four", "--number", "2")[1]
    assert "has 3 hints, not 4" in problem_of("hint", "3", "--number", "4")
    assert 'there is no task "fuor". Did you mean "four"?' in problem_of("hint", "3", "--task", "fuor")
    monkeypatch.chdir("03-vlans-by-hand")
    assert "one, hint 1 of 3" in typed("hint", "3")[1], "within the folder, too"
    assert typed("check", "3")[0] == 1
    monkeypatch.chdir(tmp_path)
    assert "has 1 hint, not 2" in problem_of("hint", "10", "--task", "careful", "--number", "2")
    Path("03-vlans-by-hand/one.txt").write_text("mine")
    assert "is in 03-vlans-by-hand.1" in typed("reset", "3")[1]
    assert Path("03-vlans-by-hand.1/one.txt").read_text() == "mine"
    assert Path("03-vlans-by-hand/one.txt").read_text() != "mine"


def test_in_its_folder_an_exercise_need_not_be_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert problem_of("check").startswith(
        "NAME: is required here: this folder was not made by `testbed exercise start`"
    )
    assert typed("start", "3")[0] == 0
    monkeypatch.chdir(tmp_path / "03-vlans-by-hand")
    assert typed("check") == typed("check", "3")
    assert typed("hint") == typed("hint", "3")


def test_folders_that_are_no_exercise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert 'Did you mean "01-storm"?' in problem_of("start", "01-strom")
    assert "begin with: testbed exercise start 01-storm" in problem_of("check", "1")
    Path("01-storm").mkdir()
    assert "its file .exercise is missing" in problem_of("check", "1")
    typed("start", "2", "other")
    assert "is of the exercise 02-spanning-tree, not of 01-storm" in problem_of("check", "1", "other")
    assert "holds no exercise" in problem_of("grade", ".")
    assert "holds no exercise" in problem_of("grade", "nowhere")


def test_class_is_graded(tmp_path):
    solved("3", tmp_path / "ada" / "vlans")
    begun("3", tmp_path / "=bob" / "vlans")
    found = list(csv.DictReader(io.StringIO(typed("grade", str(tmp_path), "--format", "csv")[1])))
    of_ada = [row for row in found if row["student"] == "ada"]
    assert sum(float(row["points"]) for row in of_ada) == sum(float(row["of"]) for row in of_ada) == 15
    assert {row["student"] for row in found} == {"ada", "'=bob"}  # no formula for a spreadsheet
    assert all(row["open"] for row in found if row["student"] == "'=bob")
    as_json = json.loads(typed("grade", str(tmp_path), "--format", "json")[1])
    assert [(one["student"], one["points"]) for one in as_json["results"]] == [("=bob", 0), ("ada", 15)]
    assert as_json["without"] == []
    lines = [line.split() for line in typed("grade", str(tmp_path))[1].splitlines()]
    assert ["ada", "03-vlans-by-hand", "15", "15"] in lines
    assert ["ada", "all", "15", "15"] in lines
    assert ["=bob", "03-vlans-by-hand", "0", "15", "one,", "four,", "reply"] in lines


def test_class_is_sorted_and_nothing_of_it_is_left_out(tmp_path):
    solved("3", tmp_path / "ada" / "a-vlans")
    begun("2", tmp_path / "ada" / "b-tree")
    begun("3", tmp_path / "ada" / "c-vlans-again")  # as `reset` leaves one
    (tmp_path / "bob").mkdir()
    (tmp_path / "cid.zip").write_bytes(b"PK")
    begun("2", tmp_path / "dan" / "tree")
    (tmp_path / "dan" / "tree" / student_folder.MARK).unlink()
    begun("2", tmp_path / "eve" / "tree")
    (tmp_path / "eve" / "tree" / student_folder.MARK).write_text("99-other")
    ended = CliRunner().invoke(app, ["exercise", "grade", str(tmp_path), "--format", "csv"], catch_exceptions=False)
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert ended.exit_code == 3
    found = [(row["student"], row["exercise"]) for row in rows]
    assert list(dict.fromkeys(found)) == [
        ("ada", "02-spanning-tree"), ("ada", "03-vlans-by-hand"), ("bob", ""), ("dan", ""), ("eve", ""),
    ]  # fmt: skip
    assert sum(float(row["points"]) for row in rows) == 15, "the best of several folders counts"
    notes = ended.stderr
    assert "cid.zip: is a file; unpack it" in notes
    assert "tree: was not graded, since its file .exercise is missing" in notes
    assert 'it is of the exercise "99-other", which is not here' in notes
    assert ["bob", "none", "0", "0"] in [line.split() for line in typed("grade", str(tmp_path))[1].splitlines()]


def test_a_reason_is_told_once(tmp_path):
    found = begun("1", tmp_path)
    (tmp_path / "mesh.txt").write_text(
        "switch leaf\n  interface h1\n    pvid 1\nswitch s1\n  interface h9\n    pvid 1\n"
    )
    result = next(one for one in grade.check(found, tmp_path).tasks if one.task.name == "tree")
    first, second, third = result.sentences
    assert first.count("line") == 2, "lines below a switch or an interface that there is not are not wrong again"
    assert 'there is no switch "leaf". Known: s1, s2, s3, s4' in first
    assert second == "every host still speaks with every other: not yet, for the same reason"
    assert third.endswith("for the same reason")
    (tmp_path / "mesh.txt").write_text("sw s1\n  interface h1\n    pvid 1\n  interface s2\n")
    result = next(one for one in grade.check(found, tmp_path).tasks if one.task.name == "tree")
    assert result.sentences[0].count("line") == 3  # "write a line such as", and the two that are wrong


@pytest.mark.parametrize("name", NAMES)
def test_what_was_given_earns_nothing(name, tmp_path):
    assert grade.check(begun(name, tmp_path), tmp_path).points == 0


def test_a_file_of_another_system_is_read(tmp_path):
    found = solved("3", tmp_path)
    for name in ("one.txt", "four.txt", "answers.yaml"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert grade.check(found, tmp_path).complete


def test_prices_of_what_was_given_are_none(tmp_path):
    found = begun("6", tmp_path)
    (tmp_path / "answers.yaml").write_text("length_cut: 2.6\n")
    said = "\n".join(one.wrong for task in grade.check(found, tmp_path).tasks for one in task.demands)
    assert "cut.yaml: is as it was given; do its task first" in said


def test_nothing_of_a_student_is_run_or_waited_for(tmp_path):
    found = begun("2", tmp_path)
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with (tmp_path / "better.yaml").open("a") as file:
        file.write("plugins: [evil.py]\n")
    (tmp_path / "answers.yaml").unlink()
    os.mkfifo(tmp_path / "answers.yaml")
    said = "\n".join(one.wrong for task in grade.check(found, tmp_path).tasks for one in task.demands)
    assert "better.yaml: plugins: has no place in an exercise" in said
    assert "answers.yaml: is no file" in said
    assert not (tmp_path / "ran").exists()


def test_what_is_handed_out_has_no_solutions(tmp_path):
    root = course.FOLDER.parent
    if not (root / ".git").exists():
        pytest.skip("no clone")
    page = (root / "docs" / "teaching.md").read_text()
    command = next(line.strip() for line in page.splitlines() if line.startswith("      git archive"))
    packed = tmp_path / "packed.tar.gz"
    subprocess.run(shlex.split(command.replace("testbed.tar.gz", str(packed))), cwd=root, check=True)
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    assert "testbed/exercises/01-storm/exercise.yaml" in names
    assert not [name for name in names if course.SOLUTIONS in name]


def test_what_students_write_does_nothing_to_a_terminal(tmp_path):
    folder = tmp_path / "a\x1b[31mda" / "storm"
    begun("1", folder)
    (folder / "mesh.txt").write_text("sw\x1b[2Jitch s1\n" + "x" * 100_000)
    begun("1", tmp_path / "a\x1b[31mda" / "other\x1b")
    (tmp_path / "a\x1b[31mda" / "other\x1b" / student_folder.MARK).write_text("o\x07ther")
    graded = grade.grade(tmp_path)
    said = [one.wrong for result in graded.results for task in result.tasks for one in task.demands]
    assert any("sw\\x1b[2jitch" in one for one in said)
    assert max(map(len, said)) < 3000
    assert graded.results[0].student == "a\\x1b[31mda"
    assert all(one.isprintable() for one in (*said, *graded.notes))


def test_one_right_run_of_several_will_do(tmp_path, monkeypatch):
    found = solved("7", tmp_path)
    run_commands(found, tmp_path, monkeypatch)
    later = tmp_path / "results" / "99990101-000000-other"
    later.mkdir()
    (later / "manifest.json").write_text("{}")
    only = dataclasses.replace(found, tasks=tuple(one for one in found.tasks if one.name == "measured"))
    assert grade.check(only, tmp_path).complete
    (tmp_path / "answers.yaml").write_text(f"run: results/{later.name}\n")
    assert not grade.check(only, tmp_path).complete


def test_mistakes_of_an_author_are_named(tmp_path):
    folder = tmp_path / "01-mine"
    folder.mkdir()
    (folder / course.FILE).write_text(
        "title: x\nminuts: 3\ntasks:\n  - {name: a, title: b, hints: [c], demands: [{kind: nubmer, says: d}]}\n"
        "  - {name: a, title: b, hints: [], demands: [{kind: vlans, says: d, file: f, points: 0}]}\n"
    )
    with pytest.raises(InputError) as caught:
        course.find("1", tmp_path)
    said = str(caught.value)
    for sentence in (
        "exercise.minuts: unknown key",
        "tasks.0.demands.0.kind: should be one of number",
        "tasks.1.hints: should have 1 or more entries",
        "tasks.1.demands.0.points: should be above 0",
        "tasks.1.demands.0.wiring: is required",
    ):
        assert sentence in said
