"""NPB as a load: which ranks it runs on, and what its output says."""

import json
import re
from pathlib import Path

import pytest

from testbed.scenario import parse_scenario
from testbed.scenario.read_scenario import as_dict
from testbed.scenario.workloads import WORKLOADS, npb
from testbed.scenario.workloads.mpi_output import JobOutputError
from testbed.scenario.workloads.mpi_placement import Ranks
from testbed.scenario.workloads.spec import Npb

DATA = Path(__file__).parents[2] / "data" / "mpi"
OWN = (DATA / "npb_sp.txt").read_text(encoding="utf-8")  # captured
# As the official one prints, after its documentation; figures made up.
OFFICIAL = (DATA / "npb_official.txt").read_text(encoding="utf-8")
FOUR = Ranks((0, 1, 2, 3))
HEAD = "topology: {kind: torus, sizes: [4, 4]}\n"


# --- ranks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "class_", "hosts", "ranks"),
    [
        ("FT", "S", 16, 16),
        ("FT", "S", 15, 8),
        ("FT", "W", 64, 32),
        ("SP", "S", 16, 16),
        ("SP", "W", 64, 64),
        ("BT", "S", 15, 9),
        ("EP", "S", 15, 15),
        ("LU", "S", 64, 16),
        ("MG", "A", 3, 2),
    ],
)
def test_without_ranks_it_takes_as_many_hosts_as_it_can(kernel, class_, hosts, ranks):
    job = npb.as_mpi(Npb(kernel, class_), hosts)
    assert job.ranks == ranks
    assert job.args == (class_,)
    assert npb.problems(Npb(kernel, class_, ranks)) == []


def test_a_list_of_hosts_gives_the_number_of_ranks():
    placement = ("h1", "h2", "h3", "h4")
    job = npb.as_mpi(Npb("SP", placement=placement, trace=True, time_limit=9.0), 16)
    assert (job.ranks, job.placement, job.trace, job.time_limit) == (None, placement, True, 9.0)


def test_no_more_ranks_than_the_problem_can_be_shared_out_to():
    for kernel, limits in npb._MAX_RANKS.items():
        for class_, most in limits.items():
            assert npb.is_legal(kernel, most) or kernel == "EP"
            assert npb.problems(Npb(kernel, class_, most)) == []
            above = next(ranks for ranks in range(most + 1, 4 * most + 2) if npb.is_legal(kernel, ranks))
            (problem,) = npb.problems(Npb(kernel, class_, above))
            assert problem.sentence.startswith(f"should be {most} or less for {kernel} class {class_}")


def test_too_few_hosts_are_a_sentence():
    (problem,) = npb.host_problems(Npb("SP"), 3)
    assert problem.place == "ranks"
    assert "ranks: 4 puts several on one" in problem.sentence
    assert npb.host_problems(Npb("SP", ranks=4), 3) == []
    assert npb.host_problems(Npb("CG"), 3) == []


def test_the_key_is_class_though_python_keeps_the_word():
    scenario = parse_scenario(HEAD + "workloads: [{kind: npb, kernel: CG, class: W}]", "x.yaml")
    assert scenario.workloads[0].spec == Npb("CG", "W")
    block = as_dict(scenario)["workloads"][0]
    assert block == {
        "kind": "npb", "kernel": "CG", "class": "W", "ranks": None, "placement": "block", "time_limit": None,
        "trace": False,
    }  # fmt: skip
    assert parse_scenario(HEAD + f"workloads: [{json.dumps(block)}]", "x.yaml").workloads == scenario.workloads


def test_only_npb_checks_its_parameters_together():
    assert WORKLOADS["npb"].check(Npb("FT", ranks=3))
    assert WORKLOADS["ping"].check(None) == []


# --- output ---------------------------------------------------------------------------------------------------


def test_the_figures_of_a_kernel_of_this_project():
    assert re.search(npb.SUCCESS, OWN, re.MULTILINE)
    parsed = npb.parse(OWN, FOUR)
    line = json.loads(OWN.splitlines()[-1])
    assert parsed.verified
    assert parsed.fabric_bytes == line["fabric_bytes"] > 0
    figures = {(s.metric, s.labels.get("statistic")): s for s in parsed.samples}
    assert len(figures) == len(parsed.samples) == 6
    assert all(s.labels["code"] == "testbed" and s.labels["time"] == "laboratory" for s in parsed.samples)
    assert figures["npb_lab_time", None].value == pytest.approx(line["seconds"], abs=1e-4)
    assert figures["npb_lab_rate", None].value == pytest.approx(1e6 * line["mops"], rel=1e-3)
    assert figures["npb_lab_rate", None].unit == "op/s"
    waiting = sorted(line["communication_seconds"])
    assert figures["npb_lab_communication_time", "max"].value == waiting[3]
    assert figures["npb_lab_communication_time", "median"].value == (waiting[1] + waiting[2]) / 2
    assert figures["npb_lab_computation_time", "max"].value == max(line["computation_seconds"])
    assert parsed.computing is not None
    assert 0 < parsed.computing < 1


def test_the_figures_of_the_official_program():
    assert re.search(npb.SUCCESS, OFFICIAL, re.MULTILINE)
    parsed = npb.parse(OFFICIAL, FOUR)
    assert [(s.metric, s.value) for s in parsed.samples] == [("npb_lab_time", 0.07), ("npb_lab_rate", 2437.70e6)]
    assert {s.labels["code"] for s in parsed.samples} == {"NPB 3.4.2"}
    assert (parsed.verified, parsed.fabric_bytes, parsed.computing) == (True, 0, None)


WRONG = OWN.replace("  SUCCESSFUL", "UNSUCCESSFUL")


def test_a_wrong_result_never_gives_figures():
    assert not re.search(npb.SUCCESS, WRONG, re.MULTILINE)
    with pytest.raises(JobOutputError, match=r"The result of the NPB kernel is wrong: Verification = UNSUCCESSFUL\."):
        npb.parse(WRONG, FOUR)
    assert npb.failure(WRONG) == "its result is wrong: Verification = UNSUCCESSFUL"
    assert npb.failure(OWN) == ""
    assert npb.failure("sp: cannot run on 3 ranks") == ""


LINE = OWN.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no Time in seconds, Total processes, Mop/s total, Verification"),
        (OWN.replace(" Time in seconds", " Time in hours"), "The output of the NPB kernel has no Time in seconds"),
        (OFFICIAL.replace("2437.70", "*******"), r'gives "\*+" as Mop/s total, which is not a number'),
        (OFFICIAL.replace("0.07", "-1.0"), 'gives "-1.0" as Time in seconds'),
        (OFFICIAL.replace("0.07", "nan"), 'gives "nan" as Time in seconds'),
        (OWN.replace(LINE, LINE[:40]), "The last line of the NPB kernel is not a JSON object"),
        (OWN.replace('"fabric_bytes":', '"bytes":'), 'has no whole number "fabric_bytes"'),
        (OWN.replace('"communication_seconds":[', '"communication_seconds":[0.5,'), "of each of 4 ranks"),
        (OWN.replace('"computation_seconds":[', '"computation_seconds":[-'), 'no "computation_seconds" of each'),
    ],
)
def test_output_that_is_not_whole_is_refused(text, sentence):
    with pytest.raises(JobOutputError, match=sentence):
        npb.parse(text, FOUR)


def test_a_program_that_ran_on_other_ranks_is_refused():
    with pytest.raises(JobOutputError, match="ran on 4 processes instead of 16"):
        npb.parse(OFFICIAL, Ranks(tuple(range(16))))
