import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from testbed.base.messages import LATE_BINS, Snapshot
from testbed.experiments.run.checks.fidelity import (
    Judgement,
    Verdict,
    judge_clock,
    judge_departures,
    judge_lateness,
    judge_losses,
    judge_machine,
    judge_overload,
    judge_prediction,
    judge_processor,
    lateness,
    network_share,
    process_shares,
    processor,
    quantiles,
    too_slow,
)
from testbed.experiments.run.loads.context import LoadResult


def test_processor_shares():
    before = Snapshot(10.0, 0.0, (), (), 100, 30, 1000, 100_000, {})
    after = Snapshot(12.0, 0.0, (), (), 150, 50, 1200, 600_000, {})
    assert processor(before, after) == (0.25, 0.25)
    assert processor(replace(before, pressure=None), after)[1] is None
    assert network_share(before, after) == 0.1


def test_shares_of_one_tick_and_of_none():
    before = Snapshot(10.0, 0.0, (), (), 100, 30, 1000, None, {})
    after = replace(before, idle=101, network=31, total=1001)
    assert (processor(before, after)[0], network_share(before, after)) == (1.0, 1.0)
    assert (processor(before, before)[0], network_share(before, before)) == (0.0, 0.0)


@pytest.mark.parametrize(("idle", "verdict"), [
    (0.5, []), (0.10, []), (0.099, [Verdict.WARN]), (0.02, [Verdict.WARN]), (0.0199, [Verdict.INVALID]),
])  # fmt: skip
def test_a_busy_machine_is_named(idle, verdict):
    assert [v for v, _ in judge_processor(idle, None)] == verdict


def test_pressure_is_named():
    assert judge_processor(0.5, 0.9) == [(Verdict.WARN, "tasks waited for a processor 90 % of the time")]
    assert len(judge_processor(0.5, 0.61)) == 1
    assert judge_processor(0.5, 0.60) == []


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [
        ({"a": 0}, []),
        ({"a": 50}, []),
        ({"a": 30, "b": 22}, [Verdict.WARN]),
        ({"a": 500}, [Verdict.WARN]),
        ({"a": 510, "b": 0}, [Verdict.INVALID]),
    ],
)
def test_losses_outside_queues(lost, verdict):
    assert [v for v, _ in judge_losses(lost, 100_000)] == verdict


def test_losses_name_their_place():
    ((_, sentence),) = judge_losses({"in a switch": 60, "at a port": 0}, 10_000)
    assert sentence == "60 of 10000 frames were lost outside the queues (0.6 %): 60 in a switch"


def test_a_frame_of_one_is_all_of_them():
    ((_, sentence),) = judge_losses({"in a switch": 1}, 1)
    assert "(100 %)" in sentence


def test_no_frames_at_all_is_no_loss():
    assert judge_losses({"in a switch": 0}, 0) == []


def test_a_prediction_that_is_met_outweighs_a_busy_machine():
    assert judge_processor(0.0, 0.99, confirmed=True) == []


@pytest.mark.parametrize(
    ("idle", "behind", "verdict"),
    [
        (0.5, 0.5, [Verdict.WARN]),
        (0.5, 0.065, []),
        (0.05, 0.065, []),
        (0.021, 0.199, []),
        (0.019, 0.199, [Verdict.WARN]),
        (0.0, -0.01, [Verdict.WARN]),
        (0.0, 0.201, [Verdict.INVALID, Verdict.WARN]),
        (0.0, None, [Verdict.INVALID, Verdict.WARN]),
    ],
)
def test_a_job_as_fast_as_its_links_outweighs_a_busy_machine(idle, behind, verdict):
    assert [one for one, _ in judge_processor(idle, 0.69, behind=behind)] == verdict
    # Without times of single messages there is nothing left to warn of.
    alone = [one for one, _ in judge_processor(idle, 0.69, behind=behind, lone=False)]
    assert alone == ([] if behind is not None and behind < 0.2 else verdict)


def test_slower_than_links_is_told_where_nothing_was_idle():
    assert judge_machine([counted(idle=0.0)], behind=0.125) == [
        (
            Verdict.WARN,
            "the processors were idle 0.0 % of the time; what fills the links is within 12 % of what they allow all "
            "the same, but times of single messages are a busy machine's",
        )
    ]


@pytest.mark.parametrize(
    ("protocol", "ratios", "count"),
    [
        ("udp", [1.0, 0.99], 0),
        ("udp", [0.979, 0.979], 1),
        ("udp", [1.0, 0.94], 2),
        ("udp", [0.948, *[1.0] * 9], 1),
        ("tcp", [0.96, 0.955], 0),
        ("tcp", [0.947, 0.947], 1),
        ("tcp", [0.79, *[1.0] * 9], 1),
        ("udp", [1.5, 1.0], 1),
        # Above it a flow may be by 2 % more than below, and the mean by 2 %.
        ("udp", [1.06, *[1.0] * 9], 0),
        ("udp", [1.073, *[1.0] * 9], 1),
        ("udp", [1.015, 1.015], 0),
        ("udp", [1.021, 1.021], 1),
        ("tcp", [1.03, 1.03], 1),
        ("tcp", [], 0),
    ],
)
def test_distance_from_the_prediction(protocol, ratios, count):
    findings = judge_prediction(protocol, [9e8 * ratio for ratio in ratios], [9e8] * len(ratios))
    assert [verdict for verdict, _ in findings] == [Verdict.WARN] * count


