import io
import math
from pathlib import Path

import pytest
from rich.console import Console

from testbed.base.model import Sample
from testbed.base.units import bytes_text, gap_text, scale_for
from testbed.experiments.report import result_rows, rich_table
from testbed.experiments.report.run_facts import clock_sentence
from testbed.planning import make_plan
from testbed.results import Run
from testbed.results.read_run import Attempt, load_heads
from testbed.scenario import parse_scenario


def sample(value, predicted=None, metric="goodput", unit="bit/s", **labels):
    return Sample(metric, value, unit, {"load": "1", **labels}, predicted)


def printed(run, width=120):
    text = io.StringIO()
    Console(file=text, width=width).print(rich_table(run))
    return text.getvalue()


def test_row_of_a_metric():
    (row,) = result_rows([sample(90.0, 100.0), sample(104.0, 100.0), sample(100.0, 80.0), sample(96.0)])
    assert (row.load, row.metric, row.unit, row.count) == ("1", "goodput", "bit/s", 4)
    assert (row.median, row.minimum, row.maximum, row.predicted) == (98.0, 90.0, 104.0, 100.0)
    assert row.mean_gap == pytest.approx((-0.10 + 0.04 + 0.25) / 3)
    assert row.worst_gap == pytest.approx(0.25)


def test_worst_gap_may_be_below():
    (row,) = result_rows([sample(90.0, 100.0), sample(104.0, 100.0)])
    assert row.worst_gap == pytest.approx(-0.10)


def test_no_prediction_no_gap():
    (row,) = result_rows([sample(1.0)])
    assert (row.predicted, row.mean_gap, row.worst_gap) == (None, None, None)


def test_prediction_of_zero_has_no_gap():
    (row,) = result_rows([sample(1.0, 0.0)])
    assert (row.predicted, row.mean_gap) == (0.0, None)


def test_almost_unused_links_have_no_gap():
    rows = result_rows([sample(use, use / 2, "link_use", "ratio") for use in (0.01, 0.8)])
    assert rows[0].mean_gap == pytest.approx(1.0)
    assert result_rows([sample(0.01, 0.005, "link_use", "ratio")])[0].mean_gap is None


def test_values_that_are_no_numbers_are_left_out():
    rows = result_rows([sample(math.nan), sample(math.inf), sample(2.0, math.nan)])
    assert [(row.count, row.median, row.predicted) for row in rows] == [(1, 2.0, None)]
    assert result_rows([sample(math.nan)]) == []


def test_order_of_rows():
    samples = [
        Sample("new_metric", 1.0, "", {"load": "2"}),
        Sample("cpu_idle", 1.0, "ratio", {"load": "2"}),
        Sample("mpi_latency", 1.0, "s", {"load": "2", "bytes": "1024"}),
        Sample("mpi_latency", 1.0, "s", {"load": "2", "bytes": "64"}),
        Sample("goodput", 1.0, "bit/s", {"load": "1"}),
    ]
    assert [(row.load, row.name) for row in result_rows(samples)] == [
        ("2", "MPI latency, 64 B"),
        ("2", "MPI latency, 1 KiB"),
        ("2", "CPU idle"),
        ("2", "new metric"),
        ("1", "Goodput"),
    ]


@pytest.mark.parametrize(
    ("unit", "size", "value", "text"),
    [
        ("bit/s", 9e8, 941.49e6, "941.5 Mbit/s"),
        ("bit/s", 2e9, 2e9, "2 Gbit/s"),
        ("s", 2e-4, 1.5e-4, "150 µs"),
        ("s", 2e-4, 5e-3, "5,000 µs"),
        ("s", 0.0, 0.0, "0 ms"),
        ("ratio", 0.5, 0.0125, "1.25 %"),
        ("ratio", 0.5, -0.5, "−50 %"),
        ("count", 5, 12345, "12,345"),
        ("", 5, 1e-7, "1.000e−07"),
    ],
)
def test_quantities(unit, size, value, text):
    scale = scale_for(unit, size)
    assert f"{scale.text(value)} {scale.name}".rstrip() == text


def test_gaps_and_sizes():
    assert [gap_text(gap) for gap in (None, 0.0, -0.0123, 0.304)] == ["", "+0.0 %", "−1.2 %", "+30 %"]
    assert [bytes_text(size) for size in (1, 1000, 1024, 65536, 1 << 20, 20000)] == [
        "1 B", "1,000 B", "1 KiB", "64 KiB", "1 MiB", "20,000 B",
    ]  # fmt: skip


