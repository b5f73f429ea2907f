from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from testbed.dataplane.predict import Wires, alltoall_bound, fair_goodput, reno_goodput, routed_ways, transport
from testbed.fabric.routing.paths import path
from testbed.planning import make_plan
from tests.fabrics import fabrics, plan_of, scenario_of

G = 1e9
UDP, TCP = transport("udp", 1470), transport("tcp", 0)
EDGE, TRUNK = 1470 / 1536, 1470 / 1540  # payload over bytes on an untagged and on a tagged wire


def goodput(plan, flows, wire=UDP, link_rate=G, host_rate=G):
    wires, ways = Wires(plan.topology, wire, link_rate, host_rate), routed_ways(plan.topology, plan.routes, flows)
    return fair_goodput(wires, flows, ways).tolist()


def test_bytes_on_the_wire():
    assert UDP.cost(tagged=False) == 1536 / 1470
    assert UDP.cost(tagged=True) == 1540 / 1470
    assert UDP.reverse_cost(tagged=True) == 0
    assert transport("udp", 16).cost(tagged=False) == 84 / 16  # the shortest frame
    assert TCP.cost(tagged=False) == 1538 / 1448
    assert TCP.cost(tagged=True) == 1542 / 1448
    assert TCP.reverse_cost(tagged=False) == 45 / 1448  # half an acknowledgement of 90 bytes
    assert TCP.reverse_cost(tagged=True) == 47 / 1448


def test_one_flow_has_the_whole_wire():
    assert goodput(plan_of("flat", hosts=2), [(0, 1)]) == [pytest.approx(957.03e6, rel=1e-5)]
    assert goodput(plan_of("mesh", sizes=[2]), [(0, 1)]) == [pytest.approx(G * TRUNK)]
    assert goodput(plan_of("flat", hosts=2), [(0, 1)], TCP) == [pytest.approx(941.48e6, rel=1e-5)]


def test_acknowledgements_take_their_share_of_the_way_back():
    both = goodput(plan_of("flat", hosts=2), [(0, 1), (1, 0)], TCP)
    assert both == [pytest.approx(G * 1448 / (1538 + 45))] * 2
    across = goodput(plan_of("mesh", sizes=[2]), [(0, 1), (1, 0)], TCP)
    assert across == [pytest.approx(G * 1448 / (1542 + 47))] * 2


def test_flows_share_a_trunk_a_sender_and_a_receiver():
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=2)  # h1 h2 | h3 h4 | h5 h6
    assert goodput(plan, [(0, 2), (1, 3)]) == [pytest.approx(G * TRUNK / 2)] * 2
    assert goodput(plan, [(0, 1), (0, 2)]) == [pytest.approx(G * EDGE / 2)] * 2
    assert goodput(plan, [(0, 4), (5, 4)]) == [pytest.approx(G * EDGE / 2)] * 2  # the receiver's wire
    assert goodput(plan, [(0, 2), (2, 0)]) == [pytest.approx(G * TRUNK)] * 2  # both directions
    # A flow over both trunks and one over each: each trunk is halved.
    assert goodput(plan, [(0, 4), (1, 2), (3, 5)]) == [pytest.approx(G * TRUNK / 2)] * 3


def test_what_one_flow_cannot_use_the_others_get():
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=3)  # h1 h2 h3 | h4 h5 h6
    # h1's wire is shared by two flows; the third flow takes what is left of a trunk of 1.8 Gbit/s, up to its wire.
    a, b, c = goodput(plan, [(0, 3), (0, 4), (1, 5)], link_rate=1.8 * G)
    assert (a, b) == (pytest.approx(G * EDGE / 2), pytest.approx(G * EDGE / 2))
    assert c == pytest.approx(1.8 * G * TRUNK - a - b)
    assert goodput(plan, [(0, 3), (0, 4), (1, 5)], link_rate=10 * G)[2] == pytest.approx(G * EDGE)
    assert goodput(plan, [(0, 3), (1, 4)], host_rate=G / 10) == [pytest.approx(G / 10 * EDGE)] * 2


def test_all_to_all_is_bound_by_the_fullest_wire():
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=2)
    # Over the trunk 2 hosts send to 2 others in each direction; a host sends to 3.
    bound = alltoall_bound(Wires(plan.topology, UDP, G, G), plan.routes, 1e6)
    assert bound == pytest.approx(4 * 8e6 / TRUNK / G)
    assert alltoall_bound(Wires(plan.topology, UDP, 10 * G, G), plan.routes, 1e6) == pytest.approx(3 * 8e6 / EDGE / G)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 3)  # each solves an equilibrium
