from __future__ import annotations

from typing import get_args

import pytest

from testbed.traffic import PATTERNS, PatternError, flows
from testbed.workloads.spec import Pattern
from tests.fabrics import topology_of

PERMUTATIONS = ["bit_reversal", "butterfly", "complement", "transpose"]


def flat(hosts):
    return topology_of("flat", hosts=hosts)


def test_the_patterns_of_a_scenario_are_those_there_are():
    assert set(get_args(Pattern)) == set(PATTERNS)


@pytest.mark.parametrize("pattern", PERMUTATIONS)
@pytest.mark.parametrize("hosts", [4, 16, 64])
def test_bit_permutations_and_transpose_are_their_own_inverse(pattern, hosts):
    pairs = dict(flows(pattern, flat(hosts), seed=1))
    assert all(pairs[pairs[source]] == source for source in pairs)
    assert len(set(pairs.values())) == len(pairs) == len(flows(pattern, flat(hosts), seed=1))
    assert set(pairs) | set(pairs.values()) <= set(range(hosts))


@pytest.mark.parametrize(
    ("pattern", "source", "destination"),
    [
        ("bit_reversal", 0b0001, 0b1000),
        ("bit_reversal", 0b0110, None),
        ("bit_reversal", 0b1011, 0b1101),
        ("butterfly", 0b0001, 0b1000),
        ("butterfly", 0b1110, 0b0111),
        ("butterfly", 0b1001, None),
        ("complement", 0, 15),
        ("complement", 0b0101, 0b1010),
        ("transpose", 0, 15),  # (0, 0) → (3, 3)
        ("transpose", 1, 11),  # (1, 0) → (3, 2)
        ("transpose", 3, 12),  # (3, 0), on the diagonal x + y = 3 → (0, 3)
        ("transpose", 6, 9),  # (2, 1), on the diagonal → (1, 2)
    ],
)
def test_where_a_host_of_sixteen_sends(pattern, source, destination):
    assert dict(flows(pattern, flat(16), seed=1)).get(source) == destination


def test_all_to_all_is_every_ordered_pair():
    assert len(set(flows("all_to_all", flat(9), seed=1))) == 9 * 8


def test_neighbour_is_the_next_switch_in_the_first_dimension_and_the_same_place_on_it():
    pairs = dict(flows("neighbour", topology_of("torus", sizes=(4, 3), hosts_per_switch=2), seed=1))
    assert pairs[0] == 2
    assert pairs[1] == 3
    assert pairs[6] == 0  # switch 3 is the last of its row
    assert pairs[23] == 17
    assert sorted(pairs.values()) == sorted(pairs) == list(range(24))


def test_neighbour_without_a_first_dimension_is_the_next_host():
    assert flows("neighbour", flat(3), seed=1) == ((0, 1), (1, 2), (2, 0))
    assert flows("neighbour", topology_of("mesh", sizes=(1, 3)), seed=1) == ((0, 1), (1, 2), (2, 0))


@pytest.mark.parametrize("hosts", [2, 7, 16])
def test_pairwise_is_disjoint_pairs_in_both_directions(hosts):
    pairs = dict(flows("pairwise", flat(hosts), seed=3))
    assert len(pairs) == hosts - hosts % 2
    assert all(pairs[pairs[source]] == source for source in pairs)


def test_uniform_sends_once_from_every_host():
    pairs = flows("uniform", flat(50), seed=3)
    assert [source for source, _ in pairs] == list(range(50))
    assert all(0 <= destination < 50 for _, destination in pairs)
    assert len({destination for _, destination in pairs}) > 20  # drawn, not a fixed one


@pytest.mark.parametrize("pattern", ["pairwise", "uniform"])
def test_the_seed_decides(pattern):
    assert flows(pattern, flat(32), seed=1) == flows(pattern, flat(32), seed=1)
    assert flows(pattern, flat(32), seed=1) != flows(pattern, flat(32), seed=2)


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_nobody_sends_to_itself(pattern, hosts):
    try:
        pairs = flows(pattern, flat(hosts), seed=1)
    except PatternError:
        assert hosts != 4
        return
    assert all(source != destination for source, destination in pairs)
    assert hosts > 1 or not pairs


@pytest.mark.parametrize(
    ("pattern", "hosts", "sentence"),
    [
        ("bit_reversal", 12, 'pattern "bit_reversal" needs a power of two of hosts, not 12'),
        ("butterfly", 1, 'pattern "butterfly" needs a power of two of hosts, not 1'),
        ("complement", 3, 'pattern "complement" needs a power of two of hosts, not 3'),
        ("transpose", 8, 'pattern "transpose" needs a square number of hosts, not 8'),
    ],
)
def test_patterns_that_do_not_exist_for_a_number_of_hosts(pattern, hosts, sentence):
    with pytest.raises(PatternError, match=f"^{sentence}$"):
        flows(pattern, flat(hosts), seed=1)
