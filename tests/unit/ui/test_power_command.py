"""`testbed power` as it is typed: watts, traffic of patterns and of runs, and what is wrong with the input."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.base.model import Longs, Sample
from testbed.experiments.regulate.choose_links import choose_links, plan_without
from testbed.experiments.regulate.traffic import of_pattern
from testbed.results.telemetry import Telemetry, telemetry_to_bytes
from testbed.ui.cli import plan_commands, power_command
from testbed.ui.cli.app import app
from testbed.ui.cli.output import results
from tests.fabrics import plan_of
from tests.runs import head, run_of, stored

FOUR = "{kind: torus, sizes: [2, 2], parallel_links: 2}"


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setattr(results, "_width", 200)


@pytest.fixture
def four(tmp_path):
    file = tmp_path / "four.yaml"
    file.write_text(f"topology: {FOUR}\n")
    return str(file)


def typed(*words):
    """Exit code and what is printed on standard output."""
    found = CliRunner().invoke(app, ["power", *words], catch_exceptions=False)
    return found.exit_code, found.stdout


def problems_of(*words):
    with pytest.raises(InputError) as caught:
        typed(*words)
    return [str(problem) for problem in caught.value.problems]


def sent(load: int, source: str, destination: str, size: float) -> Sample:
    return Sample("mpi_bytes_sent", size, "B", {"load": str(load), "src": source, "dst": destination})


def traced(tmp_path: Path, topology: str = FOUR) -> Path:
    """A result folder of an MPI load that sent from h1 to h2, and one that was not recorded."""
    samples = [sent(1, "h1", "h2", 900.0), sent(1, "h3", "h4", 100.0)]
    loads = [head(1, "npb MG S"), head(2, "ping complement")]
    run = run_of(
        f"topology: {topology}\nlab: {{dilation: 200}}\nworkloads: [{{kind: ping, pattern: neighbour}}]\n",
        samples,
        loads,
    )
    return stored(tmp_path / "results", run)


def recording(hosts: list[str], traffic: Longs) -> bytes:
    """Telemetry of a load that nothing but the traffic matrix is known of."""
    count, whole = len(hosts), np.zeros((1, 0), dtype=np.int64)
    series = (
        "sent_bytes", "sent_frames", "received_bytes", "received_frames", "port_drops", "queue_drops", "queue_frames",
        "queue_bytes",
    )  # fmt: skip
    return telemetry_to_bytes(
        Telemetry(
            ports=np.array([], dtype="U1"), hosts=np.array(hosts), port_rate=np.zeros(0),
            port_channel=np.zeros(0, np.int32), port_host=np.zeros(0, np.int32), window=np.zeros((1, 2)),
            repeat=np.zeros(1, np.int32), time=np.zeros(1), processors=np.zeros((1, 3), np.int64),
            coarse_repeat=np.zeros(1, np.int32), coarse_time=np.zeros(1),
            host_sent_bytes=np.zeros((1, count), np.int64), host_queue_drops=np.zeros((1, count), np.int64),
            host_queue_frames=np.zeros((1, count), np.int64), traffic_bytes=traffic[None],
            traffic_frames=traffic[None], departures=np.zeros((0, 4), np.int64), looks=np.zeros((0, 4), np.int64),
            **dict.fromkeys(series, whole),
        )
    )  # fmt: skip


def test_watts_before_and_after_of_each_model(four):
    code, text = typed(four, "--pattern", "neighbour")
    assert code == 0
    lines = [line.split() for line in text.splitlines()]
    # Four pairs of neighbours with two links each; one of each does. 4·(15 + 5·1.2) W, then two ports less a switch.
    assert lines[1] == ["neighbour", "PC5324", "4", "0", "84.0", "74.4", "11.4", "%"]
    assert [line[0] for line in lines[2:5]] == ["PC6224", "PC6248", "SF-420"]
    assert lines[5][:2] == ["neighbour,", "off:"]
    assert len(lines[5]) == 2 + 4


def test_the_switch_model_is_the_scenarios_unless_asked(four):
    _, text = typed(four, "--set", "switch_model=SF-420", "--format", "json")
    (power,) = json.loads(text)["traffic"][0]["power"]
    assert (power["model"], power["watts_before"]) == ("SF-420", pytest.approx(4 * (32.6 + 5)))
    _, text = typed(four, "--set", "switch_model=SF-420", "--model", "PC6248")
    assert "PC6248" in text
    assert "SF-420" not in text
    assert "s1 s2 s3 s4" in text.splitlines()[-1]


def test_traffic_of_a_run_is_what_mpi_sent_or_what_was_counted(four, tmp_path):
    folder = traced(tmp_path)
    counted = np.zeros((4, 4), dtype=np.int64)
    counted[2, 0] = 7
    (folder / "telemetry-2.npz").write_bytes(recording(["h1", "h2", "h3", "h4"], counted))
    found = json.loads(typed(four, "--matrix", str(folder), "--format", "json")[1])["traffic"]
    assert [one["name"] for one in found] == ["npb MG S", "ping complement"]
    assert [one["fullest_before"] for one in found] == [900.0, 7.0]
    assert found[0]["source"].startswith("bytes that MPI sent, ")
    found = json.loads(typed(four, "--matrix", str(folder / "telemetry-2.npz"), "--format", "json")[1])["traffic"]
    assert [(one["name"], one["fullest_before"]) for one in found] == [("load 2", 7.0)]


def test_all_that_is_wrong_comes_at_once(four, tmp_path):
    folder = traced(tmp_path, "{kind: mesh, sizes: [3, 2]}")
    empty = stored(tmp_path / "results", run_of("topology: {kind: ring, switches: 4}\nlab: {dilation: 9}\n", []))
    found = problems_of(
        four, "--pattern", "neighbor", "--pattern", "transpose", "--matrix", str(folder), "--matrix", str(empty),
        "--matrix", str(tmp_path / "telemetry-1.npz"), "--matrix", str(tmp_path / "matrix.csv"),
        "--model", "PC5342", "--output", "x.gif",
    )  # fmt: skip
    assert found[0].startswith('--pattern: there is no pattern "neighbor". Did you mean "neighbour"? Known: neighbour,')
    assert found[1:] == [
        f"--matrix {folder}: is a matrix of 6 hosts (h1, h2, h3, h4, …) and this fabric has 4 hosts (h1, h2, h3, h4); "
        "use one that was recorded with these hosts",
        f"--matrix {empty}: has no traffic matrix: no load was recorded. iperf3 and MPI loads are, unless "
        "lab.telemetry is false or the kernel cannot count pairs of hosts; MPI loads with trace: true always",
        f"--matrix {tmp_path / 'telemetry-1.npz'}: is not a file",
        f"--matrix {tmp_path / 'matrix.csv'}: should be a result folder, or a file telemetry-<load>.npz of one",
        '--output: should be a file that ends in .svg, .pdf or .png, not "x.gif"',
        '--model: there is no switch model "PC5342". Did you mean "PC5324"? Known: PC5324, PC6224, PC6248, SF-420',
    ]


@pytest.mark.slow
def test_models_with_too_few_ports_are_left_out_or_refused(tmp_path):
    file = tmp_path / "wide.yaml"
    file.write_text("topology: {kind: complete, switches: 3, hosts_per_switch: 30}\nrouting: {kind: updown}\n")
    assert [line.split()[1] for line in typed(str(file))[1].splitlines()[1:2]] == ["PC6248"]
    (found,) = problems_of(str(file), "--model", "PC5324")
    assert found == "--model: s1 needs 32 ports and a PC5324 has 24; PC6248 would do"
    file.write_text("topology: {kind: complete, switches: 3, hosts_per_switch: 60}\n")
    (found,) = problems_of(str(file))
    assert found == f"{file}: a switch needs 62 ports and no known model has so many"


def test_a_routing_that_needs_all_links_is_told_with_the_file(tmp_path):
    file = tmp_path / "single.yaml"
    file.write_text("topology: {kind: torus, sizes: [4, 4]}\n")
    (found,) = problems_of(str(file))
    assert found.startswith(f'{file}: routing.kind: "dor" needs a whole torus and here link s1–s2 is dead')


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["svg", "PNG"])
def test_the_fabric_is_drawn(four, tmp_path, suffix):
    file = tmp_path / f"power.{suffix}"
    code, text = typed(four, "--pattern", "neighbour", "--pattern", "complement", "--output", str(file))
    assert (code, f"plot: {file}" in text) == (0, True)
    if suffix == "svg":
        drawn = "".join(ElementTree.fromstring(file.read_text()).itertext())
        assert "4 of 8 links off: neighbour" in drawn
        assert "complement" in drawn
        assert "PC6248" in drawn
    else:
        assert file.read_bytes().startswith(b"\x89PNG\r\n")
    (found,) = problems_of(four, "--output", str(tmp_path / "no" / file.name))
    assert found == f"{tmp_path / 'no' / file.name}: cannot be written: No such file or directory"


def test_a_choice_is_a_proved_plan_whose_paths_avoid_what_is_off():
    plan = plan_of("torus", sizes=[4, 4], parallel_links=3)
    choice = choose_links(plan, of_pattern("transpose", plan.topology, 1))
    assert choice.plan.is_proved
    assert choice.plan.digest != plan.digest
    assert not choice.plan.vlans.tagged_links[:, list(choice.off_links)].any()
    assert not set(choice.plan.vlans.vlan_ids.tolist()) & set(plan.vlans.vlan_ids.tolist())
    assert len(choice.names) == len(choice.off_links) == 64


def test_links_without_which_switches_are_apart_are_refused():
    plan = plan_of("mesh", {"kind": "updown"}, sizes=[3])
    with pytest.raises(InputError, match="without s1–s2 some switches have no path to others"):
        plan_without(plan, np.array([True, False]))


def test_help_has_an_example():
    text = CliRunner().invoke(app, ["power", "--help"]).stdout
    assert "testbed power torus4x4-3links" in " ".join(text.split())
    assert {power_command.power, plan_commands.plan} <= {command.callback for command in app.registered_commands}
