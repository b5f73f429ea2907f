"""Replays: exact times, bounds, who takes turns, and where matrices come from."""

from __future__ import annotations

import dataclasses
import json
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.base.model import Sample
from testbed.engines.simulate import Network, Settings
from testbed.engines.simulate.replay import Demand, least_clocks, replay
from testbed.engines.simulate.traffic_matrices import FRAME, WIRE
from testbed.experiments.run.checks.telemetry_samples import read_record
from testbed.fabric.routing.paths import switches_on_path
from testbed.results import load_run
from testbed.results.telemetry import file_name, telemetry_to_bytes
from testbed.ui.cli import plan_commands, simulate_commands  # noqa: F401 - a program of one command would take no name
from testbed.ui.cli.app import app
from testbed.ui.cli.output import results
from tests.fabrics import plan_of
from tests.runs import head, run_of, stored, text_of
from tests.unit.engines.test_simulate import CYCLIC, layered_plan
from tests.unit.experiments.test_telemetry import START, TOPOLOGY, record

SETTINGS = Settings(packet=16, buffer=32)
MPI = "mpi_bytes_sent"


def network_of(plan, settings=SETTINGS):
    return Network.from_routes(plan.topology, plan.routes, settings, 1)


def demand_of(hosts, entries, carried=100):
    matrix = np.zeros((hosts, hosts), dtype=np.int64)
    for source, destination, size in entries:
        matrix[source, destination] = size
    return Demand.from_matrix(matrix, carried)


@pytest.mark.parametrize("plan", [
    pytest.param(lambda: plan_of("mesh", sizes=[4, 3], hosts_per_switch=2), id="mesh"),
    pytest.param(lambda: plan_of("torus", {"planes": "dest"}, sizes=[4, 3], parallel_links=2), id="torus"),
    pytest.param(layered_plan, id="layers"),
])  # fmt: skip
@pytest.mark.parametrize(("size", "packets"), [(1, 1), (100, 1), (101, 2), (5000, 50)])
def test_a_pair_alone_takes_its_switches_times_header_and_flits(plan, size, packets):
    plan = plan()
    network = network_of(plan)
    switches = switches_on_path(plan.topology, plan.routes)
    for source, destination in [(0, 1), (0, plan.topology.host_count - 1), (3, 9), (9, 3)]:
        found = replay(network, demand_of(plan.topology.host_count, [(source, destination, size)]))
        assert found is not None
        # One clock on the link from the host; the packet behind is routed, in a clock, when the first has left.
        assert found.clocks == 1 + 3 * switches[source, destination] + packets * 16 - 1 + packets - 1
        assert found.finished.tolist() == [found.clocks]


def test_each_host_takes_turns_from_the_one_behind_it_on():
    plan = plan_of("flat", hosts=4)
    demand = Demand.from_matrix(np.full((4, 4), 300), 100)
    assert list(zip(demand.source.tolist(), demand.destination.tolist(), strict=True)) == [
        (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (1, 0), (2, 3), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2),
    ]  # fmt: skip
    assert demand.packets.tolist() == [3] * 12
    found = replay(network_of(plan), demand)
    assert found is not None
    # Nobody meets anybody: the last packet of each pair is one of the last three of its host.
    assert found.clocks == 3 + 9 * 17 - 1
    assert found.finished.reshape(4, 3).tolist() == [[3 + count * 17 - 1 for count in (7, 8, 9)]] * 4


def test_who_has_less_is_done_sooner():
    demand = demand_of(3, [(0, 1, 100), (0, 2, 400)])
    found = replay(network_of(plan_of("flat", hosts=3)), demand)
    assert found is not None
    assert found.finished.tolist() == [3 + 17 - 1, 3 + 5 * 17 - 1]


@pytest.mark.parametrize("seed", range(12))
def test_all_arrives_no_sooner_than_the_fullest_place_allows(seed):
    plan = plan_of("torus", sizes=[4, 4]) if seed % 2 else layered_plan()
    network, hosts = network_of(plan), plan.topology.host_count
    matrix = np.random.default_rng(seed).integers(0, 4000, (hosts, hosts)) * (seed % 3 + 1)
    demand = Demand.from_matrix(matrix, 100)
    found = replay(network, demand)
    assert found is not None
    least, because = least_clocks(network, demand)
    assert because.startswith(("channel s", "what h"))
    assert least < found.clocks < 6 * least
    assert found.finished.min() > 0
    assert found.finished.max() == found.clocks
    assert int(found.channel_flits.max()) <= least
    assert found.over_time.flits.sum(axis=1).tolist() == found.channel_flits.tolist()
    assert 0 < found.over_time.use.max() <= 1
    again = replay(network, demand)
    assert again is not None
    assert np.array_equal(found.finished, again.finished)


