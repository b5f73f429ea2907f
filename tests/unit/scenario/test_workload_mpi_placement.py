"""Ranks to hosts, and every placement that cannot be."""

import pytest

from testbed.base.errors import InputError
from testbed.fabric.topologies import TOPOLOGIES
from testbed.planning import make_plan
from testbed.scenario import parse_scenario, scenario_of_blocks
from testbed.scenario.read_scenario import as_dict
from testbed.scenario.workloads.mpi_placement import Ranks, place_ranks, placement_problems
from testbed.scenario.workloads.spec import Mpi

MESH = "topology: {kind: mesh, sizes: [2, 2]}\n"
TOPOLOGY = make_plan(parse_scenario(MESH, "test.yaml")).topology


def hosts(**keys):
    assert placement_problems(Mpi("x", **keys), TOPOLOGY) == []
    return place_ranks(Mpi("x", **keys), TOPOLOGY).hosts


def problems(keys):
    """What planning says of a workload with these keys, without the place they share."""
    with pytest.raises(InputError) as caught:
        make_plan(parse_scenario(MESH + f"workloads: [{{kind: mpi, job: x, {keys}}}]", "test.yaml"))
    return [str(problem).removeprefix("test.yaml: workloads.0.") for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, (0, 1, 2, 3)),
        ({"ranks": 2}, (0, 1)),
        ({"ranks": 3, "placement": "round_robin"}, (0, 1, 2)),
        ({"ranks": 8}, (0, 0, 1, 1, 2, 2, 3, 3)),
        ({"ranks": 8, "placement": "round_robin"}, (0, 1, 2, 3, 0, 1, 2, 3)),
        ({"ranks": 6}, (0, 0, 1, 1, 2, 3)),
        ({"ranks": 6, "placement": "round_robin"}, (0, 1, 2, 3, 0, 1)),
        ({"placement": ("h4", "h1", "h1")}, (3, 0, 0)),
        ({"ranks": 2, "placement": ("h2", "h3")}, (1, 2)),
    ],
)
def test_ranks_are_placed(keys, expected):
    assert hosts(**keys) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "placement: [h1, h5, h5]",
            ['placement: there is no host "h5". Did you mean "h4"? Known: h1, h2, h3, h4'],
        ),
        (
            "placement: [host2, x]",
            [
                'placement: there is no host "host2". Did you mean "h2"? Known: h1, h2, h3, h4',
                'placement: there is no host "x". Known: h1, h2, h3, h4',
            ],
        ),
        (
            "ranks: 3, placement: [h1, h2]",
            [
                "ranks: is 3, but placement lists the hosts of 2 ranks; leave ranks out, or list as many hosts",
            ],
        ),
        (
            "placement: [h2, h2]",
            ["placement: all 2 ranks are on one host, so nothing would cross the fabric; use two or more"],
        ),
        (
            "ranks: 8, pattern: neighbour",
            ["ranks: a pattern needs one rank on each of the 4 hosts; leave ranks out"],
        ),
        (
            "placement: [h1, h2], pattern: neighbour",
            ["placement: a pattern needs one rank on each of the 4 hosts; leave placement out"],
        ),
        ("ranks: 1", ["ranks: should be 2 or more, not 1"]),
        ("ranks: 1025", ["ranks: should be 1024 or less, not 1025"]),
        (
            "placement: rond_robin",
            [
                "placement: should be block, round_robin or a list with the host of each rank such as [h1, h1, h2], "
                'not "rond_robin". Did you mean "round_robin"?'
            ],
        ),
        (
            "placement: [1, 2]",
            [
                "placement: should be block, round_robin or a list with the host of each rank such as [h1, h1, h2], "
                "not [1, 2]"
            ],
        ),
        (
            "placement: []",
            [
                "placement: should be block, round_robin or a list with the host of each rank such as [h1, h1, h2], "
                "not []"
            ],
        ),
        (
            "pattern: neighbor",
            [
                "pattern: should be one of neighbour, all_to_all, bit_reversal, transpose, butterfly, complement, "
                'pairwise, uniform, tornado, hotspot:h5, shift:4, pairs:h1>h5, not "neighbor". Did you mean '
                '"neighbour"?'
            ],
        ),
    ],
)
def test_an_impossible_placement_is_a_sentence_before_building(keys, expected):
    assert problems(keys) == expected


def test_a_stored_scenario_is_read_again_with_its_placement():
    text = "workloads: [{kind: mpi, job: ./x, placement: [h4, h1]}, {kind: mpi, job: y, ranks: 8, pattern: uniform}]"
    scenario = parse_scenario(MESH + text, "test.yaml")
    assert scenario_of_blocks(as_dict(scenario), "test.yaml") == scenario


def test_a_pattern_takes_any_order_of_the_hosts():
    assert hosts(placement=("h4", "h3", "h2", "h1"), pattern="neighbour") == (3, 2, 1, 0)


def test_a_long_list_of_hosts_is_named_by_its_ends():
    topology = TOPOLOGIES["flat"].build(TOPOLOGIES["flat"].spec(hosts=20))
    (problem,) = placement_problems(Mpi("x", placement=("h1", "y")), topology)
    assert problem.sentence == 'there is no host "y". Known: h1 to h20'


def test_ranks_know_who_shares_a_host():
    ranks = Ranks((0, 0, 1, 2))
    assert not ranks.on_different_hosts(0, 1)
    assert ranks.on_different_hosts(1, 2)
    assert ranks.pairs_apart() == 12 - 2
    assert ranks.pairs_apart([0, 1]) == 0
    assert ranks.pairs_apart([1, 2, 3]) == 6
    assert ranks.hosts_of([0, 1, 2]) == 2


def test_ranks_are_named_by_their_hosts():
    ranks = Ranks((0, 0, 1))
    assert [ranks.name(rank, TOPOLOGY) for rank in range(3)] == ["h1/0", "h1/1", "h2"]
