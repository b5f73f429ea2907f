"""The tables of IMB-MPI1; the outputs in tests/data/mpi are those of the unmodified binary in a lab."""

import re
from pathlib import Path

import pytest

from testbed.scenario.workloads import mpi_imb
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks

DATA = Path(__file__).parents[2] / "data" / "mpi"
FOUR = Ranks((0, 1, 2, 3))


def output(name="imb"):
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def figures(text, ranks=FOUR):
    return {
        (s.metric, s.labels.get("bytes"), s.labels["statistic"]): s.value for s in mpi_imb.parse(text, ranks).samples
    }


def table(name, text=None):
    """One table of the output."""
    text = output() if text is None else text
    return next(
        part for part in re.split(r"(?=^#-+\n# Benchmarking )", text, flags=re.M) if f"Benchmarking {name} " in part
    )


def row(name, start):
    """The words of the first row of a table that starts like this, without the start."""
    return re.findall(rf"^ +{start} +(.*)$", table(name), re.M)[0].split()


def test_the_figures_are_those_of_the_tables():
    found = figures(output())
    time, _ = row("PingPong", "1024 +5")
    assert found["mpi_latency", "1024", "mean"] == pytest.approx(float(time) * 1e-6)
    assert found["mpi_bandwidth", "1024", "mean"] == pytest.approx(8 * 1024 / float(time) * 1e6)
    least, largest, mean = (float(word) * 1e-6 for word in row("Alltoall", "2048 +5"))
    assert found["mpi_alltoall_time", "2048", "min"] == pytest.approx(least)
    assert found["mpi_alltoall_time", "2048", "mean"] == pytest.approx(mean)
    assert found["mpi_alltoall_time", "2048", "max"] == pytest.approx(largest)
    assert found["mpi_alltoall_bandwidth", "2048", "max time"] == pytest.approx(8 * 2048 * 3 / largest)
    assert found["mpi_barrier_time", None, "max"] == pytest.approx(float(row("Barrier", "5")[1]) * 1e-6)


@pytest.mark.parametrize(("name", "messages"), [("Sendrecv", 2), ("Exchange", 4)])
def test_rates_count_the_messages_that_imb_counts(name, messages):
    found = figures(output())
    *_, printed = row(name, "2048 +5")
    time = found[f"mpi_{name.lower()}_time", "2048", "max"]
    rate = found[f"mpi_{name.lower()}_bandwidth", "2048", "max time"]
    assert rate == pytest.approx(8 * messages * 2048 / time)
    assert rate == pytest.approx(8e6 * float(printed), abs=8e6 * 0.01)


def test_a_table_of_rates_alone_gives_them():
    printed, _ = row("Uniband", "1024 +5")
    assert ("mpi_uniband_bandwidth", "0", "mean") not in figures(output())
    assert figures(output())["mpi_uniband_bandwidth", "1024", "mean"] == pytest.approx(8e6 * float(printed))


def test_imb_does_not_verify_its_data_and_nobody_says_so():
    assert not mpi_imb.parse(output(), FOUR).verified


def test_labels_name_the_ranks():
    samples = mpi_imb.parse(output(), FOUR).samples
    assert {(s.labels["src"], s.labels["dst"]) for s in samples if s.metric == "mpi_latency"} == {("0", "1")}
    assert {s.labels["ranks"] for s in samples if s.metric == "mpi_alltoall_time"} == {"4"}


@pytest.mark.parametrize(
    ("name", "crossing"),
    [
        ("PingPong", 2),
        ("PingPing", 2),
        ("Sendrecv", 4),
        ("Exchange", 8),
        ("Alltoall", 12),
        ("Allreduce", 4),
        ("Bcast", 3),
        ("Reduce", 3),
        ("Barrier", 0),
        ("Uniband", 0),
    ],
)
def test_bytes_between_hosts_are_what_the_benchmark_must_move(name, crossing):
    sizes = 1024 + 2048
    assert mpi_imb.parse(table(name), FOUR).fabric_bytes == crossing * sizes * 5


@pytest.mark.parametrize(
    ("name", "crossing"),
    [
        ("PingPong", 0),
        ("PingPing", 0),
        ("Sendrecv", 2),
        ("Exchange", 4),
        ("Alltoall", 8),
        ("Allreduce", 2),
        ("Bcast", 1),
    ],
)
def test_bytes_between_ranks_of_one_host_do_not_count(name, crossing):
    assert mpi_imb.parse(table(name), Ranks((0, 0, 1, 1))).fabric_bytes == crossing * 3072 * 5


def test_groups_of_a_multi_benchmark_are_read():
    parsed = mpi_imb.parse(table("Multi-PingPing", output("imb_multi")), Ranks((0, 1, 2, 3, 4)))
    assert parsed.fabric_bytes == 4 * 1024 * 5
    sample = next(s for s in parsed.samples if s.metric == "mpi_multi_pingping_time" and s.labels["bytes"] == "1024")
    assert sample.labels["ranks"] == "4"
    beside = mpi_imb.parse(table("Multi-PingPing", output("imb_multi")), Ranks((0, 0, 1, 2, 3)))
    assert beside.fabric_bytes == 2 * 1024 * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The output of IMB has no table."),
        ("# Benchmarking PingPong \n# #processes = 2 \n", "IMB has no figure for PingPong."),
        (
            table("Alltoall").replace("         2048", "         2048 time-out.; #"),
            'IMB has no figure for Alltoall where it says "2048 time-out.; #',
        ),
        (table("Barrier").replace("#repetitions", ""), 'IMB has no figure for Barrier where it says "5 '),
        (output().replace("#processes = 4", "#processes = 5"), "IMB ran Alltoall on more than the 4 ranks there are."),
    ],
)
def test_other_output_is_refused_in_one_sentence(text, message):
    with pytest.raises(JobOutputError, match=re.escape(message)) as caught:
        mpi_imb.parse(text, FOUR)
    assert "\n" not in str(caught.value)
