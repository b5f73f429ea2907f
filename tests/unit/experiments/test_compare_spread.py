import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.experiments.compare.confidence_interval import MIN_FOR_RANKS, median_rank, spread


def interval_of(values):
    found = spread(values).interval
    assert found is not None
    return found


values = st.lists(st.floats(0, 1e12, allow_subnormal=False), min_size=1, max_size=40)


def test_three_values_have_students_interval_of_their_mean():
    found = spread([9.0, 10.0, 14.0])
    assert (found.count, found.median, found.minimum, found.maximum) == (3, 10.0, 9.0, 14.0)
    # Mean 11, standard deviation 7 ** 0.5, t(2) = 4.3027: 11 ± 4.3027 · (7 / 3) ** 0.5.
    reach = 4.302652730 * math.sqrt(7 / 3)
    assert found.interval == pytest.approx((11 - reach, 11 + reach))
    assert found.method == "student"


def test_one_value_has_no_interval():
    found = spread([3.0])
    assert (found.interval, found.method) == (None, "none")


def test_six_values_have_the_range_and_ten_the_second_each_side():
    assert spread([5.0, 1.0, 2.0, 9.0, 4.0, 3.0]).interval == (1.0, 9.0)
    assert spread([float(n) for n in range(10)]).interval == (1.0, 8.0)
    assert spread([1.0] * 6).method == "ranks"


@pytest.mark.parametrize(
    ("count", "rank"), [(6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6), (25, 8), (50, 18), (100, 40)]
)
def test_ranks_are_those_of_published_tables(count, rank):
    assert median_rank(count) == rank


@pytest.mark.parametrize("count", [*range(MIN_FOR_RANKS, 60), 2000])
def test_the_interval_by_ranks_covers_95_percent_the_next_not(count):
    def missed(rank):
        return 2 * sum(math.comb(count, heads) for heads in range(rank))

    rank = median_rank(count)
    assert 20 * missed(rank) <= 2**count < 20 * missed(rank + 1)


def test_students_interval_covers_the_mean_of_normal_values():
    generator = random.Random(7)
    for count in (2, 3, 5):
        held = 0
        for _ in range(2000):
            low, high = interval_of([generator.gauss(100, 5) for _ in range(count)])
            held += low <= 100 <= high
        assert 0.94 < held / 2000 < 0.965


@given(values)
def test_an_interval_holds_the_median_and_is_not_below_nothing(found):
    result = spread(found)
    assert result.median == statistics.median(found)
    if result.interval is not None:
        low, high = result.interval
        assert 0 <= low <= result.median <= high


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_values_says_nothing(found, generator):
    other = list(found)
    generator.shuffle(other)
    assert spread(other) == spread(found)


@given(values.filter(lambda some: len(some) < MIN_FOR_RANKS), st.floats(0.01, 100))
def test_another_unit_gives_the_same_interval_in_it(found, factor):
    one, other = spread(found), spread([factor * value for value in found])
    assert other.median == pytest.approx(factor * one.median, rel=1e-9, abs=1e-6)
    if one.interval is not None and other.interval is not None:
        assert other.interval == pytest.approx([factor * end for end in one.interval], rel=1e-6, abs=1e-3)


@given(st.lists(st.floats(1, 2), min_size=MIN_FOR_RANKS, max_size=30))
def test_ranks_take_ends_that_were_measured(found):
    low, high = interval_of(found)
    assert low in found
    assert high in found


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf]])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(ValueError, match="needs finite values"):
        spread(bad)


def test_too_few_for_ranks_is_refused():
    with pytest.raises(ValueError, match="needs 6 values or more, not 5"):
        median_rank(5)