@pytest.mark.slow
def test_a_long_replay_keeps_few_columns():
    demand = demand_of(4, [(0, 2, 400_000), (2, 0, 400_000)], carried=1)
    found = replay(network_of(plan_of("mesh", sizes=[4])), demand)
    assert found is not None
    assert found.clocks > 4096 * 1000
    columns = found.over_time.use.shape[1]
    assert 60 <= columns <= 121
    assert len(found.over_time.clock) == columns + 1
    assert (np.diff(found.over_time.clock) > 0).all()
    assert found.over_time.flits.sum() == found.channel_flits.sum() == 2 * 2 * 400_000 * 16


@pytest.mark.parametrize("number", [1, 3])
def test_a_cyclic_plan_stands_still(number):
    kind, parameters, routing = CYCLIC[number]
    plan = plan_of(kind, {"kind": "dor", **routing}, **parameters)
    hosts = plan.topology.host_count
    found = replay(
        network_of(plan, dataclasses.replace(SETTINGS, buffer=16)),
        Demand.from_matrix(np.full((hosts, hosts), 50_000), 100),
    )
    assert found is not None
    assert len(found.cycle) >= 3


def test_a_replay_that_is_given_up_is_none():
    assert replay(network_of(plan_of("flat", hosts=2)), demand_of(2, [(0, 1, 10)]), lambda done, total: True) is None


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(results, "_width", 200)


@pytest.fixture
def typed(tmp_path):
    def run(*words):
        switches = ("--packet", "16", "--buffer", "32", "--results", str(tmp_path / "results"))
        typed_words = ["simulate", *switches, *map(str, words)]
        found = CliRunner().invoke(app, typed_words, catch_exceptions=False)
        return found.exit_code, found.stdout

    return run


def problems_of(typed, *words):
    with pytest.raises(InputError) as caught:
        typed(*words)
    return [str(problem) for problem in caught.value.problems]


def test_all_to_all_is_told_drawn_and_kept(typed, tmp_path):
    code, text = typed("mesh4x4", "--pattern", "all_to_all", "--message", "2896")
    assert code == 0
    lines = text.splitlines()
    assert lines[0] == "mesh4x4: all to all, messages of 2,896 bytes"
    assert lines[1] == (
        "695,040 bytes of 240 pairs of hosts in 480 packets of up to 1,448 bytes; 16 flits a packet, buffers of 32"
    )
    (folder,) = (tmp_path / "results").iterdir()
    stored = load_run(folder)
    record_ = stored.manifest["replay"]
    assert [stored.manifest["verdict"], *(load["verdict"] for load in stored.manifest["loads"])] == ["pass", "pass"]
    (completion,) = (sample for sample in stored.samples if sample.metric == "completion_time")
    assert (completion.value, completion.predicted) == pytest.approx(
        (record_["seconds"], record_["seconds"] * 512 / record_["clocks"])
    )
    clocks = record_["clocks"]
    assert lines[2].startswith(f"completion time: {clocks:,} cycles, ")
    assert record_["clock_seconds"] == pytest.approx(8 * WIRE / 1e9 / 16)
    assert record_["seconds"] == pytest.approx(clocks * 8 * 1538 / 1e9 / 16)
    assert record_["least_clocks"] == 512  # 16 pairs over a channel in the middle, 2 packets of 16 flits
    assert lines[3].startswith(f"lower bound: 512 cycles, {512 / clocks:.0%} of that, by channel s")
    rows = (folder / "pairs.csv").read_text().splitlines()
    assert rows[0] == "source,destination,bytes,packets,clocks,seconds"
    assert len(rows) == 241
    assert max(int(row.split(",")[4]) for row in rows[1:]) == clocks
    for name in ("channels.svg", "pairs.svg"):
        drawing = (folder / name).read_text()
        assert "var(" not in drawing
        assert ElementTree.fromstring(drawing).tag.endswith("svg")


def test_as_json(typed):
    code, text = typed("mesh4x4", "--pattern", "all_to_all", "--format", "json")
    found = json.loads(text)
    assert (code, found["pairs"], found["bytes"], found["deadlock"]) == (0, 240, 240 * 65536, None)
    assert [file.rsplit("/", 1)[1] for file in found["figures"]] == ["channels.svg", "pairs.svg"]


