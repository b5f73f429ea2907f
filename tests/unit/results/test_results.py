from __future__ import annotations

import errno
import json
import os
import shutil
import time

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from testbed.base.errors import InputError, StorageError
from testbed.base.model import Sample
from testbed.results import INCOMPLETE, ResultFolder, load_run
from testbed.results.samples import samples_from_csv, samples_to_csv
from testbed.results.store import MANIFEST_KEYS
from testbed.scenario import parse_scenario
from tests.fabrics import plan_of
from tests.runs import head

PLAN = plan_of("ring", switches=3)
SAMPLES = (
    Sample("goodput", 9.5e8, "bit/s", {"src": "h1", "dst": "h2"}, 9.57e8),
    Sample("rtt", 1 / 3, "s", {"note": 'quote " comma , line\nµ'}),
)


def written(root) -> ResultFolder:
    folder = ResultFolder(root, PLAN)
    folder.write_plan({"kernel": "any"})
    folder.write_samples(SAMPLES)
    folder.write_manifest("pass", ["a reason"], [head(1, "ping")], {"dilation": 150.0})
    return folder


@pytest.fixture
def finished(tmp_path):
    return written(tmp_path / "results").finish()


def test_a_run_is_read_as_it_was_written(finished):
    run = load_run(finished)
    assert run.path == finished
    assert run.samples == SAMPLES
    assert (run.plan.digest, run.plan.rules) == (PLAN.digest, PLAN.rules)
    assert run.environment == {"kernel": "any"}
    assert (run.manifest["verdict"], run.manifest["reasons"]) == ("pass", ["a reason"])
    assert run.manifest["plan"]["vlans"] == 3
    # The scenario leaves the dilation to the machine and stays as it is; what the machine chose stands beside it.
    assert (run.plan.scenario.lab.dilation, run.dilation) == ("auto", 150)
    assert parse_scenario((finished / "scenario.yaml").read_text(), "test.yaml") == PLAN.scenario


def test_the_name_tells_scenario_and_digest_and_whether_it_ended(tmp_path):
    folder = written(tmp_path)
    assert folder.path.name.endswith(f"-test-{PLAN.digest[:8]}{INCOMPLETE}")
    with pytest.raises(InputError, match="is the folder of a run that did not end"):
        load_run(folder.path)
    final = folder.finish()
    assert final.name.endswith(f"-test-{PLAN.digest[:8]}")
    assert [entry.name for entry in tmp_path.iterdir()] == [final.name]


def test_runs_of_the_same_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1.7e9)
    first, second = ResultFolder(tmp_path, PLAN), ResultFolder(tmp_path, PLAN)
    ended = first.finish()
    third = ResultFolder(tmp_path, PLAN)
    assert len({ended, second.finish(), third.finish()}) == 3
    assert len(list(tmp_path.iterdir())) == 3


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path):
    folder = ResultFolder(tmp_path, PLAN)
    folder.write_text("raw/deep/output.txt", "one")
    folder.write_text("raw/deep/output.txt", "two")
    assert [file.name for file in folder.path.rglob("*") if file.is_file()] == ["output.txt"]
    assert (folder.path / "raw/deep/output.txt").read_text() == "two"


def test_a_failed_write_leaves_the_old_file(tmp_path):
    folder = ResultFolder(tmp_path, PLAN)
    folder.write_json("a.json", {"a": 1})
    with pytest.raises(TypeError):
        folder.write_json("a.json", {"a": object()})
    with pytest.raises(UnicodeEncodeError):
        folder.write_text("a.json", "\ud800")
    assert json.loads((folder.path / "a.json").read_text()) == {"a": 1}


def test_a_full_disk_is_a_sentence_and_leaves_what_is_there(tmp_path, monkeypatch):
    folder = written(tmp_path)
    before = sorted(file.name for file in folder.path.iterdir())

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("testbed.base.files.write.os.rename", full)
    with pytest.raises(StorageError) as caught:
        folder.write_samples(SAMPLES * 2)
    assert str(caught.value) == (
        f"samples.csv cannot be written: No space left on device\nwhat was stored until then: {folder.path}"
    )
    assert sorted(file.name for file in folder.path.iterdir()) == before
    assert samples_from_csv((folder.path / "samples.csv").read_text()) == SAMPLES
    with pytest.raises(InputError, match="did not end"):
        load_run(folder.path)


def test_a_root_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match=r"results cannot be written there: .*; give another folder with results"):
            ResultFolder(root, PLAN)


