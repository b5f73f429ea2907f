from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from testbed.base.errors import InputError, LabError
from testbed.base.units import format_eta
from testbed.experiments.compare import compare
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engine import RunOutcome
from testbed.experiments.sweep import prepare, run_sweep
from testbed.experiments.sweep.record import RECORD, Entry, finished_folders, read_record
from testbed.experiments.sweep.run import seconds_left
from testbed.results import INCOMPLETE, ResultFolder, load_run
from testbed.ui.cli import compare_commands  # noqa: F401 - adds the commands
from testbed.ui.cli.app import app
from tests.runs import ENVIRONMENT, goodput, head

LOAD = "{kind: iperf3, protocol: udp, pattern: neighbour}"
SWEEP = """\
scenarios: [ring4, mesh6]
set: {lab.dilation: [100, 200]}
workloads: [{kind: iperf3, protocol: udp, pattern: neighbour}]
figures: [{kind: bars, metrics: [goodput]}]
"""
LABELS = ["ring4 dilation=100", "ring4 dilation=200", "mesh6 dilation=100", "mesh6 dilation=200"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "scenarios").mkdir()
    for name, topology in (("ring4", "{kind: ring, switches: 4}"), ("mesh6", "{kind: mesh, sizes: [6]}")):
        (tmp_path / "scenarios" / f"{name}.yaml").write_text(f"topology: {topology}\nworkloads: [{LOAD}]\n")
    (tmp_path / "mine.yaml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("testbed.experiments.run.open_vswitch.require", lambda scenario: None)
    # What pictures look like is tested elsewhere, and drawing takes its time.
    monkeypatch.setattr("testbed.experiments.compare.figure.FORMATS", ())
    return tmp_path


class Lab:
    """Runs nothing and stores a made-up result; what a test wants to go wrong, goes wrong at a run's number."""

    def __init__(self, at=0, what=None, verdicts=(), advice=""):
        self.at, self.what, self.verdicts, self.advice = at, what, verdicts, advice
        self.ran, self.asked = [], []

    def __call__(self, plan, folder, progress, asked):
        self.asked.append(asked)
        progress("building the lab")
        name = f"{plan.scenario.name} dilation={plan.scenario.lab.dilation:g}"
        self.ran.append(name)
        written = ResultFolder(folder, plan)
        written.write_plan(ENVIRONMENT)
        if self.what is not None and len(self.ran) == self.at:
            written.write_text("raw/rest.txt", "what there was until then")
            raise self.what
        verdict = dict(self.verdicts).get(len(self.ran), Verdict.PASS)
        written.write_samples(goodput(1e8 * len(self.ran), 1.1e8 * len(self.ran)))
        reasons = ["made up"] if verdict else []
        written.write_manifest(verdict.word, reasons, [head(1, "iperf3 udp neighbour", verdict.word, *reasons)])
        return RunOutcome(written.finish(), verdict, tuple(reasons), (), self.advice)


def swept(lab, *, resume=False, said=None, file="mine.yaml", repeats=None):
    tell = said.append if said is not None else lambda text: None
    return run_sweep(prepare(Path(file), repeats=repeats), Path("results"), tell, resume=resume, runner=lab)


def told() -> list[str]:
    return []


def the_folder():
    (folder,) = Path("results").iterdir()
    return folder


def states(folder):
    return [entry.state for entry in read_record(folder).entries]


def test_every_combination_has_a_folder_and_all_are_compared(monkeypatch):
    monkeypatch.setattr("testbed.experiments.compare.figure.FORMATS", ("svg", "pdf"))
    lab, said = Lab(), told()
    outcome = swept(lab, said=said)
    assert lab.ran == LABELS
    assert (outcome.exit_code, outcome.counts, outcome.problems) == (0, "4 pass", ())
    assert outcome.folder == the_folder()
    assert outcome.folder.name.endswith("-sweep-mine")
    for entry in outcome.record.entries:
        assert load_run(outcome.folder / entry.folder).plan.digest == entry.plan_digest
    assert {file.name for file in outcome.folder.iterdir()} == {
        RECORD, "runs", "index.html", "comparison.txt", "mine.csv", "mine.svg", "mine.pdf",
    }  # fmt: skip
    page = (outcome.folder / "index.html").read_text()
    for entry in outcome.record.entries:
        assert f'{entry.folder.replace("=", "%3D")}/report.html">{entry.label}</a>' in page
        assert entry.label.replace(" ", "-") in entry.folder
    assert "<svg" in page
    table = (outcome.folder / "comparison.txt").read_text()
    assert table.splitlines()[0] == "mine"
    assert all(label in table for label in LABELS)
    assert "run 1 of 4, ring4 dilation=100: building the lab" in said
    assert any(re.match(r"run 2 of 4, about \d+ s left, ring4 dilation=200: building", text) for text in said)
    assert finished_folders(outcome.folder) == [outcome.folder / entry.folder for entry in outcome.record.entries]


def test_repeats_come_in_rounds_and_count_as_runs():
    Path("mine.yaml").write_text(SWEEP.replace("[100, 200]", "100") + "repeats: 3\n")
    lab = Lab()
    outcome = swept(lab)
    assert [name.partition(" ")[0] for name in lab.ran] == ["ring4", "mesh6"] * 3
    assert [entry.repeat for entry in outcome.record.entries] == [1, 1, 2, 2, 3, 3]
    assert "3 runs" in outcome.tables[0]


def test_a_first_round_can_be_had_alone_and_the_others_added():
    Path("mine.yaml").write_text(SWEEP.replace("[100, 200]", "100") + "repeats: 3\n")
    first, rest = Lab(), Lab()
    assert swept(first, repeats=1).counts == "2 pass"
    assert [name.partition(" ")[0] for name in first.ran] == ["ring4", "mesh6"]
    outcome = swept(rest, resume=True)
    assert [name.partition(" ")[0] for name in rest.ran] == ["ring4", "mesh6"] * 2
    assert [entry.repeat for entry in outcome.record.entries] == [1, 1, 2, 2, 3, 3]
    assert outcome.folder == the_folder()
    assert refusal(repeats=2)[1:] == [f"{outcome.folder}: {name}, repeat 3, is gone" for name in ("mesh6", "ring4")]


@pytest.mark.parametrize("repeats", [0, 101])
def test_repeats_out_of_range_are_a_sentence(repeats):
    with pytest.raises(InputError) as caught:
        swept(Lab(), repeats=repeats)
    assert str(caught.value) == f"repeats: should be a whole number from 1 to 100, not {repeats}"
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("verdict", "code", "counts"),
    [
        (Verdict.WARN, 3, "3 pass, 1 warn"),
        (Verdict.INVALID, 1, "3 pass, 1 invalid"),
        (Verdict.FAIL, 1, "3 pass, 1 fail"),
    ],
)
def test_the_exit_code_is_that_of_the_worst_run(verdict, code, counts):
    outcome = swept(Lab(verdicts={4: verdict}))
    assert (outcome.exit_code, outcome.counts) == (code, counts)


