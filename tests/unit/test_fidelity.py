import pytest

from testbed.run.fidelity import (
    Judgement,
    Verdict,
    judge_losses,
    judge_prediction,
    judge_processor,
    processor,
)


def test_processor_shares():
    before = {"time": 10.0, "idle": 100, "total": 1000, "pressure": 0}
    after = {"time": 12.0, "idle": 150, "total": 1200, "pressure": 500_000}
    assert processor(before, after) == (0.25, 0.25)
    assert processor({**before, "pressure": None}, after)[1] is None


@pytest.mark.parametrize(("idle", "verdict"), [(0.5, []), (0.09, [Verdict.WARN]), (0.01, [Verdict.INVALID])])
def test_a_busy_machine_is_named(idle, verdict):
    assert [v for v, _ in judge_processor(idle, None)] == verdict


def test_pressure_is_named():
    assert judge_processor(0.5, 0.9) == [(Verdict.WARN, "tasks waited for a processor 90 % of the time")]


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [({"a": 0}, []), ({"a": 4}, []), ({"a": 3, "b": 3}, [Verdict.WARN]), ({"a": 60, "b": 0}, [Verdict.INVALID])],
)
def test_losses_outside_queues(lost, verdict):
    assert [v for v, _ in judge_losses(lost, 10_000)] == verdict


def test_losses_name_their_place():
    ((_, sentence),) = judge_losses({"in a switch": 60, "at a port": 0}, 10_000)
    assert sentence == "60 of 10000 frames were lost outside the queues (0.6 %): 60 in a switch"


def test_no_frames_at_all_is_no_loss():
    assert judge_losses({"in a switch": 0}, 0) == []


def test_a_prediction_that_is_met_outweighs_a_busy_machine():
    assert judge_processor(0.0, 0.99, confirmed=True) == []


@pytest.mark.parametrize(
    ("protocol", "ratios", "count"),
    [
        ("udp", [1.0, 0.99], 0),
        ("udp", [0.96, 0.97], 1),
        ("udp", [1.0, 0.94], 2),
        ("tcp", [0.97, 0.96], 0),
        ("tcp", [0.9, 0.9], 1),
        ("tcp", [1.0, 1.0, 1.0, 1.0, 0.78], 1),
        ("udp", [1.5, 1.0], 1),
        ("tcp", [], 0),
    ],
)
def test_distance_from_the_prediction(protocol, ratios, count):
    findings = judge_prediction(protocol, [9e8 * ratio for ratio in ratios], [9e8] * len(ratios))
    assert [verdict for verdict, _ in findings] == [Verdict.WARN] * count


def test_the_worst_verdict_wins_and_reasons_stand_once():
    found = Judgement.of([(Verdict.WARN, "a"), (Verdict.INVALID, "b"), (Verdict.WARN, "a")])
    assert (found.verdict.word, found.reasons) == ("invalid", ("a", "b"))
    assert Judgement.of([]).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("idle", "computing", "verdict"),
    [(0.01, 0.9, [Verdict.WARN]), (0.09, 0.9, [Verdict.WARN]), (0.5, 0.9, []), (0.01, 0.1, [Verdict.INVALID])],
)
def test_of_a_job_that_computes_busy_processors_are_a_reserve(idle, computing, verdict):
    assert [v for v, _ in judge_processor(idle, None, computing=computing)] == verdict


def test_what_a_computing_job_has_measured_is_told():
    assert judge_processor(0.15, 0.7, computing=0.92) == [
        (
            Verdict.WARN,
            "the ranks computed 92 % of the time, the processors were idle 15 %: what was measured is this machine's "
            "processors more than the links",
        )
    ]
