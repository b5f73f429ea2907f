"""A simulation beside a run of the same plan."""

from __future__ import annotations

import json
import shutil

import pytest
from typer.testing import CliRunner

from testbed.cli import compare_commands, simulate_commands  # noqa: F401 - adds the commands
from testbed.cli.app import app
from testbed.errors import InputError
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


def test_what_has_nothing_in_common_is_told(folders, tmp_path):
    lab, simulated = folders
    cases = [
        (("--pattern", "transpose", "--loads", "0.5"),
         "has no run at load 1 that did not stand still; simulate with --pattern transpose --loads 1"),
        (("--pattern", "neighbour", "--loads", "1"),
         f"sends neighbour and {lab} has no iperf3 load of that pattern that fills the fabric; "
         "simulate with --pattern transpose --loads 1"),
    ]  # fmt: skip
    for words, sentence in cases:
        folder = simulated(*words)["results"]
        with pytest.raises(InputError) as caught:
            called(lab, folder)
        assert str(caught.value) == f"{folder}: {sentence}"
    record = json.loads((lab / "manifest.json").read_text())
    with pytest.raises(
        InputError, match=rf"simulates mine with plan {record['digest']}; give a run of the same plan with"
    ):
        called(folder)
    other = tmp_path / "damaged"
    shutil.copytree(folder, other)
    (other / "simulation.json").write_text('{"schema_version": 1}')
    with pytest.raises(InputError, match="is damaged: it lacks scenario, digest, pattern"):
        called(lab, other)