@pytest.mark.parametrize("error", [LabError("the switches are gone"), RuntimeError("a fault of the program")])
def test_a_broken_run_stops_no_other_and_is_repeated_on_resume(error):
    outcome = swept(Lab(2, error))
    assert states(outcome.folder) == ["finished", "broken", "finished", "finished"]
    assert outcome.exit_code == 1
    broken = outcome.record.entries[1]
    assert str(error) in broken.error
    assert ("Traceback" in broken.error) == isinstance(error, RuntimeError)
    assert (outcome.folder / broken.folder / "raw" / "rest.txt").exists()  # it may still help
    assert "ring4 dilation=200" not in outcome.tables[0]
    lab = Lab()
    again = swept(lab, resume=True)
    assert lab.ran == ["ring4 dilation=200"]
    assert (again.exit_code, states(again.folder)) == (0, ["finished"] * 4)
    assert not list((again.folder / "runs").glob(f"*{INCOMPLETE}"))


def test_an_interrupted_sweep_keeps_results_and_goes_on_there():
    lab = Lab(3, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        swept(lab)
    folder = the_folder()
    assert states(folder) == ["finished", "finished", "waiting", "waiting"]
    kept = sorted(path.name for path in folder.rglob("*") if path.parent in (folder, folder / "runs"))
    finished = sorted(path.name for path in finished_folders(folder))
    assert kept == sorted([RECORD, "runs", *finished])
    lab, said = Lab(), told()
    outcome = swept(lab, resume=True, said=said)
    assert lab.ran == LABELS[2:]
    assert "2 of 4 runs are done already" in said
    assert outcome.folder == folder
    assert sorted(path.name for path in finished_folders(folder)[:2]) == finished
    assert outcome.exit_code == 0


def test_a_crash_in_mid_run_costs_only_that_run():
    with pytest.raises(KeyboardInterrupt):
        swept(Lab(3, KeyboardInterrupt()))
    folder = the_folder()
    # As SIGKILL leaves it: marked as running, with the rest of its folder there.
    record = json.loads((folder / RECORD).read_text())
    record["runs"][2]["state"] = "running"
    (folder / RECORD).write_text(json.dumps(record))
    (folder / "runs" / f"20260101-000000-mesh6{INCOMPLETE}").mkdir()
    lab = Lab()
    assert swept(lab, resume=True).exit_code == 0
    assert lab.ran == LABELS[2:]
    assert not list((folder / "runs").glob(f"*{INCOMPLETE}"))


def test_a_finished_sweep_is_only_compared_again():
    first = swept(Lab())
    (first.folder / "mine.csv").unlink()
    lab = Lab()
    again = swept(lab, resume=True)
    assert (lab.ran, again.folder, again.exit_code) == ([], first.folder, 0)
    assert (first.folder / "mine.csv").exists()


def test_without_resume_a_sweep_starts_anew():
    one, other = swept(Lab()), swept(Lab())
    assert one.folder != other.folder
    assert len(finished_folders(one.folder)) == len(finished_folders(other.folder)) == 4


def test_a_result_that_is_gone_or_damaged_is_made_again():
    first = swept(Lab())
    entries = first.record.entries
    (first.folder / entries[0].folder / "samples.csv").write_text("damaged")
    (first.folder / entries[3].folder).rename("elsewhere")
    lab, said = Lab(), told()
    assert swept(lab, resume=True, said=said).exit_code == 0
    assert lab.ran == [LABELS[0], LABELS[3]]
    assert any(text.startswith(f"{LABELS[0]} is run again: ") and "samples.csv" in text for text in said)


def refusal(**options):
    with pytest.raises(InputError) as error:
        swept(Lab(), resume=True, **options)
    return str(error.value).splitlines()


def test_scenarios_in_another_order_are_the_same_sweep():
    with pytest.raises(KeyboardInterrupt):
        swept(Lab(2, KeyboardInterrupt()))
    Path("mine.yaml").write_text(SWEEP.replace("[ring4, mesh6]", "[mesh6, ring4]"))
    lab = Lab()
    outcome = swept(lab, resume=True)
    assert lab.ran == LABELS[1:]
    for entry in outcome.record.entries:
        assert load_run(outcome.folder / entry.folder).plan.digest == entry.plan_digest


def test_a_changed_sweep_is_noticed_and_nothing_is_touched():
    folder = swept(Lab()).folder
    before = (folder / RECORD).read_text()
    Path("mine.yaml").write_text(SWEEP.replace("[100, 200]", "[100, 300]"))
    assert refusal() == [
        f"{folder}: the sweep has changed since it began, so it cannot be resumed; leave resume out to start anew",
        f"{folder}: mesh6 dilation=200, repeat 1, is gone",
        f"{folder}: mesh6 dilation=300, repeat 1, is new",
        f"{folder}: ring4 dilation=200, repeat 1, is gone",
        f"{folder}: ring4 dilation=300, repeat 1, is new",
    ]
    Path("mine.yaml").write_text(SWEEP.replace("neighbour}", "neighbour, seconds: 9}"))
    assert refusal()[1:] == [f"{folder}: {label} has other settings or loads now" for label in sorted(LABELS)]
    assert (folder / RECORD).read_text() == before


def test_a_changed_plan_is_noticed():
    folder = swept(Lab()).folder
    old = read_record(folder).entries[0].plan_digest
    Path("scenarios/ring4.yaml").write_text(f"topology: {{kind: ring, switches: 5}}\nworkloads: [{LOAD}]\n")
    new = prepare(Path("mine.yaml")).jobs[0].plan_digest
    assert refusal()[1:] == [f"{folder}: {label} had plan {old} and now has {new}" for label in LABELS[:2]]


def test_figures_may_change_without_a_run_being_repeated():
    folder = swept(Lab()).folder
    Path("mine.yaml").write_text(SWEEP + "baseline: mesh6\ndescription: other\n")
    lab = Lab()
    outcome = swept(lab, resume=True)
    assert lab.ran == []
    assert "relative to mesh6" in outcome.tables[0]
    assert outcome.folder == folder


def test_a_baseline_of_one_setting_holds_along_its_axis():
    """Along the axis each point refers to that of the baseline's scenario."""
    figures = "[{kind: bars, name: a}, {kind: lines, x: lab.dilation, name: b}]"
    text = SWEEP.replace("[{kind: bars, metrics: [goodput]}]", figures)
    Path("mine.yaml").write_text(f"{text}baseline: ring4 lab.dilation=200\n")
    outcome = swept(Lab())
    assert outcome.problems == ()
    bars, lines = outcome.tables
    assert "relative to ring4 dilation=200" in bars
    assert "relative to ring4 " not in lines
    assert "relative to ring4" in lines


def test_a_figure_that_cannot_be_made_takes_no_other_with_it():
    Path("mine.yaml").write_text(
        SWEEP.replace(
            "[{kind: bars, metrics: [goodput]}]", "[{kind: bars, metrics: [godput], name: a}, {kind: bars, name: b}]"
        )
    )
    outcome = swept(Lab())
    assert outcome.exit_code == 3
    assert outcome.problems == (
        'a: godput: no run has this metric. Did you mean "goodput"? There are: goodput',
    )  # fmt: skip
    assert [file.name for file in outcome.files] == ["index.html", "comparison.txt", "b.csv"]


def test_when_all_is_broken_there_is_nothing_to_compare():
    class Broken(Lab):
        def __call__(self, plan, folder, progress, asked):
            raise LabError("no lab")

    outcome = swept(Broken())
    assert (outcome.exit_code, outcome.counts, outcome.tables) == (1, "4 broken", ())
    assert [file.name for file in outcome.files] == ["index.html"]
    assert '<td class="broken">broken</td>' in outcome.files[0].read_text()
    with pytest.raises(InputError, match="no run of this sweep is finished"):
        finished_folders(outcome.folder)


def test_nothing_to_resume_is_a_sentence():
    with pytest.raises(InputError, match="resume: there is no sweep mine in results; leave resume out to start one"):
        swept(Lab(), resume=True)
    assert not Path("results").exists()
    swept(Lab())
    Path("mine-2.yaml").write_text(SWEEP)
    with pytest.raises(InputError, match="there is no sweep mine-2 in results"):
        swept(Lab(), resume=True, file="mine-2.yaml")


def test_results_that_cannot_be_written_are_a_sentence():
    Path("results").write_text("a file")
    with pytest.raises(
        InputError, match=r"results: results cannot be written there: .*; give another folder with results"
    ):
        swept(Lab())


def test_two_programs_do_not_run_one_sweep():
    folder = swept(Lab()).folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another program is running this sweep"):
            swept(Lab(), resume=True)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda record: record.update(schema_version=9), "has schema version 9; this program reads 1"),
        (lambda record: record.pop("runs"), "is damaged: KeyError('runs')"),
        (lambda record: record["runs"][1].update(state="done"), "is damaged: runs.1.state: should be one of waiting, "),
        (lambda record: record["runs"][0].pop("label"), "is damaged: runs.0.label: is required"),
    ],
)
def test_a_damaged_record_is_a_sentence(damage, sentence):
    folder = swept(Lab()).folder
    record = json.loads((folder / RECORD).read_text())
    damage(record)
    (folder / RECORD).write_text(json.dumps(record))
    with pytest.raises(InputError) as error:
        read_record(folder)
    assert str(error.value).startswith(f"{folder / RECORD}: {sentence}")
    (folder / RECORD).write_text("{")
    with pytest.raises(InputError, match="is damaged: "):
        read_record(folder)


