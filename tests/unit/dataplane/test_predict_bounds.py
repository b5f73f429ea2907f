"""The least time of an exchange, against the closed form and against a case by hand."""

import pytest

from testbed.dataplane.predict import Wires, alltoall_bound, exchange_bound, transport
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

WIRE = transport("tcp", 0)
TAGGED, UNTAGGED = 1542 / 1448, 1538 / 1448


def plan(topology):
    return make_plan(parse_scenario(f"topology: {topology}", "test.yaml"))


def bound(topology, sent, *, tagged=True, **options):
    made = plan(topology)
    return exchange_bound(Wires(made.topology, WIRE, 1e9, 1e9, tagged), made.routes, sent, **options)


@pytest.mark.parametrize(
    "topology",
    ["{kind: torus, sizes: [4, 4]}", "{kind: mesh, sizes: [3, 2], hosts_per_switch: 2}", "{kind: flat, hosts: 5}"],
)
def test_of_an_even_all_to_all_it_is_the_bound_of_an_all_to_all(topology):
    made = plan(topology)
    hosts = range(made.topology.host_count)
    sent = {(source, destination): 1000.0 for source in hosts for destination in hosts}
    wires = Wires(made.topology, WIRE, 1e9, 2e9)
    expected = alltoall_bound(wires, made.routes, 1000.0)
    assert exchange_bound(wires, made.routes, sent) == pytest.approx(expected)


def test_the_fullest_channel_decides():
    # In a row of three both hosts send to the last: the second link carries 3 kB and 1 kB.
    row = "{kind: mesh, sizes: [3]}"
    sent = {(0, 2): 3000.0, (1, 2): 1000.0, (2, 0): 500.0}
    assert bound(row, sent) == pytest.approx(8 * 4000 * TAGGED / 1e9)
    assert bound(row, sent, tagged=False) == pytest.approx(8 * 4000 * UNTAGGED / 1e9)
    assert bound(row, sent, at_once=1000.0) == pytest.approx(8 * (4000 * TAGGED - 1000) / 1e9)


def test_what_a_host_sends_itself_takes_no_time():
    assert bound("{kind: mesh, sizes: [3]}", {(1, 1): 1e6}) == 0


def test_what_passes_at_once_takes_no_time():
    assert bound("{kind: mesh, sizes: [3]}", {(0, 1): 100.0}, at_once=3000.0) == 0