def test_flows_predicted_to_carry_nothing_are_asked_nothing():
    assert judge_prediction("udp", [5.0, 1e9], [0.0, 1e9]) == []
    assert len(judge_prediction("udp", [0.4], [0.8])) == 2


def test_verdicts_go_from_good_to_bad():
    assert [verdict.word for verdict in sorted(Verdict)] == ["pass", "warn", "invalid", "fail"]


def test_the_worst_verdict_wins_and_reasons_stand_once():
    found = Judgement.merge([(Verdict.WARN, "a"), (Verdict.INVALID, "b"), (Verdict.WARN, "a")])
    assert (found.verdict.word, found.reasons) == ("invalid", ("a", "b"))
    assert Judgement.merge([]).verdict is Verdict.PASS


def counted(idle=0.5, daemon=0.3, jump=0.0, seconds=10.0):
    """Snapshots around a load on two processors."""
    ticks = round(seconds * 200)
    processes = {"switches": (5.0, 7.0), "agent": (1.0,), "programs": (2.0,)}
    before = Snapshot(100.0, 1e9, (), (), 0, 0, 0, None, processes)
    processes = {"switches": (5.0, 7.0 + daemon * seconds), "agent": (1.1,), "programs": (4.0,)}
    after = Snapshot(
        100.0 + seconds, 1e9 + seconds + jump, (), (), round(idle * ticks), ticks // 10, ticks, None, processes
    )
    return LoadResult({}, before, after, seconds)


def test_shares_of_processes_and_interrupts():
    load = counted(daemon=0.5)
    shares = process_shares(load.before, load.after)
    assert shares["switches"] == pytest.approx([0.0, 0.5])
    assert shares["agent"] == pytest.approx([0.01])
    assert shares["programs"] == pytest.approx([0.2])
    assert network_share(load.before, load.after) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("jump", "seconds", "sentence"),
    [
        (0.0, 10, None),
        (0.015, 10, None),
        (3600.0, 10, "the system clock jumped 3,600 s forward while the load ran"),
        (-0.5, 10, "the system clock jumped 0.5 s back while the load ran"),
        # Set slowly, as time services do, a clock may be off by 0.05 %.
        (0.15, 300, None),
        (0.4, 300, "the system clock jumped 0.4 s forward while the load ran"),
        (0.335, 300, "the system clock jumped 0.335 s forward while the load ran"),
        (0.0315, 10, "the system clock jumped 0.0315 s forward while the load ran"),
    ],
)
def test_a_clock_that_jumps(jump, seconds, sentence):
    load = counted(jump=jump, seconds=seconds)
    assert judge_clock(load.before, load.after) == ([(Verdict.WARN, sentence)] if sentence else [])


def test_a_clock_that_is_off_by_just_what_it_may_be():
    still = Snapshot(0.0, 0.0, (), (), 0, 0, 0, None, {})
    assert judge_clock(still, replace(still, wall=0.02)) == []


@pytest.mark.parametrize(
    "found",
    [
        lambda: judge_processor(0.0, None),
        lambda: judge_overload([counted(daemon=0.99)], [0.3]),
        lambda: judge_losses({"in a switch": 600}, 100_000),
        lambda: judge_departures([0.5] * 20),
        lambda: judge_lateness([_late(_counts(b0=50, b20=50))]),
        lambda: judge_lateness([_stalled(0.02)]),
    ],
)
def test_what_a_larger_dilation_may_remedy_is_known(found):
    assert [verdict for verdict, _ in found()] == [Verdict.INVALID]
    assert too_slow(found())
    assert too_slow([*found(), (Verdict.WARN, "the clock jumped")])
    assert not too_slow([*found(), (Verdict.INVALID, "a link carried more than it can")])


def test_what_is_no_more_than_a_warning_is_not_too_slow():
    assert not too_slow([])
    assert not too_slow(judge_processor(0.05, 0.9))
    assert not too_slow([(Verdict.FAIL, "it crashed")])


def test_of_several_repeats_the_busiest_counts():
    repeats = [counted(idle=0.5), counted(idle=0.05), counted(idle=0.4)]
    assert judge_machine(repeats) == [(Verdict.WARN, "the processors were idle only 5.0 % of the time")]
    waited = [
        replace(load, before=replace(load.before, pressure=0), after=replace(load.after, pressure=microseconds))
        for load, microseconds in zip([counted()] * 3, (1_000_000, 9_000_000, 2_000_000), strict=True)
    ]
    assert judge_machine(waited) == [(Verdict.WARN, "tasks waited for a processor 90 % of the time")]