entries = st.lists(
    st.builds(
        Entry, st.sampled_from("abc"), st.just(1), st.just(()), st.just(""), st.just(""),
        st.sampled_from(["waiting", "running", "finished", "broken"]),
        seconds=st.floats(0, 1e6),
    ),
    max_size=12,
)  # fmt: skip


@given(entries)
def test_what_is_left_is_between_the_shortest_and_the_longest(found):
    done = [entry.seconds for entry in found if entry.state in ("finished", "broken")]
    left = sum(entry.state in ("waiting", "running") for entry in found)
    seconds = seconds_left(found)
    if not done:
        assert seconds is None
    else:
        assert seconds is not None
        assert min(done) * left * 0.999 <= seconds <= max(done) * left * 1.001


def test_a_repeat_takes_as_long_as_the_same_took_before():
    def entry(label, state="waiting", seconds=None):
        return Entry(label, 1, (), "", "", state, seconds=seconds)

    known = [entry("a", "finished", 10.0), entry("b", "finished", 100.0)]
    assert seconds_left([*known, entry("a")]) == 10.0
    assert seconds_left([*known, entry("b"), entry("c")]) == 155.0


def test_times_left_are_rough():
    assert [format_eta(seconds) for seconds in (None, 0.4, 89, 91, 3600, 9000)] == [
        "", "about 0 s left", "about 89 s left", "about 2 min left", "about 60 min left", "about 2.5 h left",
    ]  # fmt: skip