def test_bounds_are_marked_as_bounds():
    (row,) = result_rows([sample(3e-3, 2e-3, "mpi_alltoall_time", "s", bytes="20000")])
    assert row.predicted_text == "≥ 2"


def test_terminal_table_of_samples():
    lines = printed([sample(941.5e6, 950e6), sample(0.25, None, "cpu_idle", "ratio")]).splitlines()
    assert lines[0].split() == ["n", "median", "min", "max", "unit", "predicted", "gap", "worst"]
    assert lines[2].split() == ["Goodput", "1", "941.5", "941.5", "941.5", "Mbit/s", "950", "−0.9", "%", "−0.9", "%"]
    assert lines[3].split() == ["CPU", "idle", "1", "25", "25", "25", "%"]


def test_a_terminal_table_without_predictions_has_no_column():
    assert "predicted" not in printed([sample(1.0)])


def test_terminal_table_of_a_run_names_its_loads():
    plan = make_plan(parse_scenario("topology: {kind: ring, switches: 4}", "ring.yaml"))
    loads = [
        {"load": "1", "title": "iperf3 [udp]", "verdict": "invalid", "reasons": ["busy"]},
        {"load": "2", "title": "ping", "verdict": "fail", "reasons": []},
    ]
    text = printed(Run(Path("none"), {"loads": loads}, {}, plan, (sample(1e6),)))
    assert "1  iperf3 [udp]  invalid" in text
    assert "2  ping  fail" in text


RAN_AGAIN = {
    "load": "1", "title": "iperf3", "verdict": "pass", "dilation": 500.0,
    "attempts": [{"dilation": 200.0, "verdict": "invalid", "reasons": ["busy", "slow"]}, "damaged", {}],
}  # fmt: skip


def test_terminal_table_of_a_load_that_ran_again_says_so():
    plan = make_plan(parse_scenario("topology: {kind: ring, switches: 4}", "ring.yaml"))
    manifest = {"dilation": 200.0, "loads": [RAN_AGAIN, {"load": "2", "title": "ping", "dilation": 200.0}]}
    run = Run(Path("none"), manifest, {}, plan, (sample(1e6),))
    assert "1  iperf3  pass  at dilation 500; invalid at 200" in printed(run)
    assert run.dilations == (200, 500)
    again, other = load_heads(manifest, [])
    assert again.attempts == (Attempt(200.0, "invalid", ("busy", "slow")),)
    assert (again.dilation, other.dilation, other.attempts) == (500, 200, ())


def test_terminal_table_fits_a_narrow_terminal():
    text = printed([sample(3e-3, 2e-3, "mpi_alltoall_time", "s", bytes="20000")], width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "−" in text or "+50 %" in text


def test_terminal_table_of_nothing():
    assert printed([]).split() == ["n", "median", "min", "max", "unit"]


def test_loads_only_samples_name_follow_those_of_the_manifest():
    heads = load_heads({"loads": [{"load": 2, "kind": "ping"}, "damaged"]}, ["2", "", "7", "7"])
    assert [(head.label, head.title, head.verdict) for head in heads] == [
        ("2", "ping", ""), ("", "whole run", ""), ("7", "load", ""),
    ]  # fmt: skip
    assert load_heads({"loads": None}, []) == []


def test_clocks_of_several_machines_are_told():
    one, other = load_heads({"loads": [{"load": 1, "clock_error": 0.00216}, {"load": 2}]}, [])
    assert (one.clock_error, other.clock_error) == (0.00216, None)
    assert clock_sentence(0.00216).startswith("The clocks of the machines are known to ±2.16 ms of laboratory time:")


def test_in_eighty_columns_no_name_is_cut_or_wrapped():
    samples = [
        sample(5.92e7, metric=metric, unit="B", load="4", kind="mpi")
        for metric in ("mpi_bytes_moved", "mpi_bytes_crossed")
    ] + [sample(1.0, 1.0, metric="mpi_alltoall_time", unit="s", load="4", kind="mpi", bytes="20000")]
    out = io.StringIO()
    Console(file=out, width=80).print(rich_table(samples, 80))
    lines = out.getvalue().rstrip().splitlines()
    assert all(len(line) <= 80 and "…" not in line for line in lines)
    assert len(lines) == 2 + 3
    assert any(line.startswith("  MPI all-to-all time, 20,000 B ") for line in lines)
    assert any(line.startswith("  Bytes that crossed the fabric ") for line in lines)
