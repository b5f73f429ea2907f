"""Gaps between frames, from made-up departures."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.experiments.run.checks.telemetry_samples import gap_errors

RATE = 5e6
FRAME = 1514
IDEAL = round((FRAME + 24) * 8 / RATE * 1e9)  # ns


def frames_at(times, size=FRAME):
    return np.array([(int(at), size) for at in times])


def looks(every, count, waiting):
    return np.array([(every * n - every // 2, waiting) for n in range(count)])


EVEN = frames_at(np.arange(400) * IDEAL)
BUSY = looks(8 * IDEAL, 60, 50)


def test_a_perfect_link_has_no_error():
    errors = gap_errors(EVEN, BUSY, RATE)
    assert len(errors) > 40
    assert errors.max() < 1e-6


def test_a_link_of_half_the_rate_is_off_by_half():
    assert gap_errors(EVEN, BUSY, RATE * 2) == pytest.approx(1.0)


def test_short_frames_count_as_the_shortest_on_the_wire():
    shortest = round(84 * 8 / RATE * 1e9)
    frames = frames_at(np.arange(400) * shortest, 54)
    assert gap_errors(frames, looks(8 * shortest, 60, 50), RATE).max() < 1e-4


def test_pairs_that_leave_together_are_no_error_of_groups():
    times = np.repeat(np.arange(200) * 2 * IDEAL, 2)
    assert gap_errors(frames_at(times), BUSY, RATE, group=1).min() == pytest.approx(1.0)
    assert gap_errors(frames_at(times), BUSY, RATE, group=8).max() < 1e-6


def test_a_port_with_an_empty_queue_may_pause():
    late = frames_at(np.concatenate([np.arange(200), np.arange(240, 400)]) * IDEAL)
    queue = BUSY.copy()
    queue[25:31, 1] = 0
    assert gap_errors(late, queue, RATE).max() < 1e-6
    assert gap_errors(late, BUSY, RATE).max() == pytest.approx(40 / 8, rel=0.01)


def test_as_many_frames_as_waited_may_have_emptied_the_queue():
    # Eight leave between two looks.
    assert len(gap_errors(EVEN, looks(8 * IDEAL, 60, 8), RATE)) == 0
    assert len(gap_errors(EVEN, looks(8 * IDEAL, 60, 9), RATE)) > 40


@pytest.mark.parametrize("count", [0, 1, 8])
def test_few_frames_say_nothing(count):
    assert len(gap_errors(EVEN[:count], BUSY, RATE)) == 0


def test_frames_beyond_the_looks_do_not_count():
    assert len(gap_errors(EVEN, BUSY[:2], RATE)) <= 1
    assert len(gap_errors(EVEN, BUSY[:0].reshape(0, 2), RATE)) == 0
