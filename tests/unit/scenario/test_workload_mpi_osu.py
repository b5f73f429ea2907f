"""Tables in OSU's form: of the job in mpi_jobs/osu in a lab, and of mpi4py's demonstrations."""

import re
from pathlib import Path

import pytest

from testbed.scenario.workloads import mpi_osu
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks

DATA = Path(__file__).parents[2] / "data" / "mpi"
FOUR = Ranks((0, 1, 2, 3))
LATENCY = "# OSU MPI Latency Test v7.4\n# Size          Latency (us)\n1      2.50\n"


def output(name="osu"):
    return (DATA / f"{name}.txt").read_text(encoding="utf-8")


def test_the_figures_are_those_of_the_tables():
    parsed = mpi_osu.parse(output(), FOUR)
    found = {(s.metric, s.labels["bytes"], s.labels["statistic"]): s for s in parsed.samples}
    assert parsed.verified
    latency = found["mpi_latency", "1024", "mean"]
    assert latency.value == pytest.approx(254.977333e-6)
    assert latency.labels == {"src": "0", "dst": "3", "bytes": "1024", "statistic": "mean"}
    assert found["mpi_stream_bandwidth", "1024", "mean"].value == pytest.approx(8 * 1.963507e6)
    assert found["mpi_bidirectional_bandwidth", "1024", "mean"].value == pytest.approx(8 * 3.132058e6)
    assert found["mpi_alltoall_time", "1024", "mean"].value == pytest.approx(2871.664833e-6)
    assert found["mpi_alltoall_time", "1024", "min"].value == pytest.approx(2152.574333e-6)
    assert found["mpi_alltoall_time", "1024", "max"].value == pytest.approx(3590.894e-6)
    assert found["mpi_alltoall_bandwidth", "1024", "max time"].value == pytest.approx(8 * 1024 * 3 / 3590.894e-6)


def test_bytes_between_hosts_follow_from_sizes_and_window():
    sizes = (1 + 1024) * 3
    assert mpi_osu.parse(output(), FOUR).fabric_bytes == sizes * (2 + 16 + 32 + 12)
    # The pair is 0 and 3.
    assert mpi_osu.parse(output(), Ranks((0, 1, 1, 0))).fabric_bytes == sizes * 8
    assert mpi_osu.parse(output(), Ranks((0, 0, 0, 1))).fabric_bytes == sizes * (2 + 16 + 32 + 6)


def test_tables_of_others_are_read_with_an_iteration_at_least():
    parsed = mpi_osu.parse(output("osu_demo"), Ranks((0, 1)))
    found = {(s.metric, s.labels["bytes"]): s.value for s in parsed.samples if s.unit == "s"}
    assert found["mpi_latency", "4"] == pytest.approx(1.59e-6)
    assert found["mpi_alltoall_time", "4"] == pytest.approx(760.21e-6)
    assert parsed.fabric_bytes == 2 * (1 + 2 + 4) + 2 * (1 + 2 + 4)
    assert not parsed.verified


def test_the_table_of_another_version_is_read():
    (sample,) = mpi_osu.parse(LATENCY, FOUR).samples
    assert (sample.metric, sample.labels["dst"]) == ("mpi_latency", "1")
    assert sample.value == pytest.approx(2.5e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The output has no table of an OSU test."),
        ("hello", "The output has no table of an OSU test."),
        (LATENCY.replace("1      2.50\n", ""), 'The output has no figure for "Latency".'),
        (LATENCY.replace("2.50", "fast"), 'The output of "Latency" has a line that is not known: "1      fast".'),
        (LATENCY + "5 6 7\n", 'has a line that is not known: "5 6 7".'),
        (LATENCY.replace("Latency Test", "Bcast Latency Test"), 'has a test that is not known: "Bcast Latency".'),
        # As mpi4py's own demonstration has it.
        (LATENCY.replace("Latency Test", "Bandwidth Test"), 'The output of "Bandwidth" has no column bandwidth.'),
        (output().replace("Pass", "Fail", 1), '"Latency" received wrong data at 1 bytes.'),
        (output().replace("# Ranks 0 3", "# Ranks 0 9"), "The output is of rank 9, but there are 4 ranks."),
    ],
)
def test_other_output_is_refused_in_one_sentence(text, message):
    with pytest.raises(JobOutputError, match=re.escape(message)) as caught:
        mpi_osu.parse(text, FOUR)
    assert "\n" not in str(caught.value)
