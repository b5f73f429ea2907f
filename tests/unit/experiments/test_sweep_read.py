from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import CapabilityError, InputError
from testbed.engines.local_machine import probe
from testbed.experiments.sweep import prepare
from testbed.experiments.sweep.read_sweep import parse_sweep

SCENARIOS = {
    "ring4": "topology: {kind: ring, switches: 4}\nworkloads: [{kind: ping, pattern: complement}]\n",
    "mesh6": "topology: {kind: mesh, sizes: [6]}\nworkloads: [{kind: ping, pattern: neighbour}]\n",
    "idle": "topology: {kind: ring, switches: 4}\n",
    "cyclic": (
        "topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}\n"
        "workloads: [{kind: ping, pattern: neighbour}]\n"
    ),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with scenarios of its own, in which nothing may appear."""
    (tmp_path / "scenarios").mkdir()
    for name, text in SCENARIOS.items():
        (tmp_path / "scenarios" / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("testbed.experiments.run.open_vswitch.require", lambda scenario: None)
    return tmp_path


def prepared(text):
    Path("mine.yaml").write_text(text)
    return prepare(Path("mine.yaml"))


def refusal(text):
    before = {*Path().rglob("*")} | {Path("mine.yaml")}
    with pytest.raises(InputError) as error:
        prepared(text)
    assert {*Path().rglob("*")} == before
    lines = str(error.value).splitlines()
    return [line.replace(f"{Path.cwd()}/scenarios/", "") for line in lines]


def test_combinations_are_scenarios_times_values_in_their_order():
    found = prepared(
        "scenarios: [ring4, ./scenarios/mesh6.yaml]\n"
        "set: {lab.dilation: [100, 200], lab.seed: 5, links.queue_frames: [9]}\n"
    )
    assert [job.label for job in found.jobs] == [
        "ring4 dilation=100", "ring4 dilation=200", "mesh6 dilation=100", "mesh6 dilation=200",
    ]  # fmt: skip
    assert found.jobs[1].settings == ("lab.dilation=200", "lab.seed=5", "links.queue_frames=9")
    assert [job.scenario.lab.dilation for job in found.jobs] == [100, 200, 100, 200]
    assert {job.scenario.lab.seed for job in found.jobs} == {5}
    assert len({job.scenario_digest for job in found.jobs}) == 4
    assert len({job.plan_digest for job in found.jobs}) == 2


def test_what_is_left_out_has_a_default():
    found = prepared("scenarios: [ring4]")
    assert (found.sweep.name, found.sweep.repeats, found.sweep.baseline) == ("mine", 1, None)
    assert [(figure.kind, figure.name) for figure in found.sweep.figures] == [("bars", "mine")]
    assert found.jobs[0].label == "ring4"
    assert found.jobs[0].settings == ()


def test_workloads_replace_those_of_every_scenario_and_are_swept():
    found = prepared(
        "scenarios: [ring4, idle]\nworkloads: [{kind: ping, count: 3}, {kind: iperf3, protocol: udp}]\n"
        "set: {workloads.1.pattern: [neighbour, pairwise]}\n"
    )
    assert [job.label for job in found.jobs][:2] == [
        "ring4 pattern=neighbour",
        "ring4 pattern=pairwise",
    ]
    assert {load.kind for job in found.jobs for load in job.scenario.workloads} == {"ping", "iperf3"}
    assert [job.scenario.workloads[1].spec.pattern for job in found.jobs] == ["neighbour", "pairwise"] * 2


def test_values_that_are_lists_or_texts_arrive_as_they_are():
    found = prepared(
        "scenarios: [mesh6]\n"
        "set: {topology.sizes: [[4], [2, 3]], links.rate: [1 Gbit/s, 100 Mbit/s], lab.arp: broadcast}\n"
    )
    assert [job.scenario.topology.sizes for job in found.jobs] == [(4,), (4,), (2, 3), (2, 3)]
    assert [job.scenario.links.rate for job in found.jobs] == [1e9, 1e8] * 2
    assert found.jobs[0].label == "mesh6 sizes=[4] rate=1 Gbit/s"


def test_figures_have_names_of_their_own():
    found = prepared(
        "scenarios: [ring4]\n"
        "figures: [{kind: bars}, {kind: lines, x: switches_on_path, metrics: [rtt_mean], name: far}]"
    )
    assert [(figure.name, figure.x, figure.metrics) for figure in found.sweep.figures] == [
        ("mine-1", None, ()), ("far", "switches_on_path", ("rtt_mean",)),
    ]  # fmt: skip


def test_everything_wrong_with_a_sweep_is_told_at_once():
    assert refusal(
        """
scenarios: [ring4, rign4, ring4, 7, ./none.yaml]
sett: {lab.dilation: 5}
set: {lab.dilation: [100, 100], lab.seed: [], workloads: [], a..b: 1}
repeats: 0
name: "no name"
description: [1]
baseline: 4
figures: [{kind: bar}, {kind: lines}, {kind: bars, x: lab.seed, metric: [goodput]}, 3, {kind: bars, name: a/b}]
"""
    ) == [
        'mine.yaml: sett: unknown key. Did you mean "set"? Known: name, description, scenarios, set, workloads, '
        "repeats, baseline, labels, figures",
        'mine.yaml: name: should be letters, digits, "-" and "_", not "no name"',
        "mine.yaml: description: should be text (in quotes), not [1]",
        'mine.yaml: scenarios.1: rign4: no scenario of that name. Did you mean "ring4"? Known: '
        + ", ".join(sorted({*SCENARIOS, *(file.stem for file in PACKAGE.glob("*.yaml"))})) + ".",
        'mine.yaml: scenarios.2: "ring4" is listed twice; repeats: runs each several times',
        "mine.yaml: scenarios.3: should be a name in scenarios/ or a file, not 7",
        "mine.yaml: scenarios.4: none.yaml: no such file. Did you mean \"mine.yaml\"?",
        "mine.yaml: set.lab.dilation: has a value twice: [100, 100]",
        "mine.yaml: set.lab.seed: has no value; give one or more, or leave the key out",
        "mine.yaml: set.workloads: has no value; give one or more, or leave the key out",
        "mine.yaml: set.a..b: should be a key of a scenario such as lab.dilation",
        "mine.yaml: repeats: should be a whole number from 1 to 100, not 0",
        'mine.yaml: figures.0.kind: should be one of bars, lines, not "bar". Did you mean "bars"?',
        "mine.yaml: figures.1.x: is required for lines: switches_on_path, message_size or a key such as "
        "topology.hosts_per_switch",
        'mine.yaml: figures.2.metric: unknown key. Did you mean "metrics"? Known: kind, name, x, x_label, metrics, '
        "title",
        "mine.yaml: figures.3: should be a block of keys, not 3",
        'mine.yaml: figures.4.name: should be letters, digits, "-" and "_", not "a/b"',
        "mine.yaml: baseline: should be text (in quotes), not 4",
    ]  # fmt: skip


PACKAGE = Path(__file__).parents[3] / "scenarios"


def test_everything_wrong_is_told_at_the_key_that_causes_it():
    assert refusal(
        """
scenarios: [ring4, mesh6, idle, cyclic]
set: {lab.dilation: [100, 0], links.ratee: [1 Gbit/s], workloads.0.count: 5}
baseline: ring5
figures: [{kind: lines, x: lab.dilatation}]
"""
    ) == [
        'mine.yaml: set.links.ratee: unknown key. Did you mean "rate"? Known: rate, host_rate, queue_frames, mtu, '
        "aggregate, add, remove, rates",
        "mine.yaml: set.lab.dilation: should be 1 or more, not 0 (in ring4 dilation=0 and 3 more)",
        'mine.yaml: set.workloads.0.count: should be a list such as [{kind: ping}], not {"0": {"count": 5}} (in idle '
        "dilation=100 and 1 more)",
    ]


def test_patterns_and_proofs_are_checked_before_anything_runs():
    lines = refusal("scenarios: [mesh6, cyclic, idle]\nset: {workloads.0.pattern: [bit_reversal, neighbour]}\n")
    assert lines[0] == (
        'mine.yaml: set.workloads.0.pattern: pattern "bit_reversal" needs a power of two of hosts, not 6 (in mesh6 '
        "pattern=bit_reversal and 1 more)"
    )
    assert lines[1].startswith("cyclic.yaml: verification failed, nothing was built; deadlock: ")
    assert lines[1].endswith("(in cyclic pattern=neighbour)")
    assert lines[2].startswith("mine.yaml: set.workloads.0.pattern: should be a list such as [{kind: ping}], not ")


def test_a_scenario_without_loads_and_an_unknown_job_are_refused():
    assert refusal("scenarios: [ring4, idle]") == [
        "idle.yaml: workloads: there is none, so nothing would be measured (in idle)"
    ]
    (line,) = refusal("scenarios: [ring4]\nworkloads: [{kind: mpi, job: fabric_bensch}]")
    assert line.startswith(
        'mine.yaml: workloads.0.job: there is no MPI job "fabric_bensch". Did you mean "fabric_bench"?'
    )


def test_what_a_job_is_asked_for_is_checked_and_its_lacks_told(monkeypatch):
    def lacking(job):
        raise CapabilityError(f"the MPI job {job.name} does not build")

    monkeypatch.setattr("testbed.engines.lab.hosts.build_mpi_jobs.build_job", lacking)
    text = "scenarios: [ring4, mesh6]\nworkloads: [{kind: mpi, job: fabric_bench}]\n"
    with pytest.raises(CapabilityError, match=r"^the MPI job fabric_bench does not build$"):
        prepared(text)
    assert refusal(text + "set: {workloads.0.ranks: [4, 1]}") == [
        "mine.yaml: set.workloads.0.ranks: should be 2 or more, not 1 (in ring4 ranks=1 and 1 more)"
    ]


def test_a_baseline_and_an_axis_must_be_there():
    assert refusal(
        "scenarios: [ring4, mesh6]\nset: {lab.dilation: [100, 200]}\nbaseline: ring5\n"
        "figures: [{kind: lines, x: lab.dilatation}, {kind: lines, x: links.queue_frames}]"
    ) == [
        'mine.yaml: baseline: no scenario of this sweep is called "ring5". Did you mean "ring4"? Known: ring4, ring4 '
        "dilation=100, ring4 dilation=200, mesh6, mesh6 dilation=100, mesh6 dilation=200",
        'mine.yaml: figures.0.x: "lab.dilatation" is not a key of a scenario whose value is a number. Did you mean '
        '"lab.dilation"?',
    ]
    assert refusal("scenarios: [ring4, mesh6]\nfigures: [{kind: lines, x: topology.switches}]") == [
        'mine.yaml: figures.0.x: "topology.switches" is not a key of a scenario whose value is a number (in mesh6).'
    ]


def test_two_scenarios_of_one_name_are_told_apart_by_the_user():
    Path("other").mkdir()
    Path("other/ring4.yaml").write_text(SCENARIOS["ring4"])
    assert refusal("scenarios: [ring4, other/ring4.yaml]") == [
        'mine.yaml: scenarios: two of them are called "ring4"; give one another name:'
    ]


def test_too_many_runs_are_refused_before_any_is_planned():
    assert refusal("scenarios: [ring4]\nrepeats: 11\nset: {lab.seed: [" + ", ".join(map(str, range(100))) + "]}") == [
        "mine.yaml: set: makes 1,100 runs with scenarios and repeats; up to 1,000 are run"
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "mine.yaml: should be a block of keys such as scenarios: and set:, not nothing"),
        ("[1]", "mine.yaml: should be a block of keys such as scenarios: and set:, not [1]"),
        ("scenarios: [a", "mine.yaml: line 1, column 14: expected ',' or ']'"),
        ("scenarios: ring4", 'mine.yaml: scenarios: should be a list such as [flat16, torus4x4], not "ring4"'),
        ("{}", "mine.yaml: scenarios: should be a list such as [flat16, torus4x4], not nothing"),
        (
            "scenarios: [ring4]\nset: [1]",
            "mine.yaml: set: should be a block such as {lab.dilation: [100, 200]}, not [1]",
        ),
        ("scenarios: [ring4]\nfigures: {}", "mine.yaml: figures: should be a list such as [{kind: bars}], not {}"),
        (
            "scenarios: [ring4]\nfigures: [{kind: bars, name: a}, {kind: bars, name: a}]",
            'mine.yaml: figures: two figures would be called "a"; give them different names',
        ),
        (
            "scenarios: [ring4]\nset: {workloads: [[{kind: ping}]]}",
            "mine.yaml: set.workloads: is a key of its own: write",
        ),
    ],
)
def test_what_is_no_sweep(text, sentence):
    assert refusal(text)[0].startswith(sentence)


def test_a_file_that_is_not_there(here):
    (here / "fig10.yaml").write_text("scenarios: [ring4]")
    with pytest.raises(InputError, match=r'fig11.yaml: no such file. Did you mean "fig10.yaml"\?'):
        prepare(Path("fig11.yaml"))
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        prepare(here)
    (here / "latin.yaml").write_bytes(b"name: \xff")
    with pytest.raises(InputError, match="it is not UTF-8 text"):
        prepare(here / "latin.yaml")


def test_what_the_machine_lacks_is_told_once(monkeypatch):
    monkeypatch.setattr("testbed.experiments.run.open_vswitch.require", probe.require)
    monkeypatch.setattr(probe, "_path", lambda: "/nowhere")
    probe.capabilities.cache_clear()
    try:
        with pytest.raises(CapabilityError) as error:
            prepared("scenarios: [ring4, mesh6]")
    finally:
        probe.capabilities.cache_clear()
    lines = str(error.value).splitlines()
    assert len(lines) == len(set(lines))
    assert any(line.startswith("open vswitch: missing") for line in lines)


def test_a_sweep_with_problems_still_says_which_runs_it_wants():
    sweep, problems = parse_sweep("scenarios: [ring4]\nrepeats: x", Path("mine.yaml"))
    assert sweep is not None
    assert len(sweep.combinations) == 1
    assert [problem.place for problem in problems] == ["mine.yaml: repeats"]


def test_labels_are_a_block_of_texts():
    assert prepared("scenarios: [ring4]\nset: {lab.dilation: [100, 200]}\nlabels: {dilation=100: quick}\n").jobs[
        0
    ].label == ("ring4 quick")
    for wrong in ("[a]", "{a: 1}", "{a: ' '}"):
        (line,) = refusal(f"scenarios: [ring4]\nlabels: {wrong}\n")
        assert line.startswith(
            "mine.yaml: labels: should be a block of what is shown and what shall be, such as {updown:"
        )
