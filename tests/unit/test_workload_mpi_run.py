"""What a run makes of a job's figures, without a lab: the bound of an all-to-all, and who meets a prediction."""

from typing import Any

import pytest

from testbed.model import Sample
from testbed.plan import make_plan
from testbed.predict import Wires, alltoall_bound, transport
from testbed.run.loads import run_mpi as load_mpi
from testbed.run.loads.context import Context
from testbed.scenario import parse_scenario


@pytest.fixture
def context():
    plan = make_plan(parse_scenario("topology: {kind: mesh, sizes: [2, 2]}\nlab: {dilation: 100}", "test.yaml"))
    no_lab: Any = None
    return Context(plan, no_lab, {}, lambda name, text: None, lambda text: None)


def bound(context, hosts, size):
    return load_mpi._alltoall_bound(context, hosts, size)


def test_the_bound_with_one_rank_a_host_leaves_out_what_passes_at_once(context):
    plan = context.plan
    whole = alltoall_bound(Wires(plan.topology, transport("tcp", 0), 1e9, 1e9), plan.routes, 1e6)
    assert bound(context, (0, 1, 2, 3), 10**6) == pytest.approx(whole - 8 * 2 * 1542 / 1e9)


def test_the_bound_does_not_depend_on_which_rank_is_where(context):
    assert bound(context, (3, 1, 0, 2), 10**6) == bound(context, (0, 1, 2, 3), 10**6)


def test_ranks_of_one_host_need_no_time_for_each_other(context):
    # Two on each of two neighbours: each host sends 2·2 blocks to the other.
    expected = 8 * (4e6 * 1542 / 1448 - 2 * 1542) / 1e9
    assert bound(context, (0, 0, 1, 1), 10**6) == pytest.approx(expected)


def goodput(*ratios):
    return [Sample("goodput", ratio * 1e9, "bit/s", {}, 1e9) for ratio in ratios]


@pytest.mark.parametrize(
    ("samples", "met"),
    [
        ([], False),
        ([Sample("goodput", 1e9, "bit/s", {})], False),
        (goodput(0.97, 0.99), True),
        (goodput(0.5, 1.4), False),
        (goodput(0.9, 0.9), False),
    ],
)
def test_only_pairs_with_a_prediction_can_meet_it(samples, met):
    assert load_mpi._as_predicted(samples) is met
