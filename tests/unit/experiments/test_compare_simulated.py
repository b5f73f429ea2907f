"""A simulation beside a run of the same plan."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.ui.cli import compare_commands, simulate_commands  # noqa: F401 - adds the commands
from testbed.ui.cli.app import app
from tests.runs import UDP, goodput, head, run_of, stored, text_of

QUICK = ("--clocks", "12000", "--warm-up", "2000", "--packet", "16", "--buffer", "32")
PACKETS = ("--level", "packet", "--flow-control", "pause", "--duration", "12", "--warm-up", "2")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A run in a lab and a simulation of its plan."""
    root = tmp_path_factory.mktemp("both")
    text = text_of("{kind: mesh, sizes: [4, 4]}", UDP)
    lab = stored(root / "runs", run_of(text, goodput(4e8), [head()], name="mine"))
    (root / "mine.yaml").write_text(text)

    def simulated(*words, level=QUICK):
        arguments = [
            "simulate",
            str(root / "mine.yaml"),
            *level,
            *words,
            "--format",
            "json",
            "--results",
            str(root / "s"),
        ]
        done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        return json.loads(done.stdout)

    return lab, simulated


def called(*words):
    return CliRunner().invoke(app, ["compare", *map(str, words), "--format", "json"], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.parametrize("level", [QUICK, PACKETS], ids=["flits", "packets"])
def test_goodput_and_link_use_of_both_stand_side_by_side(folders, level):
    lab, simulated = folders
    found = simulated("--pattern", "transpose", "--loads", "0.5,1", "--seeds", "2", level=level)
    done = called(lab, found["results"], "--metric", "goodput")
    rows = {row["scenario"]: row for row in json.loads(done.stdout)["rows"]}
    assert list(rows) == ["mine", "mine (simulated)"]
    accepted = next(row["accepted"]["mean"] for row in found["loads"] if row["load"] == 1)
    # A frame of 1,470 bytes of UDP payload takes 1,536 bytes on the wire.
    assert rows["mine (simulated)"]["median"] == pytest.approx(accepted * 1e9 * 1470 / 1536, rel=0.01)
    assert rows["mine"]["median"] == pytest.approx(4e8)
    # There is no lab whose dilation could differ.
    assert not any("Dilations differ" in note for note in json.loads(done.stdout)["notes"])


@pytest.mark.slow
def test_what_has_nothing_in_common_is_told(folders):
    lab, simulated = folders
    for words in (("--pattern", "transpose", "--loads", "0.5"), ("--pattern", "neighbour", "--loads", "1")):
        with pytest.raises(InputError) as caught:
            called(lab, simulated(*words)["results"])
        assert str(caught.value) == (
            "these runs cannot be compared, no load is common to two of them: mine has iperf3 udp transpose; "
            f"mine (simulated) has simulated {words[1]}. A simulation has those iperf3 loads of its scenario whose "
            "pattern it sends at rate 1: testbed simulate --pattern PATTERN --loads 1"
        )


@pytest.mark.slow
def test_simulations_are_compared_like_runs_and_over_the_rate(folders, tmp_path):
    _, simulated = folders
    one = simulated("--pattern", "uniform", "--loads", "0.1,0.3")["results"]
    other = simulated("--pattern", "uniform", "--loads", "0.1,0.3", "--packet", "8")["results"]
    found = json.loads(called(one, other, "--each", "--x", "injection_rate", "--metric", "latency_mean").stdout)
    assert {row["x"] for row in found["rows"]} == {0.1, 0.3}
    assert {row["scenario"] for row in found["rows"]} == {Path(one).name, Path(other).name}
    means = {(row["scenario"], row["x"]): row["median"] for row in found["rows"]}
    assert means[Path(one).name, 0.1] < means[Path(one).name, 0.3]
    assert means[Path(other).name, 0.1] < means[Path(one).name, 0.1]  # shorter packets


OLD = Path(__file__).parents[2] / "data" / "old_simulation"


def test_a_simulation_without_a_plan_is_read_beside_its_run(tmp_path):
    text = text_of("{kind: mesh, sizes: [2, 2]}", UDP)
    lab = stored(tmp_path / "runs", run_of(text, goodput(4e8), [head()], name="mine"))
    rows = {row["scenario"]: row for row in json.loads(called(lab, OLD, "--metric", "goodput").stdout)["rows"]}
    accepted = [json.loads(file.read_text())["accepted"] for file in (OLD / "points").iterdir()]
    assert rows["mine (simulated)"]["median"] == pytest.approx(sum(accepted) / 2 * 1e9 * 1470 / 1536)
    with pytest.raises(
        InputError, match="simulates mine with plan ca2dfdf8cdeb421a, which it does not hold; give a run"
    ):
        called(OLD, stored(tmp_path, run_of(text_of("{kind: flat, hosts: 4}", UDP), goodput(4e8), [head()])))
    other = tmp_path / "damaged"
    shutil.copytree(OLD, other)
    (other / "points.csv").unlink()
    with pytest.raises(InputError, match="is of a simulation that did not end; go on with `testbed simulate --resume`"):
        called(lab, other)
    (other / "simulation.json").write_text('{"schema_version": 1}')
    with pytest.raises(InputError, match="is damaged: it lacks scenario, digest, pattern"):
        called(lab, other)
