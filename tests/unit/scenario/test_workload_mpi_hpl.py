"""HPL's data file from arguments, and its report; the report in tests/data/mpi is that of a lab."""

import re
from pathlib import Path

import pytest

from testbed.scenario.workloads import mpi_hpl
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks

OUTPUT = (Path(__file__).parents[2] / "data" / "mpi" / "hpl.txt").read_text(encoding="utf-8")
FOUR = Ranks((0, 1, 2, 3))


def told(args, ranks):
    """N, NB, P and Q of the data file."""
    lines = mpi_hpl.data_file(args, ranks).splitlines()
    return tuple(int(lines[number].split()[0]) for number in (5, 7, 10, 11))


@pytest.mark.parametrize(
    ("args", "ranks", "expected"),
    [
        ((), 16, (512, 64, 4, 4)),
        ((), 8, (512, 64, 2, 4)),
        ((), 7, (512, 64, 1, 7)),
        (("--n", "1000", "--nb", "32"), 12, (1000, 32, 3, 4)),
        (("--p", "2"), 12, (512, 64, 2, 6)),
        (("--q", "2"), 12, (512, 64, 6, 2)),
        (("--p", "1", "--q", "12"), 12, (512, 64, 1, 12)),
    ],
)
def test_the_data_file_says_what_the_arguments_say(args, ranks, expected):
    assert mpi_hpl.problems(args, ranks) == []
    assert told(args, ranks) == expected


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--p", "2", "--q", "3"), "has a process grid of 2×3 for 4 ranks; --p times --q should be 4"),
        (("--p", "3"), "has a process grid of 3×1 for 4 ranks; --p times --q should be 4"),
        (("--q", "8"), "has a process grid of 1×8 for 4 ranks; --p times --q should be 4"),
        (("--m", "4"), 'has an option "--m", but HPL is given --n, --nb, --p, --q'),
        (("--n", "many"), 'needs a whole number from 1 to 100000 after --n, not "many"'),
        (("--n", "0"), 'needs a whole number from 1 to 100000 after --n, not "0"'),
        (("--nb",), 'needs a whole number from 1 to 1024 after --nb, not ""'),
    ],
)
def test_wrong_arguments_are_a_sentence(args, expected):
    assert mpi_hpl.problems(args, 4) == [expected]


def test_all_wrong_arguments_are_told_at_once():
    assert len(mpi_hpl.problems(("--n", "x", "--oops", "1", "--nb", "-1"), 4)) == 3


def test_the_report_gives_time_and_rate_of_the_laboratory():
    parsed = mpi_hpl.parse(OUTPUT, FOUR)
    found = {s.metric: s for s in parsed.samples}
    assert parsed.verified
    assert (found["hpl_lab_time"].value, found["hpl_lab_time"].unit) == (0.51, "s")
    assert found["hpl_lab_rate"].unit == "flop/s"
    assert found["hpl_lab_rate"].value == pytest.approx(3.584e7)
    assert found["hpl_residual"].value == 0.0059082
    assert found["hpl_lab_time"].labels == {"n": "300", "nb": "32", "p": "2", "q": "2", "time": "laboratory"}


@pytest.mark.parametrize(
    ("hosts", "copies"),
    # Of L: process columns on other hosts, mean over the rows; of U: process rows likewise. Grid ((0, 1), (2, 3)).
    [((0, 1, 2, 3), 2), ((0, 0, 1, 1), 1), ((0, 1, 0, 1), 1), ((0, 1, 1, 0), 2), ((0, 0, 0, 1), 1)],
)
def test_bytes_between_hosts_are_half_of_an_even_share(hosts, copies):
    assert mpi_hpl.parse(OUTPUT, Ranks(hosts)).fabric_bytes == 8 * 300 * 300 / 2 / 2 * copies


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "HPL's report has 0 figures and 0 residuals."),
        (OUTPUT.replace("||Ax-b||_oo/(eps*(", ""), "HPL's report has 1 figures and 0 residuals."),
        (OUTPUT.replace("0.0059082 ...... PASSED", "4711.0 ...... FAILED"), "residual for N = 300 is 4711.0, so its"),
        (
            OUTPUT.replace("     2     2  ", "     2     3  "),
            "HPL's report is of 2×3 processes, but there are 4 ranks.",
        ),
    ],
)
def test_other_output_is_refused_in_one_sentence(text, message):
    with pytest.raises(JobOutputError, match=re.escape(message)) as caught:
        mpi_hpl.parse(text, FOUR)
    assert "\n" not in str(caught.value)
