"""The two ends of TCP, segment by segment, against RFC 5681, 6298, 6675 and 8985."""

import pytest

from testbed.dataplane.kernels import tcp_ends
from testbed.dataplane.kernels.tcp_ends import (
    ACKNOWLEDGE,
    ACKNOWLEDGE_LATER,
    ARRIVED,
    DONE,
    LOST,
    NOTHING,
    NOWHERE,
    UNDER_WAY,
)

_PLACES = 128  # of each flow, with queues of four frames


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """What only kernels call has no entry for the interpreter."""
    for name, one in list(vars(tcp_ends).items()):
        if hasattr(one, "py_func"):
            monkeypatch.setattr(tcp_ends, name, one.py_func)


@pytest.fixture
def ends():
    made = tcp_ends.new_ends(1, 4)
    assert made.fate.shape == (1, _PLACES)
    return made


def sent(ends, now=0.0):
    """Segments that go out while the host's own queue empties at once."""
    segments = []
    while (segment := tcp_ends.next_segment(ends, 0, now)) >= 0:
        segments.append(segment)
        ends.at_home[0] -= 1
    return segments


def acknowledged(ends, *segments, wanted=0, now=1.0):
    for segment in segments:
        tcp_ends.acknowledge(ends, 0, segment, wanted, now)


def fates(ends, count):
    return ends.fate[0, :count].tolist()


def test_the_first_window_is_ten_segments_and_waits_a_second(ends):
    assert sent(ends, now=3.0) == list(range(10))
    assert (ends.flying[0], ends.next[0], ends.oldest[0], ends.limited[0]) == (10, 10, 0, 10)
    assert ends.number[0, :10].tolist() == list(range(1, 11))
    assert ends.sent[0, :10].tolist() == [3.0] * 10
    assert ends.deadline[0] == 4.0  # RFC 6298, 2.1: 1 s before a round trip is known


def test_of_a_flow_two_frames_are_in_its_hosts_queue():
    ends = tcp_ends.new_ends(1, 4)
    assert [tcp_ends.next_segment(ends, 0, 0.0) for _ in range(3)] == [0, 1, -1]
    ends.at_home[0] = 1
    assert tcp_ends.next_segment(ends, 0, 0.0) == 2


def test_no_more_are_under_way_than_a_receiver_has_places_for(ends):
    ends.window[0] = 1e6
    assert sent(ends) == list(range(_PLACES - 1))
    acknowledged(ends, 0, wanted=1)
    assert sent(ends) == [_PLACES - 1]


def test_the_wait_follows_round_trips(ends):
    """RFC 6298, 2.2 and 2.3, with Linux's least of 0.2 s for what varies."""
    sent(ends)
    acknowledged(ends, 0, wanted=1, now=0.4)
    assert (ends.round_trip[0], ends.variation[0], ends.deadline[0]) == (0.4, 0.2, pytest.approx(0.4 + 0.4 + 4 * 0.2))
    acknowledged(ends, 1, wanted=2, now=0.8)
    assert ends.variation[0] == pytest.approx(0.75 * 0.2 + 0.25 * 0.4)
    assert ends.round_trip[0] == pytest.approx(7 / 8 * 0.4 + 1 / 8 * 0.8)
    ends.variation[0] = 0.001
    assert tcp_ends.compute_rto(ends, 0) == pytest.approx(0.45 + 0.2)


def test_in_slow_start_the_window_grows_by_what_is_acknowledged(ends):
    sent(ends)
    acknowledged(ends, 1, wanted=2)
    assert (ends.window[0], ends.oldest[0], ends.flying[0]) == (12, 2, 8)
    assert fates(ends, 3) == [DONE, DONE, UNDER_WAY]
    assert sent(ends) == [10, 11, 12, 13]


def test_beyond_the_threshold_it_grows_by_one_a_window(ends):
    ends.threshold[0] = 10
    sent(ends)
    for segment in range(10):
        acknowledged(ends, segment, wanted=segment + 1)
        assert ends.window[0] == pytest.approx(10 + (segment + 1) / 10)


@pytest.mark.parametrize("threshold", [5, 1e9])
def test_a_window_that_kept_nothing_back_does_not_grow(ends, threshold):
    """RFC 7661; in slow start Linux lets it be twice what was under way."""
    ends.threshold[0] = threshold
    assert [tcp_ends.next_segment(ends, 0, 0.0) for _ in range(3)] == [0, 1, -1]
    acknowledged(ends, 1, wanted=2)
    assert ends.window[0] == 10