@pytest.mark.parametrize("name", ["manifest.json", "environment.json", "plan.json", "samples.csv"])
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"[1]", b"7", b"null", b"\xff\xfe", b'{"schema_version": 1}', b"a,b\n1,2\n"]
)
def test_a_damaged_file_is_named_in_a_sentence(finished, name, content):
    (finished / name).write_bytes(content)
    if name == "environment.json" and content.startswith(b'{"'):
        assert load_run(finished).environment == {"schema_version": 1}  # any object is an environment
        return
    with pytest.raises(InputError) as error:
        load_run(finished)
    (problem,) = error.value.problems
    assert problem.place == str(finished / name)
    assert problem.sentence.startswith(("is damaged: ", "has schema version "))


@pytest.mark.parametrize("name", ["manifest.json", "environment.json", "plan.json", "samples.csv"])
def test_every_cut_of_a_file_is_noticed_or_harmless(finished, name):
    whole = (finished / name).read_bytes()
    for end in [*range(0, len(whole) - 2, max(1, len(whole) // 25)), len(whole) - 2]:
        (finished / name).write_bytes(whole[:end])
        if name == "samples.csv" and whole[:end] in [samples_to_csv(SAMPLES[:n]).encode() for n in range(3)]:
            continue  # a table may end after any line
        with pytest.raises(InputError, match=name):
            load_run(finished)


@pytest.mark.parametrize("name", ["manifest.json", "environment.json", "plan.json", "samples.csv"])
def test_a_missing_file_is_named(finished, name):
    (finished / name).unlink()
    with pytest.raises(InputError, match=f"is not a result folder: {name} is missing$"):
        load_run(finished)


@pytest.mark.parametrize("name", ["manifest.json", "plan.json"])
def test_another_schema_version_is_refused(finished, name):
    value = json.loads((finished / name).read_text())
    (finished / name).write_text(json.dumps(value | {"schema_version": 99}))
    with pytest.raises(InputError, match=r"has schema version 99; this program reads"):
        load_run(finished)


def test_files_of_two_runs_do_not_pass_for_one(finished, tmp_path):
    other = ResultFolder(tmp_path / "other", plan_of("ring", switches=4))
    other.write_plan({})
    shutil.copy(other.path / "plan.json", finished / "plan.json")
    with pytest.raises(InputError, match=f"is of plan {PLAN.digest} and plan.json holds "):
        load_run(finished)


def test_a_clock_that_is_set_back_makes_no_run_shorter(tmp_path, monkeypatch):
    folder = ResultFolder(tmp_path, PLAN)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    folder.write_manifest("pass", [], [], {"dilation": 150.0})
    assert 0 <= json.loads((folder.path / "manifest.json").read_text())["seconds"] < 30


def test_the_manifest_has_the_keys_it_is_read_by(finished):
    assert tuple(load_run(finished).manifest) == MANIFEST_KEYS


def test_what_is_no_folder_of_a_run(tmp_path, finished):
    with pytest.raises(InputError, match=r"is not a result folder: there is nothing of that name$"):
        load_run(tmp_path / "none")
    with pytest.raises(InputError, match=r"is not a result folder: manifest\.json is missing$"):
        load_run(tmp_path)
    copy = shutil.copytree(finished, tmp_path / f"copy{INCOMPLETE}")
    with pytest.raises(InputError, match="did not end"):
        load_run(copy)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=12)
numbers = st.floats(allow_nan=False)
samples = st.builds(
    Sample, texts, numbers, texts, st.dictionaries(texts, st.text(st.characters(codec="utf-8"))), st.none() | numbers
)


@given(st.lists(samples, max_size=6))
def test_samples_survive_csv_exactly(table):
    assert samples_from_csv(samples_to_csv(table)) == tuple(table)


def test_figures_from_arrays_are_written_as_numbers():
    text = samples_to_csv([Sample("a", np.float64(1.5), "s", {}, np.float64(2.5)), Sample("b", float(np.int32(3)), "")])
    assert [(s.value, s.predicted) for s in samples_from_csv(text)] == [(1.5, 2.5), (3.0, None)]


def test_the_resolved_scenario_is_yaml_that_people_can_read(finished):
    text = (finished / "scenario.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["topology"]["kind"] == "ring"
    assert "!!python" not in text


def test_a_folder_of_an_earlier_version_is_read_with_new_names(finished):
    for name, former in (("environment.json", {"engine": "native"}), ("manifest.json", {"engine": "lab"})):
        (finished / name).write_text(json.dumps({**json.loads((finished / name).read_text()), **former}))
    plan = json.loads((finished / "plan.json").read_text())
    # `lab` had settings beside the simulator's in every scenario, and a block `vm` was not there.
    plan["scenario"] |= {"engine": "lab", "simulator": {"delay": 2.0}}
    del plan["scenario"]["vm"]
    (finished / "plan.json").write_text(json.dumps(plan))
    run = load_run(finished)
    assert [run.environment["engine"], run.manifest["engine"], run.plan.scenario.engine] == ["ovs", "ovs", "ovs"]