def test_a_jump_counts_also_where_the_prediction_was_met():
    findings = judge_machine([counted(), counted(idle=0.0, jump=-5)], confirmed=True)
    assert [reason for _, reason in findings] == ["the system clock jumped 5 s back while the load ran"]


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ([0.001] * 200, []),
        ([0.5] * 19, []),
        ([0.5] * 20, [Verdict.INVALID]),
        ([0.05] * 200, []),
        ([0.01] * 195 + [0.052] * 5, [Verdict.WARN]),
        ([0.01] * 199 + [0.9], []),
        ([0.10] * 200, [Verdict.WARN]),
        ([0.105] * 200, [Verdict.INVALID]),
        ([0.01] * 170 + [0.2] * 30, [Verdict.INVALID]),
    ],
)
def test_gaps_between_frames(errors, verdict):
    assert [v for v, _ in judge_departures(errors)] == verdict
    assert judge_departures(errors, confirmed=True) == []


def test_gaps_are_named_by_their_quantiles():
    ((_, sentence),) = judge_departures([0.01] * 195 + [0.06] * 5)
    assert sentence == "busy ports let frames go 1 % (p90) and 6 % (p99) off the rate of their links"


def test_quantiles():
    assert quantiles([float(value) for value in range(100)]) == (50.0, 90.0, 99.0)
    assert quantiles([3.0]) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("ratio", "idle", "daemon", "why"),
    [
        (0.9, 0.0, 0.99, None),
        (0.3, 0.5, 0.5, None),
        (0.3, 0.1, 0.85, None),
        (0.3, 0.05, 0.5, "the processors were idle 5.0 % of the time; raise lab.dilation"),
        (0.3, 0.5, 0.94, "a daemon of the switches used 94 % of a processor, and one thread has no more; "),
    ],
)
def test_far_below_the_prediction_and_never_idle_is_too_slow(ratio, idle, daemon, why):
    findings = judge_overload([counted(), counted(idle=idle, daemon=daemon)], [ratio] * 3)
    assert [verdict for verdict, _ in findings] == ([Verdict.INVALID] if why else [])
    if why:
        assert why in findings[0][1]
        assert findings[0][1].startswith("the lab was too slow: the mean of the flows is 70 % below the prediction")


@pytest.mark.parametrize(("ratio", "too_slow"), [(0.81, False), (0.79, True)])
def test_a_lab_never_idle_may_be_a_fifth_below_the_prediction(ratio, too_slow):
    assert bool(judge_overload([counted(idle=0.05)], [ratio] * 3)) == too_slow


@pytest.mark.parametrize(
    ("idle", "computing", "verdict"),
    [
        (0.01, 0.9, [Verdict.WARN]),
        (0.09, 0.9, [Verdict.WARN]),
        (0.5, 0.9, []),
        (0.01, 0.1, [Verdict.INVALID]),
        (0.01, 0.55, [Verdict.WARN]),
        (0.01, 0.5, [Verdict.INVALID]),
        (0.01, 0.45, [Verdict.INVALID]),
    ],
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


def _late(counts, frame=1e-3):
    """What was counted around a load whose deliveries were so late."""
    zeros = {"delivery": (0,) * (len(LATE_BINS) + 1)}
    before, after = (
        Snapshot(0.0, 0.0, (), (), 0, 0, 0, None, {}, late=late, frame_seconds=frame)
        for late in (zeros, {"delivery": counts})
    )
    return SimpleNamespace(before=before, after=after)


def _stalled(share):
    """What was counted around a load of 10 s for so much of which nobody computed the switches."""
    before, after = (Snapshot(time, 0.0, (), (), 0, 0, 0, None, {}) for time in (0.0, 10.0))
    return SimpleNamespace(before=before, after=replace(after, stalled=10 * share))


def _counts(**places):
    counts = [0] * (len(LATE_BINS) + 1)
    for place, count in places.items():
        counts[int(place[1:])] = count
    return tuple(counts)


def test_lateness_is_read_off_the_bins():
    found = _late(_counts(b0=98, b5=1, b9=1))
    assert lateness(found.before, found.after) == (LATE_BINS[0], LATE_BINS[5])
    assert lateness(found.before, found.before) is None
    last = _late(_counts(**{f"b{len(LATE_BINS)}": 5}))
    assert lateness(last.before, last.after) == (math.inf, math.inf)


@pytest.mark.parametrize(
    ("place", "confirmed", "verdict"),
    [
        (13, False, None),
        (14, False, Verdict.WARN),
        (14, True, None),
        (16, False, Verdict.WARN),
        (17, True, Verdict.INVALID),
    ],
)
def test_late_deliveries_are_judged_by_the_time_of_a_frame(place, confirmed, verdict):
    # Bin 13 ends at 0.91 ms, 14 at 1.28, 16 at 2.56 and 17 at 3.62; a full frame takes 1 ms.
    late = _late(_counts(b0=50, **{f"b{place}": 50}))
    found = judge_lateness([late], confirmed=confirmed)
    assert [one for one, _ in found] == ([] if verdict is None else [verdict])
    assert judge_machine([late], confirmed=confirmed) == judge_machine([late], behind=0.2 if confirmed else 0.3)


def test_idle_processors_are_not_asked_where_lateness_is_known():
    assert judge_machine([_late(_counts(b0=5))]) == []
