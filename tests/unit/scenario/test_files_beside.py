"""Of a folder of others no more is read than what is in it: no link, and no path that leads out, unless the caller
has named the file himself."""

from __future__ import annotations

import json

import pytest

import testbed as tb
from testbed.base.errors import InputError
from testbed.devices.audit.read_folder import read_network
from testbed.experiments.sweep.plan_combinations import prepare
from testbed.planning import make_plan
from testbed.scenario import load_scenario
from testbed.ui.cli.check_command import _sources, texts_of
from testbed.ui.teaching import course
from testbed.ui.teaching.grade import grade
from testbed.ui.teaching.student_folder import begin

_SECRET = "root:$6$ThePasswordOfRoot:20000:0:99999:7:::"
# Blocks that name a file, and the key that does.
_NAMING = {
    "topology.path": "topology: {{kind: file, path: {0}}}\n",
    "topology.path (format)": "topology: {{kind: file, path: {0}, format: graphml}}\n",
    "routing.file": "topology: {{kind: ring, switches: 3}}\nrouting: {{kind: paths, file: {0}}}\n",
    "workloads.0.matrix": "topology: {{kind: ring, switches: 3}}\nworkloads: [{{kind: iperf3, matrix: {0}}}]\n",
}
_FABRIC = {"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"source": "a", "target": "b"}]}


@pytest.fixture
def theirs(tmp_path):
    """A folder of somebody's, beside which is a file of root's."""
    (tmp_path / "secret").write_text(f"{_SECRET}\n{_SECRET}\n")
    (tmp_path / "secret.json").write_text(json.dumps({"nodes": [{"id": _SECRET}], "links": [{"source": _SECRET}]}))
    folder = tmp_path / "theirs"
    (folder / "within").mkdir(parents=True)
    (folder / "link").symlink_to("../secret")
    (folder / "elsewhere").symlink_to("..")
    return folder


def told_by(function, *arguments, **named):
    with pytest.raises(InputError) as caught:
        function(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize("key", _NAMING)
@pytest.mark.parametrize("way", ["../secret", "within/../../secret", "{0}/secret", "link", "elsewhere/secret"])
def test_a_scenario_shows_nothing_of_what_is_outside_its_folder(theirs, key, way):
    file = theirs / "sc.yaml"
    file.write_text(_NAMING[key].format(way.format(theirs.parent)))
    told = told_by(load_scenario, file)
    assert "ThePassword" not in told
    assert key.split()[0] in told
    assert "outside the folder of the scenario" in told or "is a link, and none is followed there" in told


def test_the_sentence_says_how_the_file_is_named_by_the_caller(theirs):
    (theirs / "sc.yaml").write_text(_NAMING["topology.path"].format("../fabric.json"))
    (theirs.parent / "fabric.json").write_text(json.dumps(_FABRIC))
    told = told_by(load_scenario, theirs / "sc.yaml")
    assert told == (
        f"{theirs}/sc.yaml: topology.path: ../fabric.json: cannot be read: it is outside the folder of the scenario; "
        "put it there, or name it yourself: settings={\"topology.path\": '../fabric.json'}"
    )
    scenario = load_scenario(theirs / "sc.yaml", ["topology.path=../fabric.json"])
    assert make_plan(scenario).topology.switch_count == 2


@pytest.mark.parametrize("named", ["../fabric.json", "{0}/fabric.json", "mine"])
def test_what_the_caller_names_may_be_anywhere_and_a_link(theirs, named):
    (theirs.parent / "fabric.json").write_text(json.dumps(_FABRIC))
    (theirs / "mine").symlink_to("../fabric.json")
    (theirs / "sc.yaml").write_text("topology: {kind: file, path: x.json, format: node_link}\n")
    path = named.format(theirs.parent)
    assert load_scenario(theirs / "sc.yaml", [f"topology.path={path}"]).topology.switches == ("a", "b")


def test_of_blocks_in_python_files_may_be_anywhere(tmp_path):
    (tmp_path / "fabric.json").write_text(json.dumps(_FABRIC))
    made = tb.plan({"topology": {"kind": "file", "path": str(tmp_path / "fabric.json")}})
    assert made.core.topology.switch_count == 2


def test_files_in_the_folder_are_read(theirs):
    (theirs / "within" / "fabric.json").write_text(json.dumps(_FABRIC))
    (theirs / "sc.yaml").write_text(_NAMING["topology.path"].format("./within/fabric.json"))
    assert load_scenario(theirs / "sc.yaml").topology.switches == ("a", "b")


@pytest.mark.parametrize("name", ["../secret", "/etc/shadow", "link.yaml", "./link", "elsewhere/secret"])
def test_a_sweep_shows_nothing_of_what_is_outside_its_folder(theirs, name):
    (theirs / "link.yaml").symlink_to("../secret")
    (theirs / "s.yaml").write_text(json.dumps({"scenarios": [name]}))
    told = told_by(prepare, theirs / "s.yaml", lambda text: None)
    assert "ThePassword" not in told
    assert "outside the folder of the sweep" in told or "is a link, and none is followed there" in told


def test_what_a_sweep_sets_is_not_the_caller_s_word(theirs):
    (theirs / "sc.yaml").write_text(_NAMING["topology.path"].format("x.json"))
    (theirs / "s.yaml").write_text(json.dumps({"scenarios": ["./sc.yaml"], "set": {"topology.path": ["../secret"]}}))
    told = told_by(prepare, theirs / "s.yaml", lambda text: None)
    assert "ThePassword" not in told
    assert "outside the folder of the scenario" in told


@pytest.mark.parametrize("name", ["s1.cfg", "cabling.csv", "lldp.json", "s2/interfaces"])
def test_a_folder_of_configurations_has_no_links(theirs, name):
    folder = theirs / "within"
    (folder / "s0.cfg").write_text("hostname s0\n")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).symlink_to(theirs.parent / "secret")
    for read in (texts_of, lambda where: read_network(texts_of(where)), lambda where: _sources(where, None, [])):
        assert told_by(read, folder) == f"{folder / name}: cannot be read: it is a link, and none is followed there"


def test_a_folder_that_is_a_link_among_files_is_a_sentence(theirs):
    (theirs / "within" / "s1").symlink_to(theirs.parent)
    (theirs / "within" / "gone.cfg").symlink_to("nowhere")
    assert told_by(texts_of, theirs / "within").count("it is a link, and none is followed there") == 2


def test_an_export_s_own_list_is_no_link(theirs):
    (theirs / "within" / "export.json").symlink_to("../../secret.json")
    told = told_by(_sources, theirs / "within", None, [])
    assert "it is a link, and none is followed there" in told
    assert "ThePassword" not in told


def test_the_folder_that_the_caller_names_may_be_a_link(theirs):
    (theirs / "within" / "s0.cfg").write_text("hostname s0\n")
    (theirs.parent / "mine").symlink_to(theirs / "within")
    assert list(texts_of(theirs.parent / "mine")) == ["s0.cfg"]


@pytest.mark.parametrize("path", ["../../../secret.json", "/etc/passwd", "fabric.json"])
def test_grading_reads_nothing_outside_of_a_student_s_folder(theirs, tmp_path, path):
    task = course.find("06-deadlock")
    mine = tmp_path / "class" / "eve" / task.name
    begin(task.name, task.folder / course.START, task.folder / course.SHEET, mine)
    (mine / "fabric.json").symlink_to("../../../secret.json")
    for scenario in mine.glob("*.yaml"):
        if scenario.name != "answers.yaml":
            scenario.write_text(_NAMING["topology.path"].format(path))
    graded = grade(tmp_path / "class")
    told = " ".join(one.wrong for result in graded.results for part in result.tasks for one in part.demands)
    assert "ThePassword" not in told
    assert "outside the folder of the scenario" in told or "is a link" in told