@given(fabrics(), st.sampled_from([UDP, TCP]), st.sampled_from([0.4, 1.0, 2.5]), st.data())
def test_every_flow_has_a_bottleneck_and_no_wire_is_overfull(blocks, wire, trunk_share, data):
    plan = make_plan(scenario_of(blocks))
    topology = plan.topology
    hosts = st.integers(0, topology.host_count - 1)
    pairs = st.tuples(hosts, hosts).filter(lambda pair: pair[0] != pair[1])
    flows = data.draw(st.lists(pairs, min_size=1, max_size=12) if topology.host_count > 1 else st.just([]), "flows")
    rate = np.asarray(goodput(plan, flows, wire, trunk_share * G, G))
    assert (rate > 0).all()
    # Bits on each wire by adding up, flow by flow.
    used: dict[tuple[str, int], dict[int, float]] = {}
    for flow, (source, end) in enumerate(flows):
        for start, stop, trunk, edge in (
            (source, end, wire.cost(tagged=True), wire.cost(tagged=False)),
            (end, source, wire.reverse_cost(tagged=True), wire.reverse_cost(tagged=False)),
        ):
            wires = [("channel", c) for c in path(topology, plan.routes, start, stop)]
            for place, cost in [*((w, trunk) for w in wires), (("from", start), edge), (("to", stop), edge)]:
                if cost:
                    used.setdefault(place, {}).setdefault(flow, 0.0)
                    used[place][flow] += cost * rate[flow]
    capacity = {"channel": trunk_share * G, "from": G, "to": G}
    bottlenecks = set()
    for place, share in used.items():
        assert sum(share.values()) <= capacity[place[0]] * (1 + 1e-6)
        if sum(share.values()) >= capacity[place[0]] * (1 - 1e-6):
            most = max(rate[flow] for flow in share)
            bottlenecks |= {flow for flow in share if rate[flow] >= most * (1 - 1e-6)}
    assert bottlenecks == set(range(len(flows)))


def reno(plan, flows, wire=UDP, link_rate=G, host_rate=G):
    wires, ways = Wires(plan.topology, wire, link_rate, host_rate), routed_ways(plan.topology, plan.routes, flows)
    return reno_goodput(wires, flows, ways).tolist()


def test_reno_shares_one_full_wire_as_max_min_fairness_does():
    for flows in ([(0, 2), (1, 3)], [(0, 1), (0, 2)], [(0, 4), (5, 4)], [(0, 2), (2, 0)], [(0, 1)]):
        plan = plan_of("mesh", sizes=[3], hosts_per_switch=2)
        for wire in (UDP, TCP):
            assert reno(plan, flows, wire) == pytest.approx(goodput(plan, flows, wire), rel=1e-3)


@pytest.mark.parametrize("links", [2, 3])
def test_reno_gives_a_flow_over_several_full_links_less(links):
    # One flow over all links of a chain, and one over each.
    plan = plan_of("mesh", sizes=[links + 1], hosts_per_switch=2)
    flows = [
        (0, 2 * links),
        *((2 * link + 1, 2 * link + 2 if link + 1 < links else 2 * links + 1) for link in range(links)),
    ]
    long, *short = reno(plan, flows)
    # links × the loss and links × the queues: 1 / (T sqrt(p)).
    assert [long / one for one in short] == pytest.approx([links**-1.5] * links, rel=1e-3)
    assert long + short[0] == pytest.approx(G * TRUNK, rel=1e-3)
    assert goodput(plan, flows) == pytest.approx([G * TRUNK / 2] * (links + 1))


def test_queues_on_the_way_back_delay_too():
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=2)  # h1 h2 | h3 h4 | h5 h6
    # Two flows share the first trunk. Acknowledgements of the second come back by one that two others fill.
    near, far, *others = reno(plan, [(0, 2), (1, 4), (4, 3), (5, 3)], TCP)
    assert near == pytest.approx(2 * far, rel=1e-3)
    assert others[0] == pytest.approx(others[1])
    assert sum(others) > 0.97 * G * 1448 / 1542


@pytest.mark.slow
@given(fabrics(), st.sampled_from([UDP, TCP]), st.sampled_from([0.4, 1.0, 2.5]), st.data())
def test_of_reno_each_flow_has_a_bottleneck_no_wire_too_much(blocks, wire, trunk_share, data):
    plan = make_plan(scenario_of(blocks))
    hosts = st.integers(0, plan.topology.host_count - 1)
    pairs = st.tuples(hosts, hosts).filter(lambda pair: pair[0] != pair[1])
    assume(plan.topology.host_count > 1)
    flows = data.draw(st.lists(pairs, min_size=1, max_size=12), "flows")
    wires = Wires(plan.topology, wire, trunk_share * G, G)
    forward, backward = wires.costs(flows, routed_ways(plan.topology, plan.routes, flows))
    rate = np.asarray(reno(plan, flows, wire, trunk_share * G, G))
    use = rate @ (forward + backward) / wires.rates
    assert use.max() <= 1 + 1e-9
    assert (rate > 0).all()
    assert all(use[forward[flow] > 0].max() > 0.99 for flow in range(len(flows)))