def test_a_declared_deadlock_is_shown_and_passes(typed, tmp_path):
    (tmp_path / "ring.yaml").write_text(
        "topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}\nexpect: deadlock\n"
    )
    code, text = typed(tmp_path / "ring.yaml", "--pattern", "all_to_all", "--buffer", "16")
    assert code == 0
    (line,) = (line for line in text.splitlines() if line.startswith("deadlock as declared by cycle "))
    assert line.count(" waits for ") == 6
    (folder,) = (tmp_path / "results").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == [
        "environment.json", "manifest.json", "pairs.csv", "plan.json", "samples.csv", "scenario.yaml",
    ]  # fmt: skip


def test_a_small_message_does_not_fill_the_ring_and_ends_with_3(typed, tmp_path):
    (tmp_path / "ring.yaml").write_text(
        "topology: {kind: ring, switches: 6}\nrouting: {ring: shortest}\nexpect: deadlock\n"
    )
    (tmp_path / "one.csv").write_text("source,destination,bytes\nh1,h3,5000\n")
    assert typed(tmp_path / "ring.yaml", "--matrix", tmp_path / "one.csv")[0] == 3


def test_a_matrix_from_a_file(typed, tmp_path):
    (tmp_path / "mine.csv").write_text("source,destination,bytes\nh1,h2,1448\n\nh2,h16,1449\n")
    code, text = typed("mesh4x4", "--matrix", tmp_path / "mine.csv")
    assert code == 0
    assert "2,897 bytes of 2 pairs of hosts in 3 packets" in text


WRONG = """source,destination,bytes
h1,h2,100
h1,h2,100
h17,h2,100
H3,h3,many
h4,h4,7
h5,h6,0
h7,h8
"""


def test_all_that_is_wrong_with_a_file_comes_at_once(typed, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(WRONG)
    assert problems_of(typed, "mesh4x4", "--matrix", file) == [
        f"{file}:3: h1 to h2 is listed twice; add the two up",
        f'{file}:4: there is no host "h17" among h1 to h16. Did you mean "h7"?',
        f'{file}:5: there is no host "H3" among h1 to h16. Did you mean "h3"?',
        f'{file}:5: bytes should be a whole number above 0 and below 2^50, not "many"',
        f"{file}:6: h4 sends to itself; take the line away",
        f'{file}:7: bytes should be a whole number above 0 and below 2^50, not "0"',
        f"{file}:8: should have 3 columns, not 2",
    ]
    file.write_text("source,destination,bytes\n" + "h1,h1,1\n" * 13)
    assert problems_of(typed, "mesh4x4", "--matrix", file)[10:] == [f"{file}: 3 more lines are wrong"]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("m.csv", "from,to,bytes\n", 'm.csv:1: should begin with the line "source,destination,bytes", not "from,to,bytes"'),
    ("m.csv", "", 'm.csv:1: should begin with the line "source,destination,bytes", not ""'),
    ("m.csv", "source,destination,bytes\n", "m.csv: has no line with bytes, so nothing is sent"),
    ("m.csv", b"\xff\xfe", "m.csv: is no text: "),
    ("m.csv", None, "m.csv: cannot be read: No such file or directory"),
    ("m.txt", "", "should be FILE.csv with the columns source, destination, bytes, or telemetry-<load>.npz of a "),
    ("telemetry-1.npz", None, "--matrix: there is no file "),
    ("telemetry-1.npz", "no archive", "telemetry-1.npz: is damaged: "),
])  # fmt: skip
def test_files_that_are_no_matrix(typed, tmp_path, name, content, sentence):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (problem,) = problems_of(typed, "mesh4x4", "--matrix", tmp_path / name)
    assert sentence in problem


@pytest.mark.slow
@pytest.mark.parametrize(("words", "expected"), [
    (("--pattern", "all_to_all", "--matrix", "m.csv"),
     ["--matrix: says what is sent, and so does --pattern all_to_all; give one of them"]),
    (("--matrix", "m.csv", "--trace", "results/x"),
     ["--trace: says what is sent, and so does --matrix; give one of them"]),
    (("--pattern", "uniform", "--trace", "results/x"),
     ["--trace: says what is sent, and so does --pattern uniform; give one of them"]),
    (("--message", "10"), ["--message: is a size for --pattern all_to_all or a collective, which is not asked for"]),
    (("--pattern", "all_to_all", "--message", "0"), ["--message: should be from 1 to 2^40 bytes, not 0"]),
    (("--trace-load", "1"), ["--trace-load: is a load of the run that --trace names, which is not given"]),
    (("--pattern", "all_to_all", "--loads", "0.1", "--clocks", "100", "--resume"), [
        f"--{name}: has no effect on a replay, which ends when everything has arrived; leave it out"
        for name in ("loads", "cycles", "resume")
    ]),
    (("--pattern", "all_to_all", "--header", "1"), ["--header: should be from 3 to 1,000, not 1"]),
])  # fmt: skip
def test_options_that_do_not_go_together(typed, tmp_path, words, expected):
    assert problems_of(typed, "mesh4x4", *words) == expected
    assert not (tmp_path / "results").exists()