def test_the_command_says_what_came_of_it(monkeypatch):
    monkeypatch.setattr("testbed.experiments.sweep.run_sweep", lambda *given, **options: run_sweep(
        *given, **options, runner=Lab(2, LabError("the switches are gone"), {3: Verdict.WARN})))  # fmt: skip
    done = CliRunner().invoke(app, ["sweep", "mine.yaml"])
    assert done.exit_code == 1
    for text in ("runs: 2 pass, 1 broken, 1 warn", "broken: ring4 dilation=200: the switches are gone",
                 "warn: mesh6 dilation=100: made up", "written: results/"):  # fmt: skip
        assert text in done.stdout
    monkeypatch.setattr(
        "testbed.experiments.sweep.run_sweep", lambda *given, **options: run_sweep(*given, **options, runner=Lab())
    )
    again = CliRunner().invoke(app, ["sweep", "mine.yaml", "--resume", "--format", "json"])
    found = json.loads(again.stdout)
    assert again.exit_code == 3
    assert [run["state"] for run in found["runs"]] == ["finished"] * 4
    compared = CliRunner().invoke(app, ["compare", found["results"], "--format", "json"])
    assert len(json.loads(compared.stdout)["rows"]) == 4


def test_what_to_type_where_a_lab_was_too_slow_is_told(monkeypatch):
    lab = Lab(verdicts={3: Verdict.INVALID}, advice="type: testbed run mesh6 --set lab.dilation=300")
    monkeypatch.setattr(
        "testbed.experiments.sweep.run_sweep", lambda *given, **options: run_sweep(*given, **options, runner=lab)
    )
    done = CliRunner().invoke(app, ["sweep", "mine.yaml"])
    told = done.stdout.splitlines()
    at = told.index("invalid: mesh6 dilation=100: made up")
    assert told[at + 1] == "  type: testbed run mesh6 --set lab.dilation=300"
    assert [entry.advice for entry in read_record(the_folder()).entries] == [lab.advice] * 4
    # Each run is known by what `testbed run` takes for it.
    assert lab.asked[2].at_dilation(300) == (
        """testbed run mesh6 --set 'workloads=[{"kind": "iperf3", "protocol": "udp", "pattern": "neighbour"}]' """
        "--set lab.dilation=300"
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_everything_belongs_to_the_owner_of_results():
    Path("results").mkdir()
    os.chown("results", 12345, 12346)
    folder = swept(Lab()).folder
    assert {(path.stat().st_uid, path.stat().st_gid) for path in [folder, *folder.rglob("*")]} == {(12345, 12346)}


def test_settings_are_called_what_the_file_says():
    Path("mine.yaml").write_text(f"{SWEEP}labels: {{dilation=100: quick, dilation=200: slow}}\nbaseline: ring4 slow\n")
    outcome = swept(Lab())
    assert [entry.label for entry in outcome.record.entries] == [
        "ring4 quick",
        "ring4 slow",
        "mesh6 quick",
        "mesh6 slow",
    ]
    assert "mesh6 slow" in outcome.tables[0]
    assert "dilation=" not in outcome.tables[0]
    assert "ring4-slow" in outcome.record.entries[1].folder


def test_a_routing_is_called_by_its_kind_alone():
    kinds = "set: {routing.kind: [updown, dor, sr], assignment.kind: openflow, lab.dilation: 100}\n"
    Path("mine.yaml").write_text("scenarios: [ring4]\n" + kinds + "figures: [{kind: bars, metrics: [goodput]}]\n")
    outcome = swept(Lab())
    assert [entry.error for entry in outcome.record.entries] == [""] * 3
    assert [entry.label for entry in outcome.record.entries] == ["ring4 updown", "ring4 dor", "ring4 sr"]
    found = compare([load_run(outcome.folder / entry.folder) for entry in outcome.record.entries])
    assert [variant.label for variant in found.variants] == ["ring4 updown", "ring4 dor", "ring4 sr"]


def test_a_sweep_with_labels_as_they_were_goes_on():
    with pytest.raises(KeyboardInterrupt):
        swept(Lab(2, KeyboardInterrupt()))
    record = the_folder() / RECORD
    record.write_text(record.read_text().replace(" dilation=", " lab.dilation="))
    lab = Lab()
    assert swept(lab, resume=True).exit_code == 0
    assert lab.ran == LABELS[1:]
