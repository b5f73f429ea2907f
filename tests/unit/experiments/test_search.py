from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.experiments.run.dilation.choose import choose_step, next_step, steps

ALL = steps(1, 1e6)


def search(allowed, guess, faithful):
    """All trials of a search, in their order."""
    tried: dict[float, bool] = {}
    while (step := next_step(allowed, tried, guess)) is not None:
        assert step not in tried
        tried[step] = faithful(step)
    return tried


def test_steps():
    assert steps(1, 12) == (1, 1.5, 2, 3, 5, 7, 10)
    assert steps(16, 150) == (20, 30, 50, 70, 100, 150)
    assert steps(30, 20) == ()
    assert ALL[-1] == 1e6


@given(st.floats(0.5, 2e6), st.floats(0.5, 2e6))
def test_the_smallest_faithful_step_is_found_from_any_guess(guess, limit):
    tried = search(ALL, guess, lambda step: step >= limit)
    assert choose_step(ALL, tried) == next((step for step in ALL if step >= limit), None)


@pytest.mark.parametrize(
    ("guess", "limit", "order"),
    [
        (100, 90, [100, 70]),  # a good guess costs two trials
        (100, 60, [100, 70, 30, 50]),
        (100, 20, [100, 70, 30, 10, 15, 20]),
        (100, 140, [100, 150]),
        (100, 300, [100, 150, 300, 200]),
        (1, 0, [1]),
        (1e6, 2e6, [1e6]),
        (80, 90, [100, 70]),
    ],
)
def test_order_of_trials(guess, limit, order):
    assert list(search(ALL, guess, lambda step: step >= limit)) == order


def test_no_step_is_no_search():
    assert next_step((), {}, 100) is None
    assert choose_step((), {}) is None


def test_none_is_chosen_where_none_is_faithful():
    tried = search(steps(1, 100), 50, lambda step: False)
    assert list(tried) == [50, 70, 100]
    assert choose_step(steps(1, 100), tried) is None


def test_a_failure_above_outweighs_a_success_below():
    tried = {50.0: True, 100.0: False}
    assert choose_step(ALL, tried) is None
    assert next_step(ALL, tried, 50) == 200
    assert choose_step(ALL, {**tried, 200.0: True}) == 200
    assert next_step(ALL, {**tried, 200.0: True}, 50) == 150


@given(st.randoms(use_true_random=False))
def test_a_search_ends_whatever_the_lab_does(random):
    tried = search(ALL, 100, lambda step: random.random() < 0.5)
    found = choose_step(ALL, tried)
    assert found is None or all(step < found for step, faithful in tried.items() if not faithful)
