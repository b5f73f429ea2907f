"""`testbed flows`, as it is typed, what it leaves, and what it refuses."""

from __future__ import annotations

import csv
import json

import pytest

from testbed.results import load_run
from tests.json_formats import conforms
from tests.unit.ui.test_cli_surface import typed

DEADLOCK = (
    "ring5-deadlock", "--sizes", "300kB", "--load", "once", "--pattern", "shift:4", "--buffer", "20000",
    "--congestion", "none",
)  # fmt: skip

MANY = ("torus4x4", "--sizes", "2kB", "--load", "0.3", "--duration", "1")
SPRAYED = ("fattree14", "--set", "routing={kind: ecmp}", "--sizes", "10kB", "--load", "once", "--next-hop", "random")


@pytest.fixture
def flows(tmp_path):
    """Exit code, standard output and error of the command, and its results folder."""

    def run(*words):
        code, out, said = typed("flows", *words, "--results", str(tmp_path / "results"))
        folders = list((tmp_path / "results").iterdir()) if (tmp_path / "results").exists() else []
        return code, out, said, folders

    return run


def test_completion_times_are_told_by_size_and_written_down(flows):
    code, out, _, (folder,) = flows("fattree14", "--duration", "20", "--set", "links.rate=10G")
    assert code == 0
    assert "flows of web_search, to hosts drawn at random, load 0.5" in out
    assert "all flows have arrived after" in out
    assert "above 1,000,000 B" in out
    with (folder / "flows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(float(row["slowdown"]) >= 1 for row in rows)
    assert f"{len(rows):,} flows" in out
    assert (folder / "slowdown.svg").read_text().startswith("<?xml")
    run = load_run(folder)
    assert json.loads((folder / "manifest.json").read_text())["verdict"] == "pass"
    assert [one.value for one in run.samples if one.metric == "completion_time"]


def test_flows_as_json_have_their_schema(flows):
    for words in (
        ("fattree14", "--duration", "20"),
        ("fattree14", "--sizes", "10kB", "--load", "once"),
        DEADLOCK,
        SPRAYED,
    ):
        value = conforms("flows", flows(*words, "--json")[1])
        assert value["flows"] > 1


def test_a_deadlock_is_as_declared_or_a_failure(flows, tmp_path):
    code, out, *_ = flows(*DEADLOCK)
    assert code == 0
    assert "deadlock as declared after" in out
    assert "waits for" in out
    other = tmp_path / "ring.yaml"
    other.write_text("topology: {kind: ring, switches: 5, hosts_per_switch: 2}\nrouting: {kind: updown}\n")
    assert flows(str(other), *DEADLOCK[1:])[0] == 0
    assert flows("ring5-deadlock", "--sizes", "10kB", "--load", "once", "--pattern", "shift:2")[0] == 3


def test_everything_wrong_is_said_at_once_and_nothing_made(flows):
    code, _, said, folders = flows(
        "ring4", "--seed", "-1", "--load", "all", "--sizes", "websearch", "--dcqcn", "timr=3", "--flow-control", "none"
    )
    assert code == 2
    assert folders == []
    for sentence in (
        '--load: should be a share such as 0.5, or once, not "all"',
        '--sizes: should be web_search, hadoop, or a size such as 65536 or 2MB, not "websearch". Did you mean "web_',
        "--dcqcn: should be PARAMETER=NUMBER with one of gain",
        "--flow-control: should be pause or pfc",
        "--seed: should be from 0 to 4,294,967,295, not -1",
    ):
        assert sentence in said


def test_percentiles_of_few_flows_are_left_out(flows):
    few, many = (
        json.loads(flows(*words, "--json")[1])["classes"][-1]
        for words in (("torus4x4", "--sizes", "2kB", "--load", "once"), MANY)
    )
    assert (few["flows"], few["slowdown"]["p95"], few["seconds"]["p99"]) == (16, None, None)
    assert few["slowdown"]["p50"] >= 1
    assert many["flows"] >= 100
    assert many["slowdown"]["p99"] >= many["slowdown"]["p95"]


def test_pfc_is_asked_for_where_a_plan_has_layers(flows):
    code, _, said, _ = flows("dl-ud3-irregular16")
    assert code == 2
    assert "use pfc" in said


def test_an_unknown_pattern_is_named(flows):
    code, _, said, _ = flows("ring4", "--pattern", "transposed")
    assert code == 2
    assert 'there is no pattern "transposed"' in said


def test_json_keeps_numbers_of_the_settings(flows):
    value = json.loads(flows("ring4", "--sizes", "2kB", "--load", "once", "--dcqcn", "timer=300", "--json")[1])
    assert value["settings"]["dcqcn"]["timer"] == 300
    assert value["settings"]["load"] is None
    assert value["marked"] == 0