def test_what_three_overtook_is_lost_and_the_window_halved_once(ends):
    sent(ends)
    acknowledged(ends, 1, 2)
    assert (fates(ends, 4), ends.window[0]) == ([UNDER_WAY, ARRIVED, ARRIVED, UNDER_WAY], 12)
    assert sent(ends) == [10, 11, 12, 13]
    acknowledged(ends, 3)
    assert fates(ends, 5) == [LOST, ARRIVED, ARRIVED, ARRIVED, UNDER_WAY]
    assert (ends.window[0], ends.threshold[0], ends.recovery[0]) == (6, 6, 14)
    assert (ends.lost[0], ends.flying[0]) == (1, 10)
    assert sent(ends) == []
    acknowledged(ends, 5, 6, 7, 8)  # 4 is lost, too: the same round trip
    assert (fates(ends, 5)[4], ends.window[0], ends.recovery[0]) == (LOST, 6, 14)
    assert (ends.lost[0], ends.flying[0]) == (2, 5)
    # Lost ones go out again before new ones.
    assert sent(ends) == [0]
    assert (ends.number[0, 0], ends.lost[0]) == (15, 1)
    acknowledged(ends, 9)
    assert sent(ends) == [4]


def test_recovery_ends_when_all_of_it_has_arrived(ends):
    sent(ends)
    acknowledged(ends, 1, 2, 3)
    # The window had grown to 12 by then.
    assert (ends.recovery[0], ends.window[0]) == (10, 6)
    acknowledged(ends, *range(4, 10))
    assert sent(ends) == [0, 10, 11, 12, 13, 14]
    acknowledged(ends, 0, wanted=10)
    assert (ends.recovery[0], ends.oldest[0]) == (NOWHERE, 10)
    acknowledged(ends, 10, wanted=11)
    assert ends.window[0] > 6


def test_a_late_segment_taken_for_lost_is_not_sent_again(ends):
    sent(ends)
    acknowledged(ends, 1, 2, 3)
    acknowledged(ends, 0, wanted=4)
    assert (ends.lost[0], ends.flying[0], ends.oldest[0]) == (0, 6, 4)
    assert fates(ends, 5) == [DONE] * 4 + [UNDER_WAY]


def test_a_second_acknowledgement_of_the_same_says_nothing(ends):
    sent(ends)
    acknowledged(ends, 1, wanted=2, now=1.0)
    before = [array.copy() for array in ends]
    acknowledged(ends, 1, wanted=2, now=1.5)
    acknowledged(ends, 0, wanted=1, now=1.5)
    assert all((now == then).all() for now, then in zip(ends, before, strict=True))


def test_when_time_is_out_all_is_lost_and_one_segment_goes(ends):
    sent(ends)
    acknowledged(ends, 1)
    tcp_ends.time_out(ends, 0, 2.0)
    assert fates(ends, 10) == [LOST, ARRIVED] + [LOST] * 8
    assert (ends.window[0], ends.threshold[0], ends.recovery[0]) == (1, 5, NOWHERE)
    assert (ends.flying[0], ends.lost[0], ends.doubled[0]) == (0, 9, 1)
    wait = 1.0 + 4 * 0.5
    assert ends.deadline[0] == 2.0 + 2 * wait
    assert sent(ends, now=2.5) == [0]
    assert ends.deadline[0] == 2.5 + 2 * wait
    for doubled in (4, 8, 16, 32, 64, 64, 64):  # RFC 6298, 5.5: no more than that
        tcp_ends.time_out(ends, 0, 0.0)
        assert ends.deadline[0] == doubled * wait
    sent(ends, now=9.0)
    acknowledged(ends, 0, wanted=1, now=9.5)
    assert ends.doubled[0] == 0
    assert ends.window[0] == 2  # at least


def test_every_second_segment_is_acknowledged_at_once(ends):
    assert tcp_ends.receive(ends, 0, 0) == ACKNOWLEDGE_LATER
    assert (ends.to_say[0], ends.unsaid[0], ends.wanted[0]) == (True, 1, 1)
    assert tcp_ends.receive(ends, 0, 1) == ACKNOWLEDGE
    ends.unsaid[0] = 0
    assert tcp_ends.receive(ends, 0, 2) == NOTHING  # the timer runs
    assert (ends.wanted[0], ends.arrived[0]) == (3, 3)


def test_gaps_are_acknowledged_at_once_and_repeats_count_once(ends):
    assert tcp_ends.receive(ends, 0, 2) == ACKNOWLEDGE
    assert (ends.wanted[0], ends.arrived[0]) == (0, 1)
    ends.unsaid[0] = 0
    assert tcp_ends.receive(ends, 0, 2) == ACKNOWLEDGE
    assert (ends.wanted[0], ends.arrived[0]) == (0, 1)
    ends.unsaid[0] = 0
    assert tcp_ends.receive(ends, 0, 0) == ACKNOWLEDGE_LATER
    assert tcp_ends.receive(ends, 0, 1) == ACKNOWLEDGE
    assert (ends.wanted[0], ends.arrived[0]) == (3, 3)
    assert not ends.got.any()
    ends.unsaid[0] = 0
    assert tcp_ends.receive(ends, 0, 1) == ACKNOWLEDGE
    assert ends.arrived[0] == 3
