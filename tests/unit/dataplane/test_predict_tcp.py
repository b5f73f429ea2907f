"""TCP simulated over shaped ports: what can be worked out by hand, and what must hold of any load."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from testbed.dataplane.kernels import tcp as kernel
from testbed.dataplane.kernels.tcp_ends import LOST, UNDER_WAY
from testbed.dataplane.predict import TcpLoad, Wires, reno_goodput, routed_ways, tcp_goodput, transport
from testbed.dataplane.predict import tcp as predict
from testbed.planning import make_plan
from tests.fabrics import fabrics, plan_of, scenario_of

G = 1e9
TCP = transport("tcp", 0)
TRUNK = 1448 / 1542  # payload over bytes on a tagged wire
LOAD = TcpLoad(omit=5, seconds=25, slower=200, queue_frames=32, head_drop=True)


def load(**changed):
    fields = {name: getattr(LOAD, name) for name in ("omit", "seconds", "slower", "queue_frames", "head_drop")}
    return TcpLoad(**{**fields, **changed})


def goodput(plan, flows, wanted=LOAD):
    ways = routed_ways(plan.topology, plan.routes, flows)
    return tcp_goodput(Wires(plan.topology, TCP, G, G), flows, ways, wanted).tolist()


def equilibrium(plan, flows):
    return reno_goodput(Wires(plan.topology, TCP, G, G), flows, routed_ways(plan.topology, plan.routes, flows)).tolist()


@pytest.mark.parametrize("head_drop", [True, False])
@pytest.mark.parametrize("slower", [20, 200])
def test_one_flow_has_the_whole_wire(head_drop, slower):
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=1)
    assert goodput(plan, [(0, 2)], load(slower=slower, head_drop=head_drop)) == pytest.approx([G * TRUNK], rel=0.01)


def test_a_short_load_is_counted_from_the_start_of_each_flow():
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=1)
    assert goodput(plan, [(0, 2)], load(omit=0, seconds=2)) == pytest.approx([G * TRUNK], rel=0.05)


def test_both_directions_of_a_wire_carry_acknowledgements_too():
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=1)
    assert goodput(plan, [(0, 1), (1, 0)]) == pytest.approx([G * 1448 / (1542 + 47)] * 2, rel=0.02)


@pytest.mark.parametrize("head_drop", [True, False])
def test_equals_share_a_wire_evenly(head_drop):
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=3)
    assert goodput(plan, [(0, 3), (1, 4), (2, 5)], load(head_drop=head_drop)) == pytest.approx(
        [G * TRUNK / 3] * 3, rel=0.1
    )


def test_flows_over_two_full_links_get_what_equilibrium_says():
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=2)
    flows = [(0, 4), (1, 2), (3, 5)]  # one over both trunks, one over each
    expected = equilibrium(plan, flows)
    assert expected[0] / expected[1] == pytest.approx(2**-1.5, rel=0.01)
    for queue in (64, 16):
        long, *short = goodput(plan, flows, load(queue_frames=queue, seconds=60))
        assert 0.75 < long / expected[0] < 1.1
        assert short == pytest.approx([G * TRUNK - long] * 2, rel=0.05)


def test_timers_are_not_slowed_down():
    # Of 16 flows some lose all that is under way; where links are fast, 0.2 s are then thousands of round trips.
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=16)
    flows = [(host, 16 + host) for host in range(16)]
    slow, fast = (min(goodput(plan, flows, load(slower=slower, queue_frames=3, seconds=10))) for slower in (400, 1))
    assert fast < 0.5 * slow


def test_the_same_load_has_the_same_prediction():
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=2)
    flows = [(0, 4), (1, 2), (3, 5), (5, 0)]
    assert goodput(plan, flows) == goodput(plan, flows)


def test_hosts_on_one_switch_need_no_trunk():
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=2)
    assert goodput(plan, [(0, 1)]) == pytest.approx([G * 1448 / 1538], rel=0.01)


def test_a_large_load_is_simulated_in_part(monkeypatch):
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=2)
    flows = [(0, 4), (1, 2), (3, 5)]
    whole = goodput(plan, flows)
    monkeypatch.setattr(predict, "_HOPS", 30_000)
    part = goodput(plan, flows)
    assert part != whole
    assert sum(part) == pytest.approx(sum(whole), rel=0.1)


@pytest.mark.slow
def test_of_a_load_simulated_in_part_every_flow_has_a_part():
    # 16 flows at 10 Gbit/s for seconds: some hundred million frames. A prediction is divided by.
    plan = plan_of("torus", sizes=[4, 4])
    flows = [(host, (host + 1) % 16) for host in range(16)]
    wanted = load(omit=1, seconds=3, slower=1, queue_frames=100)
    ways = routed_ways(plan.topology, plan.routes, flows)
    found = tcp_goodput(Wires(plan.topology, TCP, 10 * G, 10 * G), flows, ways, wanted)
    assert found.min() > 0.1 * found.mean() > 0.05 * 10 * G


def test_a_flow_of_which_nothing_arrives_is_not_predicted_none(monkeypatch):
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=16)
    flows = [(host, 16 + host) for host in range(16)]
    monkeypatch.setattr(predict, "_HOPS", 200)
    assert min(goodput(plan, flows, load(queue_frames=1))) > 0


def test_a_queue_longer_than_any_load_takes_no_more_memory():
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=1)
    assert goodput(plan, [(0, 1)], load(queue_frames=100_000)) == pytest.approx([G * TRUNK], rel=0.01)


def test_where_nothing_is_compiled_it_is_the_equilibrium(monkeypatch):
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=2)
    flows = [(0, 4), (1, 2), (3, 5)]
    monkeypatch.setattr(predict, "INTERPRETED", True)
    assert goodput(plan, flows) == equilibrium(plan, flows)


@settings(max_examples=settings().max_examples // 2)  # each simulates a load
@given(fabrics(), st.integers(1, 40), st.sampled_from([1.0, 50.0, 400.0]), st.booleans(), st.data())
@pytest.mark.slow
def test_no_segment_is_made_or_lost_but_in_queues(blocks, queue, slower, head_drop, data):
    plan = make_plan(scenario_of(blocks))
    topology = plan.topology
    assume(topology.host_count > 1)
    hosts = st.integers(0, topology.host_count - 1)
    pairs = st.tuples(hosts, hosts).filter(lambda pair: pair[0] != pair[1])
    flows = data.draw(st.lists(pairs, min_size=1, max_size=12), "flows")
    ways = routed_ways(topology, plan.routes, flows)
    wanted = load(slower=slower, queue_frames=queue, head_drop=head_drop)
    fabric = predict._fabric(Wires(topology, TCP, G, G), flows, ways, wanted)
    state = predict._state(fabric, len(flows), 1)
    kernel.run(fabric, state, 1.0 + 0.02 * slower)
    ends = state.ends
    assert (ends.flying == (ends.fate == UNDER_WAY).sum(axis=1)).all()
    assert (ends.lost == (ends.fate == LOST).sum(axis=1)).all()
    assert (ends.arrived == ends.wanted + ends.got.sum(axis=1)).all()
    assert (ends.oldest <= ends.wanted).all()
    assert (ends.wanted <= ends.next).all()
    assert (ends.next <= ends.made).all()
    assert ends.arrived.sum() > 0
    assert (state.waiting[np.unique(fabric.way[:, 1:])] <= queue + 3 * len(flows)).all()
    # No port has sent more than its rate and one burst allow.
    sent = np.zeros(len(fabric.frame_time))
    last = fabric.way[np.arange(len(flows)), fabric.hops[: len(flows)] - 1]
    np.add.at(sent, last, ends.arrived)
    assert (sent * fabric.frame_time <= 1.0 + 0.02 * slower + (fabric.burst + 2) * fabric.frame_time).all()


def simulated(plan, flows, until, **changed):
    """Some thousand frames, on links that are slow enough for that."""
    ways = routed_ways(plan.topology, plan.routes, flows)
    fabric = predict._fabric(Wires(plan.topology, TCP, G, G), flows, ways, load(slower=2000, **changed))
    state = predict._state(fabric, len(flows), 1)
    kernel.run(fabric, state, until)
    return fabric, state


def test_segments_that_arrive_in_counted_seconds_are_counted():
    plan = plan_of("mesh", sizes=[3], hosts_per_switch=1)
    fabric, state = simulated(plan, [(0, 2)], 11.0, omit=2, seconds=6)
    trunk = fabric.frame_time[fabric.way[0, 1]]
    assert trunk == pytest.approx(1542 * 8 * 2000 / G)
    assert state.counted[0] == pytest.approx(6 / trunk, abs=2)
    assert (state.filled[fabric.way[0]] > 10.5).all()  # each channel of the way has sent frames until the end
    assert state.ends.made[0] == state.ends.next[0]  # nothing was sent twice, for nothing was lost
    # Two frames at most wait in the host's queue, and nowhere else does one wait for long.
    assert 2 * trunk < state.ends.round_trip[0] < 5 * trunk


@pytest.mark.parametrize("head_drop", [True, False])
def test_flows_that_share_a_full_queue_lose_and_send_again(head_drop):
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=3)
    flows = [(0, 3), (1, 4), (2, 5)]
    fabric, state = simulated(plan, flows, 24.0, omit=3, seconds=20, queue_frames=6, head_drop=head_drop)
    trunk = fabric.frame_time[fabric.way[0, 1]]
    assert state.counted.sum() == pytest.approx(20 / trunk, rel=0.05)
    assert (state.counted > 0.05 * 20 / trunk).all()
    again = state.ends.made - state.ends.next
    assert (again > 0).all()
    assert (state.ends.threshold < 20).all()
    assert (state.ends.wanted >= state.ends.next - state.ends.window.astype(int) - 9).all()


def test_a_single_segment_is_acknowledged_by_the_timer():
    """Between two hosts of a switch at rest nothing waits, so a round trip is that timer's 40 ms."""
    plan = plan_of("mesh", sizes=[2], hosts_per_switch=2)
    ways = routed_ways(plan.topology, plan.routes, [(0, 1)])
    fabric = predict._fabric(Wires(plan.topology, TCP, G, G), [(0, 1)], ways, load(slower=1))
    state = predict._state(fabric, 1, 1)
    state.ends.window[0] = 1
    started = float(state.heap.time[0])
    kernel.run(fabric, state, started + 0.039)
    assert (state.ends.arrived[0], state.ends.oldest[0]) == (1, 0)
    until = started + 0.04
    while not state.ends.oldest[0]:
        until += 1e-6
        kernel.run(fabric, state, until)
    assert (state.ends.oldest[0], state.ends.flying[0]) == (1, 2)
    assert state.ends.round_trip[0] == pytest.approx(0.04, abs=1e-4)