def test_one_host_has_nobody_to_send_to(typed, tmp_path):
    (tmp_path / "one.yaml").write_text("topology: {kind: flat, hosts: 1}")
    expected = ["--pattern: all_to_all needs two hosts or more and this topology has one"]
    assert problems_of(typed, tmp_path / "one.yaml", "--pattern", "all_to_all") == expected


def test_too_many_pairs_are_refused_with_their_number(typed, tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.engines.simulate.run_replay.MAX_PAIRS", 100)
    assert problems_of(typed, "mesh4x4", "--pattern", "all_to_all") == [
        "all to all, messages of 65,536 bytes: has 240 pairs of hosts and a replay takes 100; "
        "take a fabric with fewer hosts"
    ]
    assert not (tmp_path / "results").exists()


def mpi_sample(source, destination, size, load=1):
    return Sample(MPI, float(size), "B", {"load": str(load), "src": source, "dst": destination})


def test_what_ranks_sent_is_replayed_on_another_fabric(typed, tmp_path):
    text = text_of("{kind: flat, hosts: 4}", "{kind: mpi, job: fabric_bench}")
    samples = [mpi_sample("h1", "h2", 14480), mpi_sample("h3", "h1", 1)]
    folder = stored(tmp_path / "runs", run_of(text, samples, [head(1, "mpi fabric_bench")], name="flat4"))
    (tmp_path / "ring.yaml").write_text("topology: {kind: ring, switches: 4}")
    code, found = typed(tmp_path / "ring.yaml", "--trace", folder)
    assert code == 0
    assert f"ring: {folder}, load 1: what ranks sent each other" in found
    assert "14,481 bytes of 2 pairs of hosts in 11 packets" in found
    assert problems_of(typed, "mesh4x4", "--trace", folder) == [
        "--trace: was recorded on 4 hosts and this fabric has 16; take one with as many"
    ]
    assert problems_of(typed, tmp_path / "ring.yaml", "--trace", folder, "--trace-load", "2") == [
        f'--trace-load: there is no load "2" with a matrix in {folder}; there are: 1 (mpi fabric_bench)'
    ]


@pytest.mark.slow
def test_the_matrix_of_the_telemetry_is_replayed(typed, tmp_path):
    text = text_of("{kind: ring, switches: 3}", "{kind: iperf3, protocol: udp}")
    loads = [head(1), head(2, "iperf3 udp neighbour"), head(3, "ping neighbour")]
    folder = stored(tmp_path / "runs", run_of(text, [], loads, name="ring3"))
    (tmp_path / "ring.yaml").write_text("topology: {kind: ring, switches: 3}")
    assert problems_of(typed, tmp_path / "ring.yaml", "--trace", folder) == [
        f"{folder}: has no load with a traffic matrix; run it with lab.telemetry on a machine that can count pairs of "
        "hosts, or an MPI job with trace: true"
    ]
    content = telemetry_to_bytes(read_record(TOPOLOGY, record(), START, None))
    (folder / file_name("1")).write_bytes(telemetry_to_bytes(read_record(TOPOLOGY, record(pairs=False), START, None)))
    (folder / file_name("2")).write_bytes(content)
    code, found = typed(tmp_path / "ring.yaml", "--trace", folder)
    assert code == 0
    assert f"load 2: frames of its first repeat\n24 bytes of 6 pairs of hosts in 6 packets of up to {FRAME:,}" in found
    assert (
        typed(tmp_path / "ring.yaml", "--matrix", folder / file_name("2"))[1].splitlines()[1] == found.splitlines()[1]
    )
    (folder / file_name("1")).write_bytes(content)
    assert problems_of(typed, tmp_path / "ring.yaml", "--trace", folder) == [
        "--trace-load: is required, as several loads have a matrix: 1 (iperf3 udp transpose), 2 (iperf3 udp neighbour)"
    ]
    assert typed(tmp_path / "ring.yaml", "--trace", folder, "--trace-load", "1")[0] == 0
